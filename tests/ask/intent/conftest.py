"""One shop on three engines, and the semantic model of it."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import duckdb
import psycopg
import pytest
from tests.servers import make_clickhouse, mysql, postgresql  # noqa: F401

from opposable.ask.semantics.loader import parse_semantic_model
from opposable.ask.semantics.model import SemanticModel
from opposable.sql.database import Database
from opposable.sql.factory import open_database

SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(40), city VARCHAR(40));
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, amount DECIMAL(10,2), day DATE, status VARCHAR(10));
CREATE TABLE lines (order_id INTEGER, product VARCHAR(40), quantity INTEGER);
CREATE TABLE visits (customer_id INTEGER, day DATE);
INSERT INTO customers VALUES (1,'Ann','Berlin'),(2,'Bob','上海'),(3,'李雷','上海'),(4,'O''Neil',NULL);
INSERT INTO orders VALUES (1,1,10,'2023-11-30','paid'),(2,1,20,'2024-02-29','paid'),(3,2,30,'2024-03-31','paid'),
  (4,3,40,'2024-12-31','paid'),(5,3,1000,'2024-06-01','void'),(6,NULL,5,'2023-02-01','paid'),(7,4,7,'2023-12-15','paid');
INSERT INTO lines VALUES (1,'tea',1),(2,'tea',2),(2,'cup',1),(3,'cup',3),(4,'tea',4),(5,'tea',100),(6,NULL,1),(7,'cup',1);
INSERT INTO visits VALUES (1,'2024-01-01'),(1,'2024-02-01'),(2,'2024-03-01'),(4,'2023-03-01');
"""

MODEL = """
name: shop
joins: [lines.order_id = orders.id, orders.customer_id = customers.id, visits.customer_id = customers.id]
time: orders.day
metrics:
  revenue:
    expr: SUM(amount)
    table: orders
    default_filters: [paid]
    synonyms: [sales, 销售额, 流水]
    unit: EUR
  orders: {expr: COUNT(*), table: orders, synonyms: [number of orders, 订单数]}
  units: {expr: SUM(quantity), table: lines, synonyms: [销量]}
  visits: {expr: COUNT(*), table: visits, time: day, synonyms: [访问量]}
  customers: {expr: COUNT(*), table: customers, synonyms: [客户数]}
  revenue_per_visit: {expr: revenue / visits, synonyms: [每次访问销售额]}
  newest: {expr: MAX(day), table: orders}
dimensions:
  city: {expr: city, table: customers, synonyms: [town, 城市], values: {上海: [Shanghai], Berlin: [柏林]}}
  customer: {expr: name, table: customers, synonyms: [client, 客户]}
  product: {expr: product, table: lines, synonyms: [产品, 商品]}
  amount: {expr: amount, table: orders, synonyms: [订单金额]}
filters:
  paid: {expr: status = 'paid', table: orders, synonyms: [已付款]}
  big: {expr: amount >= 30, table: orders, synonyms: [big orders, 大额]}
exclusions:
  tea: {expr: product = 'tea', table: lines, synonyms: [茶]}
"""


@pytest.fixture(scope="session")
def shop_model() -> SemanticModel:
    return parse_semantic_model(MODEL, "shop.yaml")


@pytest.fixture(scope="session")
def shop_urls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder: Path = tmp_path_factory.mktemp("shop")
    with closing(sqlite3.connect(folder / "shop.sqlite")) as connection, connection:
        connection.executescript(SHOP)
    connection.close()
    with duckdb.connect(str(folder / "shop.duckdb")) as duckdb_connection:
        duckdb_connection.execute(SHOP)
    return {kind: str(folder / f"shop.{kind}") for kind in ("sqlite", "duckdb")}


@pytest.fixture(params=["sqlite", "duckdb", "postgres", "mysql", "clickhouse"])
async def shop(request: pytest.FixtureRequest, shop_urls: dict[str, str]) -> AsyncIterator[Database]:
    url = shop_urls.get(request.param)
    if url is None:
        url = request.getfixturevalue(f"{request.param}_shop")
    database = await open_database(url)
    yield database
    await database.close()


@pytest.fixture(scope="session")
def clickhouse_shop(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_clickhouse(tmp_path_factory.mktemp("shop") / "db", SHOP.strip().removesuffix(";").split(";\n"))


@pytest.fixture(scope="session")
def mysql_shop(mysql) -> str:  # noqa: F811
    return mysql.new_database(SHOP.strip().removesuffix(";").split(";\n"))


@pytest.fixture(scope="session")
def postgres_shop(postgresql) -> str:  # noqa: F811
    owner_url = postgresql.new_database()
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute(SHOP)
        connection.execute("CREATE ROLE intent_reader LOGIN PASSWORD 'read'")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO intent_reader")
    info = psycopg.conninfo.conninfo_to_dict(owner_url)
    from urllib.parse import quote

    host = quote(str(info["host"]), safe="")
    return (
        f"postgresql://intent_reader:read@/{info['dbname']}?host={host}"
        if host.startswith("%2F")
        else (f"postgresql://intent_reader:read@{info['host']}:{info.get('port', 5432)}/{info['dbname']}")
    )
