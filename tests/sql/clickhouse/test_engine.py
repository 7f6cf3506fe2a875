"""ClickHouse: directories, names, views that read more than the directory, and the engine's own checks."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from chdb._exceptions import ChdbError
from tests.servers import make_clickhouse

from opposable.domain.errors import BadInput, InvalidArguments, ToolRefused
from opposable.sql.clickhouse import engine as clickhouse_engine
from opposable.sql.clickhouse_functions import CLICKHOUSE_FUNCTIONS, HIGHER_ORDER_FUNCTIONS
from opposable.sql.factory import open_database
from opposable.sql.tools import SchemaTools, SqlTools

pytestmark = pytest.mark.anyio

UNTRUSTED_SQL = [
    "SET data_type_default_nullable = 0",
    "CREATE TABLE plain (id Int32, note String DEFAULT upper('x'), twice Int32 ALIAS id * 2) ENGINE = MergeTree ORDER BY id",
    "INSERT INTO plain (id) VALUES (1)",
    "CREATE TABLE leaky (id Int32, secret String ALIAS file('{dir}/secret.txt')) ENGINE = MergeTree ORDER BY id",
    "CREATE TABLE outside (word String) ENGINE = File(LineAsString, '{dir}/secret.txt')",
    "CREATE TABLE web (word String) ENGINE = URL('http://127.0.0.1:1/', LineAsString)",
    "CREATE VIEW harmless AS SELECT id, note FROM plain",
    "CREATE VIEW nested AS SELECT id FROM harmless",
    "CREATE VIEW lure AS SELECT file('{dir}/secret.txt') AS word",
    "CREATE VIEW passed AS SELECT arrayMap(file, ['{dir}/secret.txt']) AS word",
    "CREATE VIEW behind AS SELECT word FROM lure",
    "CREATE VIEW other AS SELECT * FROM outside",
    "CREATE VIEW about AS SELECT name FROM system.tables",
]


async def test_tables_and_views_that_read_more_than_the_directory_are_not_listed(tmp_path):
    (tmp_path / "secret.txt").write_text("SECRET-4711")
    url = make_clickhouse(tmp_path / "db", [sql.replace("{dir}", str(tmp_path)) for sql in UNTRUSTED_SQL])
    database = await open_database(url)
    assert {table.name for table in (await database.get_schema()).tables} == {"plain", "harmless", "nested"}
    assert (await database.run("SELECT id, twice FROM plain")).rows == ((1, 2),)
    for table in ("leaky", "outside", "web", "lure", "passed", "behind", "other", "about"):
        for sql in (f"SELECT * FROM {table}", f"SELECT 1 IN {table}", f"SELECT globalIn('SECRET-4711', {table})"):
            with pytest.raises(ToolRefused) as raised:
                await database.run(sql)
            assert "SECRET" not in str(raised.value)
    await database.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT file('/etc/passwd')",
        "SELECT * FROM file('/etc/passwd', LineAsString)",
        "SELECT * FROM url('file:///etc/passwd', LineAsString)",
        "SELECT * FROM system.tables",
        "SELECT 1 IN system.one",
        "SELECT 1 INTO OUTFILE '{dir}/out.txt'",
        "SELECT 1; SELECT 2",
        "SELECT * APPLY(file) FROM customers",
        "SELECT * APPLY(upper) APPLY(file) FROM customers",
        "SELECT * APPLY(x -> file(x)) FROM customers",
        "SELECT * APPLY(x -> file(x)), id AS APPLY FROM orders WHERE APPLY AND 1",
        "SELECT arrayMap(file, ['/etc/passwd'])",
        "SELECT arrayMap((`file`), ['/etc/passwd']) FROM (SELECT 1 AS file)",
        "WITH (f -> arrayMap(f, ['/etc/passwd'])) AS g SELECT g(file)",
        "WITH (x -> x) AS file SELECT file('/etc/passwd')",
        "INSERT INTO orders SELECT * FROM orders",
        "DROP TABLE orders",
        "SET readonly = 0",
        "SELECT 1 SETTINGS readonly = 0",
    ],
)
async def test_the_engine_refuses_without_the_guard(clickhouse_shop, tmp_path, monkeypatch, sql):
    """Check the read-only mode, the engine's classification and its syntax tree alone."""
    monkeypatch.setattr(clickhouse_engine, "parse_safe_query", lambda sql, *_: SimpleNamespace(sql=sql, inner_sql=sql))
    monkeypatch.setattr(clickhouse_engine, "refuse_unlisted_tables", lambda *_: None)
    with pytest.raises(ToolRefused):
        await clickhouse_shop.run(sql.replace("{dir}", str(tmp_path)))
    assert not (tmp_path / "out.txt").exists()


async def test_a_name_passed_to_a_function_is_no_function_that_is_not_allowed(clickhouse_shop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.txt").write_text("SECRET-4711")
    tools = SqlTools(clickhouse_shop)
    with pytest.raises(InvalidArguments, match="There is no column file"):
        await tools.execute("SELECT arrayMap(file, ['secret.txt'])")
    with pytest.raises(ToolRefused, match="function file is not available"):
        await tools.execute("SELECT arrayMap(file, ['secret.txt']) FROM (SELECT 1 AS file)")
    assert (await tools.execute("SELECT arrayMap(upper, ['a']), user FROM (SELECT 1 AS user)"))["rows"] == [[["A"], 1]]


async def test_every_allowed_function_that_takes_a_function_is_known(clickhouse_shop):
    forms = (
        "toUInt8, [1]",
        "plus, [1], 1",
        "plus, [1], [1]",
        "equals, map(1, 1)",
        "tuple, map(1, 1)",
        "negate, 1, [1]",
    )
    names = [f"{form})" for form in forms]
    connection = clickhouse_shop._connection
    found = set()
    for (name,) in clickhouse_engine._fetch(
        connection, "SELECT name FROM system.functions WHERE name ~ '^(array|map)'"
    )[1]:
        if name.casefold() not in CLICKHOUSE_FUNCTIONS:
            continue
        for arguments in names:
            with suppress(ChdbError):
                clickhouse_engine._query(connection, f"EXPLAIN QUERY TREE SELECT {name}({arguments}", None, "TSVRaw")
                found.add(name.casefold())
                break
    assert found - HIGHER_ORDER_FUNCTIONS == set()
    assert len(found) > 25


async def test_the_name_of_a_table_is_no_parameter(clickhouse_shop):
    for sql in ("SELECT * FROM {p1:Identifier}", "SELECT {p1:Identifier}", "SELECT 1 FROM {p1:Identifier}.orders"):
        with pytest.raises(ToolRefused, match="write names of tables and columns into the SQL"):
            await SqlTools(clickhouse_shop).execute(f"{sql} WHERE '' != {{{{v}}}}", {"v": "orders"})


async def test_types_comments_and_keys_are_listed(clickhouse_shop):
    tables = {table["name"]: table for table in await SchemaTools(clickhouse_shop).list_tables()}
    assert tables["customers"] == {"name": "customers", "kind": "table", "columns": 4, "rows": 3, "comment": "who buys"}
    assert tables["hr.people"] == {"name": "hr.people", "kind": "table", "columns": 3, "rows": 1}
    listed = (await SchemaTools(clickhouse_shop).list_columns("types", samples=True))["columns"]
    assert [column["type"] for column in listed][:3] == ["UInt64", "Int256", "Decimal(38, 4)"]
    assert [column["nullable"] for column in listed][5:7] == [False, True]
    assert [column["samples"] for column in listed][4:6] == [["l"], [{"k": 1}]]


async def test_samples_are_read_from_a_database_with_a_chinese_name(tmp_path):
    statements = ["CREATE DATABASE 人事", "CREATE TABLE 人事.员工 (姓名 String) ENGINE = MergeTree ORDER BY tuple()"]
    url = make_clickhouse(tmp_path / "db", [*statements, "INSERT INTO 人事.员工 VALUES ('王芳')"])
    database = await open_database(url)
    [column] = (await SchemaTools(database).list_columns("人事.员工", samples=True))["columns"]
    assert column["samples"] == ["王芳"]
    await database.close()


async def test_names_get_the_case_and_the_quotes_that_the_engine_reads(clickhouse_shop):
    found = await SqlTools(clickhouse_shop).execute(
        "SELECT d.名称 AS 名 FROM 部门 d WHERE d.预算 > 500 AND d.名称 <> '名称'"
    )
    assert (found["rows"], found["sql"]) == (
        [["研发部"]],
        'SELECT d."名称" AS "名" FROM "部门" d WHERE d."预算" > 500 AND d."名称" <> \'名称\'',
    )
    found = await SqlTools(clickhouse_shop).execute("SELECT Id FROM ORDERS WHERE ID = 1")
    assert (found["rows"], found["sql"]) == ([[1]], "SELECT id FROM orders WHERE id = 1")


async def test_parameters_arrive_with_their_signs_and_types(clickhouse_shop):
    text = "it's \\ {x:String}\t\n 100%"
    found = await SqlTools(clickhouse_shop).execute(
        "SELECT {{text}}, {{n}} + 1, {{x}} * 2, {{flag}}, {{none}} IS NULL",
        {"text": text, "n": 2, "x": 1.5, "flag": True, "none": None},
    )
    assert found["rows"] == [[text, 3, 3, True, 1]]


async def test_rows_without_a_match_have_null(clickhouse_shop):
    sql = (
        "SELECT c.id, o.id FROM customers c LEFT JOIN orders o ON o.customer_id = c.id AND o.amount > 50 ORDER BY c.id"
    )
    assert (await clickhouse_shop.run(sql)).rows == ((1, None), (2, None), (3, 4))


async def test_a_directory_that_cannot_be_opened_is_reported_in_one_sentence(tmp_path, clickhouse_shop):
    with pytest.raises(BadInput, match=r"is not a data directory of ClickHouse\. Use clickhouse:///path"):
        await open_database(f"clickhouse:///{tmp_path}")
    (tmp_path / "other" / "metadata").mkdir(parents=True)
    with pytest.raises(BadInput, match="cannot be opened: another directory is open in this process"):
        await open_database(f"clickhouse:///{tmp_path}/other")
    assert not (tmp_path / "other" / "store").exists()


def hold_open(code: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


async def test_a_directory_that_another_program_has_open_is_reported(tmp_path):
    url = make_clickhouse(tmp_path / "db", ["CREATE TABLE t (a Int8) ENGINE = Log"])
    code = f"import chdb; c = chdb.connect({str(tmp_path / 'db')!r}); print('open', flush=True); input()"
    with hold_open(code) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(BadInput, match=r"cannot be opened: another program has it open\. Close that program first"):
            await open_database(url)
        holder.kill()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="Only Linux lists the threads of a process.")
async def test_a_closed_directory_leaves_no_threads(tmp_path):
    url = make_clickhouse(tmp_path / "db", ["CREATE TABLE t (a Int8 NOT NULL) ENGINE = MergeTree ORDER BY a"])
    counts = []
    for _ in range(6):
        database = await open_database(url)
        assert (await database.run("SELECT count(*) FROM t")).rows == ((0,),)
        await database.close()
        counts.append(sum(1 for _ in Path("/proc/self/task").iterdir()))
    assert counts[-1] - counts[0] < 5


@pytest.mark.parametrize(
    "sql",
    [
        "EXPLAIN SELECT * FROM orders WHERE id = 1",
        "EXPLAIN PLAN indexes = 1, actions = 1 SELECT count() FROM big_orders",
        "EXPLAIN SYNTAX SELECT sum(COLUMNS('amount')) FROM orders",
        "EXPLAIN AST SELECT 1",
        "EXPLAIN QUERY TREE SELECT id FROM orders",
        "EXPLAIN PIPELINE (SELECT id FROM orders)",
        "EXPLAIN ESTIMATE SELECT id FROM orders",
        "DESCRIBE TABLE orders",
        "DESC hr.people",
        "DESCRIBE (SELECT id, amount FROM orders)",
    ],
)
async def test_plans_and_columns_are_shown_as_the_engine_writes_them(clickhouse_shop, sql):
    found = await SqlTools(clickhouse_shop).execute(sql)
    expected = clickhouse_engine._fetch(clickhouse_shop._connection, sql)
    assert (found["sql"], found["columns"], found["rows"]) == (
        sql,
        list(expected[0]),
        [list(row) for row in expected[1]],
    )
