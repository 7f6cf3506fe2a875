"""Whatever SQL is given, nothing is written, no other file is read or made, and time and memory stay bounded."""

import hashlib
import resource
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

from opposable.domain.errors import InvalidArguments, ToolError, ToolFailed, ToolRefused
from opposable.tools.sql import postgres_server
from opposable.tools.sql.database import Database, Limits, open_database
from opposable.tools.sql.duckdb_file import connect as connect_duckdb
from opposable.tools.sql.sqlite_file import SqliteFile
from opposable.tools.sql.tools import SqlTools

from .conftest import postgres_contents

pytestmark = pytest.mark.anyio

ATTACKS = [
    # writes
    "DELETE FROM orders",
    "delete from orders returning *",
    "UPDATE orders SET amount = 0",
    "INSERT INTO orders VALUES (9, 1, 1, '2024-01-01', 'x')",
    "INSERT INTO orders SELECT * FROM orders",
    "REPLACE INTO orders VALUES (1, 1, 1, '2024-01-01', 'x')",
    "MERGE INTO orders USING customers ON true WHEN MATCHED THEN DELETE",
    "DROP TABLE orders",
    "DROP VIEW big_orders",
    "TRUNCATE orders",
    "TRUNCATE TABLE orders",
    "ALTER TABLE orders ADD COLUMN x INTEGER",
    "ALTER TABLE orders RENAME TO o",
    "CREATE TABLE x (a INTEGER)",
    "CREATE TABLE x AS SELECT * FROM orders",
    "CREATE TEMP TABLE x (a INTEGER)",
    "CREATE TEMP VIEW v AS SELECT 1",
    "CREATE INDEX i ON orders (id)",
    "CREATE VIRTUAL TABLE f USING fts5(a)",
    "CREATE TRIGGER t AFTER INSERT ON orders BEGIN DELETE FROM orders; END",
    "CREATE MACRO m() AS 1",
    "CREATE FUNCTION f() AS 1",
    "CREATE SEQUENCE s",
    "CREATE SECRET (TYPE s3)",
    "CREATE SCHEMA x",
    "CREATE TYPE mood AS ENUM ('a')",
    "COMMENT ON TABLE orders IS 'x'",
    "GRANT ALL ON orders TO public",
    "SELECT * INTO x FROM orders",
    "SELECT * FROM orders FOR UPDATE",
    "WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x",
    "WITH x AS (INSERT INTO orders VALUES (9,1,1,NULL,NULL) RETURNING *) SELECT * FROM x",
    "WITH x AS (UPDATE orders SET amount = 1 RETURNING *) SELECT * FROM x",
    "WITH x AS (SELECT 1) DELETE FROM orders",
    "WITH x AS (SELECT 1) INSERT INTO orders SELECT 9,1,1,NULL,NULL FROM x",
    "SELECT * FROM (DELETE FROM orders RETURNING *)",
    "EXPLAIN ANALYZE DELETE FROM orders",
    "EXPLAIN SELECT 1",
    # several statements, and statements in hiding
    "SELECT 1; DELETE FROM orders",
    "SELECT 1;\n\n;DROP TABLE orders;",
    "SELECT 1; SELECT 2",
    "SELECT 1 /* ; */ ; DELETE FROM orders --",
    "SELECT 1 -- \n; DELETE FROM orders",
    "/* SELECT 1 */ DELETE FROM orders",
    "-- SELECT 1\nDELETE FROM orders",
    "SELECT /*! 1; DELETE FROM orders; */ 1",
    "SELECT 1 /*! UNION SELECT load_extension('x') */",
    "SELECT 1 /* /* */ ; DELETE FROM orders /* */ */",
    "SELECT 'a\\'; DELETE FROM orders; --'",
    "SELECT 1\0; DELETE FROM orders",
    "DELETE FROM orders",
    "ＤＥＬＥＴＥ FROM orders",
    "d\u0435lete from orders",
    "SELECT 1\uff1b DELETE FROM orders",
    "SELECT load_exten\u200bsion('x')",
    "(DELETE FROM orders)",
    "((SELECT 1); DELETE FROM orders)",
    "BEGIN; DELETE FROM orders; COMMIT",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT a",
    "START TRANSACTION",
    "PREPARE p AS DELETE FROM orders",
    "EXECUTE p",
    "EXECUTE IMMEDIATE 'DELETE FROM orders'",
    "DEALLOCATE p",
    "CALL pragma_version()",
    # engine commands
    "PRAGMA writable_schema=1",
    "PRAGMA query_only=0",
    "PRAGMA database_list",
    "PRAGMA journal_mode=DELETE",
    "PRAGMA user_version=7",
    "PRAGMA temp_store_directory='{dir}'",
    "SET threads=64",
    "SET lock_configuration=false",
    "SET VARIABLE a = 1",
    "RESET memory_limit",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{dir}/x.duckdb_extension'",
    "FORCE CHECKPOINT",
    "CHECKPOINT",
    "VACUUM",
    "VACUUM INTO '{dir}/copy.db'",
    "ANALYZE",
    "REINDEX",
    "USE hr",
    "DETACH shop",
    "ATTACH '{dir}/new.db' AS n",
    "ATTACH ':memory:' AS m",
    "ATTACH DATABASE '{dir}/shop.sqlite' AS other",
    "COPY orders TO '{dir}/out.csv'",
    "COPY (SELECT * FROM orders) TO '{dir}/out.parquet'",
    "COPY orders FROM '{dir}/secret.csv'",
    "COPY FROM DATABASE shop TO x",
    "EXPORT DATABASE '{dir}/export'",
    "IMPORT DATABASE '{dir}/export'",
    "SHOW TABLES",
    "DESCRIBE orders",
    "SUMMARIZE orders",
    "SELECT * FROM (SHOW TABLES)",
    "SELECT * FROM (DESCRIBE orders)",
    "PIVOT orders ON note USING sum(amount)",
    "KILL 1",
    # other files and the outside
    "SELECT * FROM read_csv('{dir}/secret.csv')",
    "SELECT * FROM READ_CSV_AUTO('{dir}/secret.csv')",
    "SELECT * FROM \"read_csv\"('{dir}/secret.csv')",
    "SELECT * FROM main.read_csv('{dir}/secret.csv')",
    "SELECT * FROM read_text('{dir}/secret.csv')",
    "SELECT * FROM read_blob('{dir}/secret.csv')",
    "SELECT * FROM read_json('{dir}/secret.json')",
    "SELECT * FROM read_json_auto('{dir}/secret.json')",
    "SELECT * FROM read_ndjson_objects('{dir}/secret.json')",
    "SELECT * FROM read_parquet('{dir}/x.parquet')",
    "SELECT * FROM parquet_scan('{dir}/x.parquet')",
    "SELECT * FROM parquet_metadata('{dir}/x.parquet')",
    "SELECT * FROM sniff_csv('{dir}/secret.csv')",
    "SELECT * FROM glob('{dir}/*')",
    "SELECT * FROM '{dir}/secret.csv'",
    'SELECT * FROM "{dir}/secret.csv"',
    "FROM '{dir}/secret.csv'",
    "SELECT * FROM 'secret.csv'",
    "SELECT * FROM secret.csv",
    "SELECT * FROM 'https://127.0.0.1/x.csv'",
    "SELECT * FROM sqlite_scan('{dir}/shop.sqlite', 'orders')",
    "SELECT * FROM postgres_scan('host=127.0.0.1', 'public', 'x')",
    "SELECT * FROM orders, read_text('{dir}/secret.csv')",
    "SELECT * FROM orders JOIN read_text('{dir}/secret.csv') ON true",
    "SELECT (SELECT content FROM read_text('{dir}/secret.csv'))",
    "SELECT * FROM orders WHERE note IN (SELECT content FROM read_text('{dir}/secret.csv'))",
    "SELECT * FROM orders ORDER BY (SELECT content FROM read_text('{dir}/secret.csv'))",
    "WITH x AS (SELECT * FROM read_text('{dir}/secret.csv')) SELECT * FROM x",
    "SELECT 1 AS read_text UNION SELECT content FROM read_text('{dir}/secret.csv')",
    "SELECT * FROM (SELECT 1) AS read_text(a), read_text('{dir}/secret.csv')",
    "SELECT * FROM LATERAL (SELECT * FROM read_text('{dir}/secret.csv'))",
    "SELECT * FROM query('SELECT * FROM read_text(''{dir}/secret.csv'')')",
    "SELECT * FROM query('DELETE FROM orders')",
    "SELECT * FROM query_table('{dir}/secret.csv')",
    "SELECT * FROM query_table('orders')",
    "SELECT json_execute_serialized_sql('x')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "SELECT * FROM pandas_scan(1)",
    "SELECT * FROM python_map_function(1)",
    "SELECT * FROM seq_scan('orders')",
    "SELECT load_extension('{dir}/x.so')",
    "SELECT LOAD_EXTENSION('{dir}/x.so', 'init')",
    "SELECT \"load_extension\"('{dir}/x.so')",
    "SELECT load_extension/**/('{dir}/x.so')",
    "SELECT name FROM customers WHERE load_extension('{dir}/x.so')",
    "SELECT writefile('{dir}/out.txt', 'x')",
    "SELECT readfile('{dir}/secret.csv')",
    "SELECT edit('x', 'vi')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT fts3_tokenizer('simple', x'4141414141414141')",
    "SELECT pg_read_file('{dir}/secret.csv')",
    "SELECT lo_import('{dir}/secret.csv')",
    "SELECT dblink('x', 'y')",
    "SELECT pg_sleep(20)",
    "SELECT sleep_ms(20000)",
    "SELECT nextval('s')",
    "SELECT setval('s', 1)",
    "SELECT write_log('x')",
    "SELECT (x -> read_text('{dir}/secret.csv')) FROM orders",
    "SELECT list_transform([1], lambda x: getenv('HOME'))",
    "SELECT 'x'.getenv()",
    # what the machine and the engine know
    "SELECT getenv('HOME')",
    "SELECT current_setting('access_mode')",
    "SELECT getvariable('a')",
    "SELECT current_query()",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_settings",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM duckdb_databases()",
    "SELECT * FROM duckdb_tables",
    "SELECT * FROM pragma_database_list()",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_table_info('orders')",
    'SELECT file FROM "pragma_database_list"',
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM pg_catalog.pg_class",
    "SELECT * FROM pg_tables",
    "SELECT * FROM sqlite_master",
    'SELECT * FROM "SQLITE_MASTER"',
    "SELECT * FROM main.sqlite_master",
    "SELECT * FROM sqlite_schema",
    "SELECT * FROM sqlite_temp_master",
    "SELECT count(*) FROM sqlite_master",
    "SELECT * FROM dbstat",
    "SELECT * FROM sqlite_stmt",
    "SELECT sqlite_compileoption_get(1)",
    "SELECT sqlite_log(1, 'x')",
    "SELECT * FROM system.main.duckdb_logs",
    # recursion of parsers
    "SELECT " + "(" * 5_000 + "1" + ")" * 5_000,
    "SELECT " + "NOT " * 5_000 + "1",
    "SELECT " + "-" * 9_999 + "1",
    "SELECT " + "- " * 4_000 + "1",
    "SELECT " + "~" * 5_000 + "1",
    "SELECT " + "CASE WHEN 1 THEN " * 1_000 + "1" + " END" * 1_000,
    "SELECT 1" + " UNION ALL SELECT 1" * 1_000,
    "SELECT " + "[" * 3_000 + "]" * 3_000,
    "SELECT 1" + "+1" * 40_000,
    "SELECT '" + "x" * 100_000 + "'",
]

BOMBS = {
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
        "SELECT instr(hex(zeroblob(450000)), hex(zeroblob(200000)) || '1')",
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

POSTGRES_ATTACKS = [
    "SELECT set_config('transaction_read_only', 'off', true)",
    "SELECT set_config('role', 'none', true)",
    "SELECT set_config('statement_timeout', '0', false)",
    "SELECT pg_catalog.set_config('role', 'none', true)",
    "SELECT \"set_config\"('role', 'none', true)",
    'SELECT "pg_catalog"."pg_read_file"(\'/etc/passwd\')',
    "SELECT pg_read_binary_file('/etc/passwd')",
    "SELECT pg_ls_dir('/')",
    "SELECT * FROM pg_ls_dir('/')",
    "SELECT * FROM pg_ls_logdir()",
    "SELECT pg_stat_file('/etc/passwd')",
    "SELECT pg_terminate_backend(1)",
    "SELECT pg_cancel_backend(1)",
    "SELECT pg_reload_conf()",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_notify('a', 'b')",
    "SELECT pg_logical_emit_message(true, 'a', 'b')",
    "SELECT pg_switch_wal()",
    "SELECT pg_backup_start('x')",
    "SELECT pg_sleep_for('10 seconds')",
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, 'x')",
    "SELECT lo_export(1, '{dir}/out.txt')",
    "SELECT lo_unlink(1)",
    "SELECT query_to_xml('DELETE FROM orders', true, true, '')",
    "SELECT table_to_xml('hidden', true, true, '')",
    "SELECT database_to_xml(true, true, '')",
    "SELECT cursor_to_xml('opposable', 1, true, true, '')",
    "SELECT ts_stat('SELECT 1')",
    "SELECT * FROM ts_stat('DELETE FROM orders')",
    "SELECT dblink_exec('dbname=shop', 'DELETE FROM orders')",
    "SELECT * FROM dblink('dbname=shop', 'SELECT 1') AS t(a int)",
    "SELECT * FROM crosstab('SELECT 1') AS t(a int)",
    "SELECT nextval('s'), currval('s'), lastval()",
    "SELECT txid_current()",
    "SELECT pg_current_xact_id()",
    "SELECT inet_server_addr()",
    "SELECT version()",
    "SELECT has_table_privilege('orders', 'INSERT')",
    "SELECT pg_get_viewdef('big_orders')",
    "SELECT 'hidden'::regclass",
    "SELECT xpath('/a', '<a/>')",
    "SELECT * FROM xmltable('/a' PASSING '<a/>' COLUMNS b int)",
    "SELECT * FROM pg_shadow",
    "SELECT * FROM pg_authid",
    "SELECT * FROM pg_settings",
    "SELECT * FROM pg_stat_activity",
    'SELECT * FROM "pg_catalog"."pg_class"',
    "SELECT * FROM pg_toast.pg_toast_1",
    "SELECT * FROM hidden",
    "SELECT * FROM public.hidden",
    "TABLE hidden",
    "SELECT 1; COMMIT; DELETE FROM orders",
    "COMMIT; DELETE FROM orders",
    "ROLLBACK; DELETE FROM orders",
    "SELECT 1) AS bounded(c1); DELETE FROM orders; --",
    "SELECT 1 AS a) AS bounded(c1), (SELECT 2",
    "SELECT $$a$$; DELETE FROM orders; SELECT $$b$$",
    "SELECT $t$ ' $t$; DELETE FROM orders; --'",
    "SELECT E'\\'; DELETE FROM orders; --'",
    "SELECT U&'\\0041'",
    'SELECT U&"\\0070g_sleep"(1)',
    "DO $$ BEGIN DELETE FROM orders; END $$",
    "LISTEN a",
    "NOTIFY a",
    "LOCK TABLE orders",
    "SET ROLE postgres",
    "RESET ROLE",
    "SET SESSION AUTHORIZATION postgres",
    "SET TRANSACTION READ WRITE",
    "DISCARD ALL",
    "CLUSTER",
    "REFRESH MATERIALIZED VIEW v",
    "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
    "FETCH ALL FROM opposable",
    "MOVE 1 IN opposable",
    "CLOSE ALL",
    "SECURITY LABEL ON TABLE orders IS 'x'",
    "COPY orders TO PROGRAM 'touch {dir}/out'",
    "COPY (SELECT 1) TO '{dir}/out.csv'",
    "IMPORT FOREIGN SCHEMA x FROM SERVER y INTO z",
    "CREATE EXTENSION dblink",
    "ALTER SYSTEM SET port = 1",
    "ALTER ROLE reader SUPERUSER",
    "SELECT * FROM orders FOR NO KEY UPDATE",
    "SELECT * FROM orders FOR SHARE",
    "WITH x AS MATERIALIZED (DELETE FROM orders RETURNING *) SELECT * FROM x",
    "WITH x AS (MERGE INTO orders USING customers ON true WHEN MATCHED THEN DELETE RETURNING *) SELECT * FROM x",
    "SELECT 1 OPERATOR(pg_catalog.+) 1",
]
"""Attacks on what only PostgreSQL has."""


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def state(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): digest(path) for path in folder.rglob("*") if path.is_file()}


def attacks_on(engine: str, folder: Path) -> list[str]:
    attacks = ATTACKS + (POSTGRES_ATTACKS if engine == "postgres" else [])
    return [attack.replace("{dir}", str(folder)) for attack in attacks]


@pytest.fixture
def looked_at(request: pytest.FixtureRequest, engine: str, shop_files: dict[str, Path]) -> Callable[[], dict[str, str]]:
    """What there is of files and, on PostgreSQL, of tables and rights: to be compared with the same later."""
    folder = shop_files["sqlite"].parent
    if engine != "postgres":
        return lambda: state(folder)
    owner = request.getfixturevalue("postgres_owner")
    return lambda: state(folder) | postgres_contents(owner)


def test_the_table_is_large_enough():
    assert len(set(ATTACKS)) >= 150


async def test_every_attack_is_refused_and_leaves_everything_as_it_was(shop, engine, shop_files, looked_at):
    before = looked_at()
    tools = SqlTools(shop, Limits(seconds=3))
    passed = []
    for sql in attacks_on(engine, shop_files["sqlite"].parent):
        try:
            passed.append((sql[:80], await tools.execute(sql)))
        except (ToolRefused, InvalidArguments) as error:
            passed += [(sql[:80], str(error))] if "SECRET-4711" in str(error) else []
    assert passed == []
    assert looked_at() == before


async def test_the_engine_alone_keeps_the_data_when_the_guard_is_passed_by(shop, engine, shop_files, looked_at):
    before = looked_at()
    for sql in attacks_on(engine, shop_files["sqlite"].parent):
        with suppress(ToolError, ValueError):
            assert "SECRET-4711" not in repr(await shop.run(sql, limits=Limits(seconds=1)))
    assert looked_at() == before
    assert (await shop.run("SELECT count(*) FROM orders")).rows == ((4,),)


async def test_postgresqls_transaction_itself_writes_nothing_whatever_the_role(
    postgres_owner, postgres_url, shop_files, monkeypatch
):
    """Neither the guard nor the tree is asked here: only the role, the read-only transaction and the named cursor."""
    monkeypatch.setattr(postgres_server, "guard", lambda *_: None)
    before = postgres_contents(postgres_owner)
    for url in (postgres_url, postgres_owner):
        database = await open_database(url)
        for sql in attacks_on("postgres", shop_files["sqlite"].parent):
            if "sleep" in sql or "pg_terminate" in sql or "pg_cancel" in sql or len(sql) > 1_000:
                continue
            with suppress(ToolError, ValueError):
                await database.explain(sql, limits=Limits(seconds=1))
            with suppress(ToolError, ValueError):
                found = repr(await database.run(sql, limits=Limits(seconds=1)))
                assert "root:" not in found, sql
        assert (await database.run("SELECT count(*) FROM orders")).rows == ((4,),)
        await database.close()
    assert postgres_contents(postgres_owner) == before


def test_duckdbs_connection_itself_neither_writes_nor_reads_other_files(shop_files):
    folder = shop_files["duckdb"].parent
    before = state(folder)
    connection = connect_duckdb(shop_files["duckdb"])
    for attack in ATTACKS:
        if "sleep" in attack or len(attack) > 1_000:
            continue
        with suppress(duckdb.Error):
            found = connection.cursor().execute(attack.replace("{dir}", str(folder))).fetchall()
            assert "SECRET-4711" not in repr(found), attack
    connection.close()
    assert state(folder) == before


async def test_sqlites_connection_itself_neither_writes_nor_reads_other_files(sqlite_shop, shop_files):
    folder = shop_files["sqlite"].parent
    before = state(folder)
    assert isinstance(sqlite_shop, SqliteFile)
    connection = sqlite_shop._connect()
    for attack in ATTACKS:
        with suppress(sqlite3.Error, sqlite3.Warning, ValueError):
            found = connection.execute(attack.replace("{dir}", str(folder))).fetchall()
            assert "SECRET-4711" not in repr(found), attack
    connection.close()
    assert state(folder) == before


async def test_bombs_end_within_their_time_and_memory(shop, engine):
    tools = SqlTools(shop, Limits(seconds=0.6))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for bomb in BOMBS[engine]:
        started = time.perf_counter()
        with suppress(ToolRefused, ToolFailed):
            found = await tools.execute(bomb, limit=10)
            assert len(str(found)) < 30_000, bomb
        assert time.perf_counter() - started < 4, bomb
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024 < 1_000


async def test_after_a_time_out_the_database_answers_at_once(shop: Database):
    slow = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT count(*) FROM r"
    for _ in range(5):
        with pytest.raises(ToolFailed, match=r"took longer than 0\.2 seconds and was stopped"):
            await shop.run(slow, limits=Limits(seconds=0.2))
    started = time.perf_counter()
    assert (await shop.run("SELECT 1")).rows == ((1,),)
    assert time.perf_counter() - started < 0.5
