"""Two small databases with the same shop in them, one for each engine."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import duckdb
import pytest

from opposable.tools.sql.database import Database, open_database

SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, city VARCHAR, joined DATE);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id), amount DECIMAL(10,2),
  ordered DATE, note VARCHAR);
CREATE TABLE "order lines" (order_id INTEGER, "unit price" DOUBLE, quantity INTEGER);
CREATE TABLE 部门 (编号 INTEGER PRIMARY KEY, 名称 VARCHAR, 预算 INTEGER);
INSERT INTO customers VALUES (1,'Ann','Berlin','2023-01-05'),(2,'Bob','Paris','2023-06-30'),(3,'李雷','上海','2024-02-29');
INSERT INTO orders VALUES (1,1,10.50,'2024-01-01','first'),(2,1,20.00,'2024-02-01',NULL),(3,2,5.25,'2024-02-15','50% off'),
  (4,3,100.00,'2024-03-31','加急');
INSERT INTO "order lines" VALUES (1,2.5,2),(1,5.5,1),(2,20.0,1),(4,50.0,2);
INSERT INTO 部门 VALUES (1,'行政管理部',100),(2,'研发部',900);
CREATE VIEW big_orders AS SELECT id, amount FROM orders WHERE amount > 15;
"""


@pytest.fixture(scope="session")
def shop_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("shop")
    paths = {"sqlite": folder / "shop.sqlite", "duckdb": folder / "shop.duckdb"}
    with_sqlite = sqlite3.connect(paths["sqlite"])
    with_sqlite.executescript(
        SHOP + "CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO notes VALUES('red shoes');"
    )
    with_sqlite.close()
    with duckdb.connect(str(paths["duckdb"])) as with_duckdb:
        with_duckdb.execute(SHOP)
        with_duckdb.execute(
            "CREATE SCHEMA hr; CREATE TABLE hr.people AS SELECT 1 AS id, [1,2] AS marks, {'a': 7} AS extra"
        )
        with_duckdb.execute("COMMENT ON TABLE customers IS 'who buys'; COMMENT ON COLUMN customers.city IS 'home town'")
    (folder / "secret.csv").write_text("word\nSECRET-4711\n")
    (folder / "secret.json").write_text('{"word": "SECRET-4711"}')
    return paths


@pytest.fixture(params=["sqlite", "duckdb"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def shop(shop_files: dict[str, Path], engine: str) -> AsyncIterator[Database]:
    database = await open_database(str(shop_files[engine]))
    yield database
    await database.close()


@pytest.fixture
async def sqlite_shop(shop_files: dict[str, Path]) -> AsyncIterator[Database]:
    database = await open_database(str(shop_files["sqlite"]))
    yield database
    await database.close()


@pytest.fixture
async def duckdb_shop(shop_files: dict[str, Path]) -> AsyncIterator[Database]:
    database = await open_database(str(shop_files["duckdb"]))
    yield database
    await database.close()
