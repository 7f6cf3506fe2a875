"""No SQL writes, reads another file, or exceeds the limits of time and memory."""

import resource
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest
from tests.sql.attacks import ATTACKS, list_attacks, snapshot_folder
from tests.sql.conftest import get_slow_sql, read_mysql_contents, read_postgres_contents

from opposable.domain.errors import InvalidArguments, ToolError, ToolFailed, ToolRefused
from opposable.sql.database import Database, QueryLimits
from opposable.sql.described_statements import extract_query
from opposable.sql.duckdb.engine import connect as connect_duckdb
from opposable.sql.factory import open_database
from opposable.sql.postgres import engine as postgres_server
from opposable.sql.sqlite.engine import SqliteDatabase
from opposable.sql.statement_guard import Query
from opposable.sql.tools import SqlTools

pytestmark = pytest.mark.anyio

EXPENSIVE_QUERIES = {
    "sqlite": [
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT count(*) FROM r",
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT i FROM r",
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT json_group_array(i) FROM r",
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT group_concat(i) FROM r",
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT i, random() FROM r ORDER BY 2",
        "WITH RECURSIVE r(i, s) AS (SELECT 1, 'aaaaaaaaaa' UNION ALL SELECT i+1, s||s FROM r) SELECT max(length(s)) FROM r",
        "SELECT zeroblob(1000000000)",
        "SELECT printf('%1000000000d', 1)",
        "SELECT replace(hex(zeroblob(100000)), '0', hex(zeroblob(100000)))",
        "SELECT instr(hex(zeroblob(180000)), hex(zeroblob(80000)) || '1')",
        "SELECT count(*) FROM customers a, customers b, customers c, customers d, customers e, customers f, customers g,"
        " customers h, customers i, customers j, customers k, customers l, customers m, customers n, customers o",
    ],
    "postgres": [
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT count(*) FROM r",
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT i FROM r",
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT i, random() FROM r ORDER BY 2",
        "WITH RECURSIVE r(i, s) AS (SELECT 1, 'aaaaaaaaaa' UNION ALL SELECT i+1, s||s FROM r) SELECT s FROM r",
        "SELECT * FROM generate_series(1, 100000000000)",
        "SELECT generate_series(1, 100000000000)",
        "SELECT repeat('a', 900000000)",
        "SELECT repeat('a', 900_000_000)",
        "SELECT repeat(repeat('a', 30000), 30000)",
        "SELECT repeat(note, amount::int * 1000000) FROM orders",
        "SELECT lpad('a', 900000000, 'b')",
        "SELECT rpad('a', 900000000)",
        "SELECT format('%900000000s', 1)",
        "SELECT format('%*s', 900000000, 1)",
        "SELECT array_fill(1, ARRAY[10000, 20000])",
        "SELECT string_agg('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', '') FROM generate_series(1, 10000000)",
        "SELECT array_agg(i) FROM generate_series(1, 10000000) AS i",
        "SELECT length(s) FROM ("
        + "SELECT s||s AS s FROM (" * 28
        + "SELECT note AS s FROM orders"
        + ") q" * 28
        + ") q",
        "SELECT count(*) FROM orders a, orders b, orders c, orders d, orders e, orders f, orders g, orders h, orders i,"
        " orders j, orders k, orders l, orders m, orders n, orders o",
        "SELECT repeat('x', 90000) FROM generate_series(1, 100000)",
    ],
    "mysql": [
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT count(*) FROM r",
        "WITH RECURSIVE r(i, s) AS (SELECT 1, CAST('a' AS CHAR(10000)) UNION ALL SELECT i+1, s FROM r) SELECT s FROM r",
        "SELECT repeat('a', 900000000)",
        "SELECT repeat(repeat('a', 30000), 30000)",
        "SELECT repeat(note, amount * 1000000) FROM orders",
        "SELECT lpad('a', 900000000, 'b'), rpad('a', 900000000, 'b'), space(900000000)",
        "SELECT repeat('a', 15000000) FROM orders a, orders b, orders c, orders d, orders e LIMIT 1000",
        "SELECT group_concat(repeat('a', 1000000)) FROM orders a, orders b, orders c, orders d, orders e",
        "SELECT json_arrayagg(a.note) FROM orders a, orders b, orders c, orders d, orders e, orders f, orders g, orders h",
        "SELECT a.id FROM orders a, orders b, orders c, orders d, orders e, orders f, orders g, orders h, orders i"
        " LIMIT 1000000000",
        "SELECT count(*) FROM orders a, orders b, orders c, orders d, orders e, orders f, orders g, orders h, orders i,"
        " orders j, orders k, orders l, orders m, orders n, orders o",
        "SELECT a.note, rand() FROM orders a, orders b, orders c, orders d, orders e, orders f, orders g, orders h,"
        " orders i, orders j, orders k, orders l ORDER BY 2",
        "SELECT 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' REGEXP '^(((a+)+)+)+b$'",
    ],
    "clickhouse": [
        "SELECT count() FROM numbers(100000000000000) WHERE number % 7 = 3",
        "SELECT number FROM numbers(100000000000000)",
        "SELECT number, rand() AS r FROM numbers(100000000000) ORDER BY r",
        "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i+1 FROM r) SELECT count(*) FROM r",
        "SELECT sum(a.number * b.number) FROM numbers(100000000) a, numbers(100000000) b",
        "SELECT groupArray(number) FROM numbers(10000000000)",
        "SELECT arraySum(range(1000000000))",
        "SELECT arrayMap(x -> range(100000), range(100000))",
        "SELECT repeat('a', 3000000000)",
        "SELECT repeat(repeat('a', 100000), 100000)",
        "SELECT length(repeat('a', 900000000))",
        "SELECT leftPad('a', 1000000000, 'b')",
        "SELECT repeat('x', 90000) FROM numbers(100000)",
        "SELECT groupConcat(repeat('a', 1000000)) FROM numbers(100000000)",
        "SELECT uniqExact(number) FROM numbers(100000000000)",
        "SELECT replaceRegexpAll(repeat('a', 1000000), 'a', repeat('b', 100000))",
        "SELECT count(*) FROM orders a, orders b, orders c, orders d, orders e, orders f, orders g, orders h, orders i,"
        " orders j, orders k, orders l, orders m, orders n, orders o, orders p, orders q",
    ],
    "duckdb": [
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT count(*) FROM r",
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT i FROM r",
        "WITH RECURSIVE r(i, s) AS (SELECT 1, 'aaaaaaaaaa' UNION ALL SELECT i+1, s||s FROM r) SELECT max(length(s)) FROM r",
        "SELECT * FROM range(100000000000)",
        "SELECT sum(a.range * b.range * c.range) FROM range(100000) a, range(100000) b, range(100000) c",
        "SELECT array_agg(range) FROM range(10000000000)",
        "SELECT string_agg('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', '') FROM range(10000000000)",
        "SELECT range, random() AS r FROM range(10000000000) ORDER BY r",
        "SELECT list_resize([1], 3000000000)",
        "SELECT repeat('a', 3000000000)",
        "SELECT repeat(repeat('a', 10000), 10000)",
        "SELECT repeat(note, amount::INT) FROM orders",
        "SELECT repeat(s, 10000) FROM (SELECT repeat('a', 10000) AS s)",
        "SELECT lpad('a', 1000000000, 'b')",
        "SELECT rpad('a', 1000000000, 'b')",
        "SELECT bitstring('1', 2000000000)",
        "SELECT printf('%1000000000d', 1)",
        "SELECT printf('%*d', 1000000000, 1)",
        "SELECT format('{:>1000000000}', 1)",
        "SELECT format('{:{}}', 1, 1000000000)",
        "SELECT len(range(100000000))",
        "SELECT to_json(range(100000000))",
        "SELECT len(list_transform(range(1000000), lambda x: range(100000)))",
        "SELECT length(s) FROM (" + "SELECT s||s AS s FROM (" * 28 + "SELECT note AS s FROM orders" + ")" * 29,
        "SELECT string_agg(a.note || b.note, '') FROM orders a, orders b, orders c, range(100000000)",
        "SELECT replace('aaaaaaaaaaaaaaaa', 'a', repeat('b', 30000000))",
    ],
}
"""Queries that may run, but not for long, and not with much memory."""


@pytest.fixture
def snapshot(request: pytest.FixtureRequest, engine: str, shop_files: dict[str, Path]) -> Callable[[], dict[str, str]]:
    """A function that returns the state of files, tables and privileges."""
    folder = shop_files["sqlite"].parent
    if engine in ("sqlite", "duckdb", "clickhouse"):
        return lambda: snapshot_folder(folder)
    if engine == "mysql":
        server = request.getfixturevalue("mysql")
        return lambda: snapshot_folder(folder) | read_mysql_contents(server)
    owner = request.getfixturevalue("postgres_owner")
    return lambda: snapshot_folder(folder) | read_postgres_contents(owner)


def test_there_are_at_least_150_attacks():
    assert len(set(ATTACKS)) >= 150


async def test_every_attack_is_refused_and_changes_nothing(shop, engine, shop_files, snapshot):
    before = snapshot()
    tools = SqlTools(shop, QueryLimits(timeout_seconds=3))
    successes = []
    for sql in list_attacks(engine, shop_files["sqlite"].parent):
        try:
            successes.append((sql[:80], await tools.execute(sql)))
        except (ToolRefused, InvalidArguments) as error:
            successes += [(sql[:80], str(error))] if "SECRET-4711" in str(error) else []
    assert successes == []
    assert snapshot() == before


async def test_the_engine_protects_the_data_without_the_guard(shop, engine, shop_files, snapshot):
    before = snapshot()
    for sql in list_attacks(engine, shop_files["sqlite"].parent):
        with suppress(ToolError, ValueError):
            assert "SECRET-4711" not in repr(await shop.run(sql, limits=QueryLimits(timeout_seconds=1)))
    assert snapshot() == before
    assert (await shop.run("SELECT count(*) FROM orders")).rows == ((4,),)


async def test_the_postgres_transaction_writes_nothing_with_any_role(
    postgres_owner, postgres_url, shop_files, monkeypatch
):
    """Check the role, the read-only transaction and the named cursor alone."""
    monkeypatch.setattr(
        postgres_server,
        "parse_safe_query",
        lambda sql, *_: Query(sql, "postgres", None, extract_query(sql, "postgres")),
    )
    monkeypatch.setattr(postgres_server, "refuse_unlisted_tables", lambda *_: None)
    monkeypatch.setattr(postgres_server, "_refuse_views", lambda *_: None)
    before = read_postgres_contents(postgres_owner)
    for url in (postgres_url, postgres_owner):
        database = await open_database(url)
        for sql in list_attacks("postgres", shop_files["sqlite"].parent):
            if "sleep" in sql or "pg_terminate" in sql or "pg_cancel" in sql or len(sql) > 1_000:
                continue
            with suppress(ToolError, ValueError):
                await database.explain(sql, limits=QueryLimits(timeout_seconds=1))
            with suppress(ToolError, ValueError):
                found = repr(await database.run(sql, limits=QueryLimits(timeout_seconds=1)))
                assert "root:" not in found, sql
        assert (await database.run("SELECT count(*) FROM orders")).rows == ((4,),)
        await database.close()
    assert read_postgres_contents(postgres_owner) == before


def test_the_duckdb_connection_neither_writes_nor_reads_other_files(shop_files):
    folder = shop_files["duckdb"].parent
    before = snapshot_folder(folder)
    connection = connect_duckdb(shop_files["duckdb"])
    for attack in ATTACKS:
        if "sleep" in attack or len(attack) > 1_000:
            continue
        with suppress(duckdb.Error):
            found = connection.cursor().execute(attack.replace("{dir}", str(folder))).fetchall()
            assert "SECRET-4711" not in repr(found), attack
    connection.close()
    assert snapshot_folder(folder) == before


async def test_the_sqlite_connection_neither_writes_nor_reads_other_files(sqlite_shop, shop_files):
    folder = shop_files["sqlite"].parent
    before = snapshot_folder(folder)
    assert isinstance(sqlite_shop, SqliteDatabase)
    connection = sqlite_shop._open_connection()
    for attack in ATTACKS:
        with suppress(sqlite3.Error, sqlite3.Warning, ValueError):
            found = connection.execute(attack.replace("{dir}", str(folder))).fetchall()
            assert "SECRET-4711" not in repr(found), attack
    connection.close()
    assert snapshot_folder(folder) == before


async def test_expensive_queries_end_within_limits_of_time_and_memory(shop, engine):
    tools = SqlTools(shop, QueryLimits(timeout_seconds=0.3))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for query in EXPENSIVE_QUERIES[engine]:
        started = time.perf_counter()
        with suppress(ToolRefused, ToolFailed):
            found = await tools.execute(query, limit=10)
            assert len(str(found)) < 30_000, query
        assert time.perf_counter() - started < 4, query
    # Without a limit they take 3 to 80 GB. A cancelled query of ClickHouse may still hold its 512 MB when the next one runs.
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024 < 2_000


async def test_the_database_answers_at_once_after_a_time_out(shop: Database):
    slow = get_slow_sql(shop.dialect)
    for _ in range(3):
        with pytest.raises(ToolFailed, match=r"took longer than 0\.2 seconds and was stopped"):
            await shop.run(slow, limits=QueryLimits(timeout_seconds=0.2))
    started = time.perf_counter()
    assert (await shop.run("SELECT 1")).rows == ((1,),)
    assert time.perf_counter() - started < 5  # the stopped queries run much longer
