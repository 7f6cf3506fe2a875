"""Three small databases with the same shop in them, one for each engine."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import duckdb
import psycopg
import pytest
from tests.servers import MysqlServer, PostgresServer, make_clickhouse, mysql, postgresql  # noqa: F401

from opposable.sql.database import Database
from opposable.sql.factory import open_database

SHOP_SQL = """
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


SLOW_SQL = {
    "clickhouse": "SELECT count() FROM numbers(1000000000000000) WHERE number % 7 = 3",
}
"""Queries that run for minutes, where recursion has a limit."""


def get_slow_sql(engine: str) -> str:
    recursive = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT count(*) FROM r"
    return SLOW_SQL.get(engine, recursive)


@pytest.fixture(scope="session")
def shop_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("shop")
    paths = {"sqlite": folder / "shop.sqlite", "duckdb": folder / "shop.duckdb"}
    with_sqlite = sqlite3.connect(paths["sqlite"])
    with_sqlite.executescript(
        SHOP_SQL + "CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO notes VALUES('red shoes');"
    )
    with_sqlite.close()
    with duckdb.connect(str(paths["duckdb"])) as with_duckdb:
        with_duckdb.execute(SHOP_SQL)
        with_duckdb.execute(
            "CREATE SCHEMA hr; CREATE TABLE hr.people AS SELECT 1 AS id, [1,2] AS marks, {'a': 7} AS extra"
        )
        with_duckdb.execute("COMMENT ON TABLE customers IS 'who buys'; COMMENT ON COLUMN customers.city IS 'home town'")
    (folder / "secret.csv").write_text("word\nSECRET-4711\n")
    (folder / "secret.json").write_text('{"word": "SECRET-4711"}')
    return paths


@pytest.fixture(scope="session")
def postgres_owner(postgresql: PostgresServer) -> str:  # noqa: F811
    """The superuser's URL of the shop's database on PostgreSQL."""
    with psycopg.connect(postgresql.get_database_url("postgres"), autocommit=True) as made:
        made.execute("CREATE DATABASE shop")
    return postgresql.get_database_url("shop")


@pytest.fixture(scope="session")
def postgres_url(postgres_owner: str) -> str:
    """The shop on PostgreSQL, for a role that has SELECT alone."""
    with psycopg.connect(postgres_owner, autocommit=True) as made:
        made.execute("CREATE ROLE shop_reader LOGIN PASSWORD 'pass word%7'")
        made.execute(SHOP_SQL.replace("DOUBLE", "DOUBLE PRECISION"))
        made.execute("CREATE SCHEMA hr")
        made.execute("CREATE TABLE hr.people AS SELECT 1 AS id, ARRAY[1,2] AS marks, '{\"a\": 7}'::jsonb AS extra")
        made.execute('CREATE TABLE "Staff" ("Id" INTEGER PRIMARY KEY, "FullName" TEXT)')
        made.execute("INSERT INTO \"Staff\" VALUES (1, 'Eve')")
        made.execute("COMMENT ON TABLE customers IS 'who buys'; COMMENT ON COLUMN customers.city IS 'home town'")
        made.execute("CREATE TABLE hidden AS SELECT 'SECRET-4711' AS word")
        made.execute(
            "GRANT USAGE ON SCHEMA hr TO shop_reader; GRANT SELECT ON ALL TABLES IN SCHEMA public, hr TO shop_reader"
        )
        made.execute("REVOKE ALL ON hidden FROM shop_reader")
    return postgres_owner.replace("//postgres:@", "//shop_reader:pass%20word%257@")


@pytest.fixture(scope="session")
def mysql_url(mysql: MysqlServer) -> str:  # noqa: F811
    """The shop on MariaDB, for a user that has SELECT alone."""
    statements = SHOP_SQL.replace("VARCHAR", "VARCHAR(90)").strip().split(";\n")
    url = mysql.new_database([statement for statement in statements if statement], "shop")
    with mysql.connect("shop") as made, made.cursor() as cursor:
        for statement in (
            "ALTER TABLE customers COMMENT 'who buys', MODIFY city VARCHAR(90) COMMENT 'home town'",
            "CREATE TABLE things (big BIGINT UNSIGNED, bits BIT(3), span TIME, size ENUM('s', 'l'), raw BLOB, y YEAR)",
            "INSERT INTO things VALUES (18446744073709551615, 5, '25:00:00', 'l', x'00ff', 2024)",
            "CREATE TABLE counted (n INTEGER) ENGINE=MyISAM",
            "CREATE FUNCTION evil() RETURNS INTEGER BEGIN INSERT INTO counted VALUES (1); RETURN 1; END",
            "CREATE DATABASE private",
            "CREATE TABLE private.hidden AS SELECT 'SECRET-4711' AS word",
            "CREATE USER writer IDENTIFIED BY 'pass word%7'",
            "GRANT ALL ON shop.* TO writer",
            "GRANT SELECT ON private.* TO writer",
        ):
            cursor.execute(statement)
    return url


@pytest.fixture(scope="session")
def clickhouse_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The shop in a ClickHouse directory, with tables and views that read more than the directory."""
    statements = [
        *SHOP_SQL.strip().removesuffix(";").split(";\n"),
        "ALTER TABLE customers MODIFY COMMENT 'who buys'",
        "ALTER TABLE customers COMMENT COLUMN city 'home town'",
        "CREATE DATABASE hr",
        "SET data_type_default_nullable = 0",
        "CREATE TABLE hr.people (id Int32, marks Array(Int8), extra Tuple(a Int8)) ENGINE = ReplacingMergeTree ORDER BY id",
        "INSERT INTO hr.people VALUES (1, [1, 2], (7))",
        "CREATE TABLE types (big UInt64, huge Int256, price Decimal(38, 4), ratio Float64, size Enum8('s' = 1, 'l' = 2),"
        " tags Map(String, UInt8), note LowCardinality(Nullable(String)), at DateTime64(3, 'UTC'), id UUID, ip IPv4,"
        " pairs Array(Tuple(String, Nullable(Int8))), flag Bool) ENGINE = MergeTree ORDER BY tuple()",
        "INSERT INTO types VALUES (18446744073709551615, -5, 12345678901234567890.5, nan, 'l', {'k': 1}, NULL,"
        " '2024-01-02 03:04:05.678', '61f0c404-5cb3-11e7-907b-a6006ad3dba0', '1.2.3.4', [('a', NULL)], true)",
    ]
    return make_clickhouse(tmp_path_factory.mktemp("clickhouse") / "shop", statements)


@pytest.fixture(params=["sqlite", "duckdb", "postgres", "mysql", "clickhouse"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", "duckdb"])
def file_engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shop_url(request: pytest.FixtureRequest, engine: str, shop_files: dict[str, Path]) -> str:
    if engine in ("postgres", "mysql", "clickhouse"):
        return str(request.getfixturevalue(f"{engine}_url"))
    return str(shop_files[engine])


@pytest.fixture
async def shop(shop_url: str) -> AsyncIterator[Database]:
    database = await open_database(shop_url)
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


@pytest.fixture
async def postgres_shop(postgres_url: str) -> AsyncIterator[Database]:
    database = await open_database(postgres_url)
    yield database
    await database.close()


@pytest.fixture
async def clickhouse_shop(clickhouse_url: str) -> AsyncIterator[Database]:
    database = await open_database(clickhouse_url)
    yield database
    await database.close()


@pytest.fixture
async def mysql_shop(mysql_url: str) -> AsyncIterator[Database]:
    database = await open_database(mysql_url)
    yield database
    await database.close()


def read_mysql_contents(server: MysqlServer, database: str = "shop") -> dict[str, str]:
    """Return the content of every table of a database, the privileges and the global variables."""
    with server.connect(database) as looked, looked.cursor() as cursor:
        read = {}
        cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (database,))
        for (name,) in cursor.fetchall():
            cursor.execute(f'SELECT * FROM "{name}" ORDER BY 1')
            read[name] = str(cursor.fetchall())
        for name, sql in (
            ("rights", "SELECT * FROM mysql.global_priv ORDER BY user, host"),
            ("variables", "SELECT * FROM information_schema.global_variables WHERE variable_name LIKE '%log%'"),
            ("schemas", "SELECT schema_name FROM information_schema.schemata ORDER BY 1"),
        ):
            cursor.execute(sql)
            read[name] = str(cursor.fetchall())
    return read


def read_postgres_contents(owner: str) -> dict[str, str]:
    """Return the content and privileges of every table of the shop."""
    with psycopg.connect(owner, autocommit=True) as looked:
        names = looked.execute(
            "SELECT c.oid::regclass::text, coalesce(c.relacl::text, '') FROM pg_class c JOIN pg_namespace n"
            " ON n.oid = relnamespace WHERE nspname IN ('public', 'hr') ORDER BY 1"
        ).fetchall()
        tables = [name for name, _ in names if "pkey" not in name and "index" not in name]
        read = {name: str(looked.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall()) for name in tables}
    return read | {"rights": str(names)}
