"""A small database of sales on SQLite, DuckDB, MariaDB and ClickHouse."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import duckdb
import pytest
from tests.servers import MysqlServer, make_clickhouse, mysql  # noqa: F401

from opposable.sql.database import Database
from opposable.sql.factory import open_database

DATA = """
CREATE TABLE 部门 (编号 INTEGER PRIMARY KEY, 名称 VARCHAR(20));
CREATE TABLE sales (id INTEGER PRIMARY KEY, 部门编号 INTEGER REFERENCES 部门(编号), amount INTEGER, city VARCHAR(20), day DATE,
  "Zip Code" VARCHAR(9), customer_id INTEGER);
CREATE TABLE customers (customer_id INTEGER, name VARCHAR(20));
INSERT INTO 部门 VALUES (1,'行政'),(2,'研发');
INSERT INTO sales VALUES (1,1,10,'Berlin','2024-01-01','1',7),(2,1,20,'Paris','2024-02-01','2',8),
  (3,2,30,'Paris','2024-03-01','3',9);
INSERT INTO customers VALUES (7,'Ann'),(8,'Bob'),(8,'Bob');
"""


@pytest.fixture(scope="session")
def mysql_sales(mysql: MysqlServer) -> str:  # noqa: F811
    return mysql.new_database(DATA.strip().removesuffix(";").split(";\n"))


@pytest.fixture(params=["sqlite", "duckdb", "mysql", "clickhouse"])
async def sales(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    path: Path | str = tmp_path / f"sales.{request.param}"
    if request.param == "mysql":
        path = request.getfixturevalue("mysql_sales")
    elif request.param == "clickhouse":
        path = make_clickhouse(tmp_path / "sales", DATA.strip().removesuffix(";").split(";\n"))
    elif request.param == "sqlite":
        connection = sqlite3.connect(path)
        connection.executescript(DATA)
        connection.close()
    else:
        with duckdb.connect(str(path)) as duckdb_connection:
            duckdb_connection.execute(DATA)
    database = await open_database(str(path))
    yield database
    await database.close()
