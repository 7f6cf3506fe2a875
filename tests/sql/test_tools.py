"""The SQL tools as a model calls them."""

import json
import re
import sqlite3
from contextlib import closing

import duckdb
import pytest
from tests.sql.conftest import get_slow_sql

from opposable.app.tool_factory import create_sql_tools
from opposable.domain.errors import InvalidArguments, ToolFailed, ToolRefused
from opposable.sql.database import QueryLimits
from opposable.sql.factory import open_database
from opposable.sql.tools import TOOL_ALIASES, SchemaTools, SqlTools
from opposable.tools.function import tools_from_object
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio


async def test_tables_are_listed_with_kind_and_size(sqlite_shop, duckdb_shop):
    assert await SchemaTools(sqlite_shop).list_tables() == [
        {"name": "customers", "kind": "table", "columns": 4, "rows": 3},
        {"name": "orders", "kind": "table", "columns": 5, "rows": 4},
        {"name": "order lines", "kind": "table", "columns": 3, "rows": 4},
        {"name": "部门", "kind": "table", "columns": 3, "rows": 2},
        {"name": "big_orders", "kind": "view", "columns": 2},
        {"name": "notes", "kind": "table", "columns": 1, "rows": 1},
    ]
    tables = {table["name"]: table for table in await SchemaTools(duckdb_shop).list_tables()}
    assert tables["customers"] == {"name": "customers", "kind": "table", "columns": 4, "rows": 3, "comment": "who buys"}
    assert tables["big_orders"] == {"name": "big_orders", "kind": "view", "columns": 2}
    assert tables["hr.people"] == {"name": "hr.people", "kind": "table", "columns": 3, "rows": 1}


@pytest.mark.parametrize("name", ["orders", "ORDERS", '"orders"', "`orders`", "{default}.orders", " [orders] "])
async def test_a_table_is_found_in_any_case_and_quoting(shop, name):
    name = name.replace("{default}", (await shop.get_schema()).default_schema)
    found = await SchemaTools(shop).list_columns(name, include_types=False)
    assert found == {
        "table": "orders",
        "columns": [
            {"name": "id", "primary_key": True},
            {"name": "customer_id"} | ({} if shop.dialect == "clickhouse" else {"references": "customers.id"}),
            {"name": "amount"},
            {"name": "ordered"},
            {"name": "note"},
        ],
    }


async def test_columns_come_with_types_comments_and_real_values(duckdb_shop):
    found = await SchemaTools(duckdb_shop).list_columns("customers", samples=True)
    assert found["columns"][2] == {
        "name": "city",
        "type": "VARCHAR",
        "nullable": True,
        "comment": "home town",
        "samples": ["Berlin", "Paris", "上海"],
    }


async def test_an_unknown_table_is_reported_with_similar_names(shop):
    with pytest.raises(InvalidArguments, match=r"table: there is no such table; did you mean orders"):
        await SchemaTools(shop).list_columns("ordres")
    with pytest.raises(InvalidArguments, match=r"there is no such table; the tables are .*customers.*orders"):
        await SchemaTools(shop).list_columns("zzzzzz")


async def test_a_similar_name_is_reported_and_not_run(shop):
    for sql in (
        "SELECT nmae FROM customers",
        "SELECT na_me FROM customers",
        "SELECT name FROM customer",
        "SELECT id FROM order",
        "SELECT id FROM or_ders",
        "SELECT x.name FROM customers c JOIN orders o ON o.customer_id = c.id",
        "SELECT o.name FROM customers c JOIN orders o ON o.customer_id = c.id",
        *(["SELECT customers.name FROM customers c"] if shop.dialect != "clickhouse" else []),
        "SELECT count(*) FROM orders o JOIN customers c ON c.customer_id = o.id",
        "SELECT count(*) FROM orders o JOIN customers c ON lower(o.city) = lower(c.city)",
    ):
        with pytest.raises((InvalidArguments, ToolFailed, ToolRefused)):
            await SqlTools(shop).execute(sql)


async def test_sql_that_the_engine_accepts_runs_as_written(shop):
    for sql in (
        "select  NAME from CUSTOMERS c where c.id in (select customer_id from orders) order by 1",
        "SELECT COUNT(*) AS n FROM orders o LEFT JOIN customers c ON c.id = o.customer_id GROUP BY c.id HAVING COUNT(o.id) > 0",
        "SELECT 'paid' AS status, COUNT(*) FROM orders WHERE note = 'no such note'",
    ):
        if shop.dialect in ("mysql", "clickhouse"):  # they distinguish names by letter case
            sql = sql.replace("CUSTOMERS", "customers").replace("NAME", "name")
        found = await SqlTools(shop).execute(sql)
        assert (found["sql"], found["corrections"]) == (sql, [])


async def test_hidden_columns_of_a_virtual_table_are_not_listed_and_may_be_used(sqlite_shop):
    listed = await SchemaTools(sqlite_shop).list_columns("notes", include_types=False)
    assert [column["name"] for column in listed["columns"]] == ["body"]
    found = await SqlTools(sqlite_shop).execute(
        "SELECT body，rank FROM notes WHERE notes MATCH 'red' ORDER BY notes.rank"
    )
    assert (found["row_count"], found["corrections"]) == (1, ["full-width signs → ASCII"])


async def test_execute_returns_rows_sql_and_corrections(shop):
    found = await SqlTools(shop).execute("SELECT ＮＡＭＥ FROM Ｃｕｓｔｏｍｅｒｓ ORDER BY 1", limit=2)
    seconds = found.pop("seconds")
    assert 0 <= seconds < 5
    quoted = ["ＮＡＭＥ, Ｃｕｓｔｏｍｅｒｓ → in quotes"] if shop.dialect == "clickhouse" else []
    assert found == {
        "columns": ["name"],
        "rows": [["Ann"], ["Bob"]],
        "row_count": 2,
        "truncated": True,
        "cut_cells": 0,
        "sql": "SELECT name FROM customers ORDER BY 1",
        "corrections": [*quoted, "table Ｃｕｓｔｏｍｅｒｓ → customers", "column ＮＡＭＥ → name"],
    }
    json.dumps(found)


async def test_a_wrong_query_is_reported_for_its_field(shop):
    with pytest.raises(InvalidArguments) as raised:
        await SqlTools(shop).execute("SELECT zzz FROM orders")
    (problem,) = raised.value.problems
    assert (problem.field, problem.received) == ("sql", "SELECT zzz FROM orders")


async def test_the_limit_is_bounded(shop):
    tools = SqlTools(shop)
    with pytest.raises(InvalidArguments, match="limit: must be 1 to 1000"):
        await tools.execute("SELECT 1", limit=0)
    many = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r WHERE i < 5000) SELECT i FROM r"
    many = "SELECT number FROM numbers(5000)" if shop.dialect == "clickhouse" else many
    found = await tools.execute(many, limit=10**9)
    assert (found["row_count"], found["truncated"]) == (1000, True)
    unset = await ToolLibrary(create_sql_tools(shop)).call("sql.execute", {"sql": many, "limit": None})
    assert unset.data["row_count"] == 100


async def test_a_parameter_with_the_mark_of_another_library_is_reported_with_its_form_here(shop):
    for mark in (":c", "$c", "@c"):
        if (shop.dialect, mark) == ("mysql", "@c"):  # a variable
            continue
        with pytest.raises(InvalidArguments, match="^sql: write {{c}} instead of " + re.escape(mark)):
            await SqlTools(shop).execute(f"SELECT id FROM orders WHERE note <> '{mark}' AND id = {mark}", {"c": 1})


async def test_engine_errors_are_one_sentence_without_paths(shop, shop_files):
    tools = SqlTools(shop, QueryLimits(timeout_seconds=1))
    for sql in (
        "SELECT name, count(*) FROM customers WHERE sum(id) > 1",
        "SELECT sum(sum(id)) FROM orders",
        "SELECT substr() FROM orders",
        "SELECT id FROM orders UNION ALL SELECT id, name FROM customers",
        *(["SELECT id FROM orders, customers"] if shop.dialect != "clickhouse" else []),
    ):
        with pytest.raises((ToolFailed, InvalidArguments)) as raised:
            await tools.execute(sql)
        message = str(raised.value)
        assert message.startswith(("The database says: ", "sql: The safety check cannot read the SQL near ')'"))
        assert "sqlglot" not in message
        assert "\n" not in message
        assert "Traceback" not in message
        assert str(shop_files["duckdb"].parent) not in message
        assert len(message) < 600


async def test_validate_accepts_what_runs_and_names_what_does_not(shop, engine):
    tools = SqlTools(shop)
    assert await tools.validate("SELECT id FROM orders") == {"valid": True, "dialect": engine}
    with pytest.raises(InvalidArguments, match="There is no column nmae"):
        await tools.validate("SELECT nmae FROM customers")
    with pytest.raises(ToolRefused, match="DELETE is not allowed: only one reading statement"):
        await tools.validate("DELETE FROM orders")
    with pytest.raises(ToolFailed):
        await tools.validate("SELECT id, count(*) FROM orders GROUP BY note HAVING sum(sum(id)) > 1")


async def test_validate_columns_lists_every_problem_and_its_fix(shop):
    tools = SqlTools(shop)
    assert await tools.validate_columns("SELECT id FROM orders") == {"valid": True, "problems": []}
    found = await tools.validate_columns("SELECT c.ｎame, o.zzz FROM customers c, orders o")
    assert found["valid"] is False
    assert {(p["name"], p["fix"]) for p in found["problems"]} == {("ｎame", "column ｎame → name"), ("zzz", None)}
    only = await tools.validate_columns("SELECT c.ｎame, o.zzz FROM customers c, orders o", table="ORDERS")
    assert [p["name"] for p in only["problems"]] == ["zzz"]


async def test_validate_columns_of_a_table_leaves_out_other_tables(tmp_path):
    (tmp_path / "x.sqlite").touch()
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as made, made:
        made.executescript("CREATE TABLE ward (id, title); CREATE TABLE patient (id, ward_id, name)")
    database = await open_database(str(tmp_path / "x.sqlite"))
    tools = SqlTools(database)
    for table, names in (("ward", []), ("patient", ["titel", "title"])):
        found = await tools.validate_columns("SELECT patient.titel, p.title FROM patient, patient p", table)
        assert (found["valid"], sorted(p["name"] for p in found["problems"])) == (not names, names)
    await database.close()


@pytest.mark.parametrize(
    "sql",
    ["SELECT s.a FROM (SELECT {'a': 1} AS s) AS s", "SELECT name FROM customers ORDER BY name COLLATE NOCASE.NOACCENT"],
)
async def test_validate_columns_has_no_problem_with_names_that_the_engine_accepts(duckdb_shop, sql):
    assert await SqlTools(duckdb_shop).validate_columns(sql) == {"valid": True, "problems": []}


async def test_auto_fix_reports_names_it_could_not_correct(shop):
    found = await SqlTools(shop).auto_fix_columns("SELECT ＮＡＭＥ, nmae, zzz FROM customers")
    assert found["sql"] == "SELECT name, nmae, zzz FROM customers"
    assert found["corrections"][-1] == "column ＮＡＭＥ → name"
    unknown, similar = sorted(found["problems"], key=lambda problem: "nmae" in problem)
    assert similar.startswith("There is no column nmae in customers. Did you mean name?")
    assert unknown.startswith("There is no column zzz in")


async def test_refine_corrects_names_that_can_mean_one_thing(shop):
    tools = SqlTools(shop)
    assert await tools.refine("SELECT ｎame FROM customers") == {
        "sql": "SELECT name FROM customers",
        "valid": True,
        "corrections": [*(["ｎame → in quotes"] if shop.dialect == "clickhouse" else []), "column ｎame → name"],
        "problem": None,
    }
    refused = await tools.refine("DELETE FROM orders")
    assert (refused["valid"], refused["problem"][:21]) == (False, "DELETE is not allowed")


FOREIGN = [
    ("oracle", "SELECT TO_CHAR(amount, '9999') FROM orders"),
    ("tsql", "SELECT TOP 2 ISNULL(name, 'none') FROM customers"),
    ("mysql", "SELECT IFNULL(`name`, 'none'), CAST(`id` AS CHAR) FROM `customers`"),
    ("mysql", "SELECT `name` || 'x' FROM `customers`"),
]


@pytest.mark.parametrize(("dialect", "sql"), FOREIGN)
async def test_refine_reads_another_dialect_only_if_the_caller_names_it(shop, dialect, sql):
    found = await SqlTools(shop).refine(sql)
    assert (found["sql"], found["corrections"]) == (sql, [])


async def test_refine_translates_from_the_dialect_that_the_caller_names(shop):
    found = await SqlTools(shop).refine("SELECT TOP 2 ISNULL(name, 'none') AS n FROM customers ORDER BY id", "tsql")
    assert (found["valid"], found["corrections"]) == (True, ["translated from tsql"])
    assert (await SqlTools(shop).execute(found["sql"]))["rows"] == [["Ann"], ["Bob"]]


async def test_refine_reports_what_has_no_translation(shop, engine):
    if engine == "postgres":
        pytest.skip("PostgreSQL has TO_CHAR")
    sql = "SELECT TO_CHAR(amount, '9999') FROM orders"
    found = await SqlTools(shop).refine(sql, "oracle")
    assert (found["sql"], found["valid"]) == (sql, False)
    assert "cannot be translated from oracle" in found["problem"]
    assert "ToChar" in found["problem"]


async def test_full_width_signs_are_replaced_in_rejected_sql_only(shop):
    found = await SqlTools(shop).execute("SELECT count（*） AS n FROM customers WHERE name ＜＞ '（'")
    assert found["rows"] == [[3]]
    assert found["corrections"] == ["full-width signs → ASCII"]
    assert found["sql"] == "SELECT count(*) AS n FROM customers WHERE name <> '（'"
    accepted = await SqlTools(shop).execute("SELECT count(*) AS 数量（个） FROM customers")
    quoted = ["数量（个） → in quotes"] if shop.dialect == "clickhouse" else []
    assert (accepted["columns"], accepted["corrections"]) == (["数量（个）"], quoted)


async def test_full_width_signs_in_a_name_of_the_schema_are_part_of_it(tmp_path):
    with duckdb.connect(str(tmp_path / "x.duckdb")) as made:
        made.execute('CREATE TABLE 费用表 AS SELECT 7 AS "费用（元）"')
    database = await open_database(str(tmp_path / "x.duckdb"))
    tools = SqlTools(database)
    for sql in ("SELECT 费用（元）, nam FROM 费用表", "SELECT 费用（元）， nam FROM 费用表"):
        with pytest.raises(InvalidArguments, match="There is no column nam"):
            await tools.execute(sql)
    assert (await tools.execute("SELECT sum（费用（元）） FROM 费用表"))["rows"] == [[7]]
    await database.close()


async def test_a_query_stopped_at_its_limit_is_run_once_and_the_tool_stays_in_service(shop):
    tools = SqlTools(shop, QueryLimits(timeout_seconds=0.2))
    library = ToolLibrary(tools_from_object(tools, "sql", read_only=["execute"]))
    for _ in range(7):  # a circuit opens at five calls that got no answer
        result = await library.call("sql.execute", {"sql": get_slow_sql(shop.dialect)})
        assert (result.failure, result.attempts) == ("failed", 1)
        assert result.content.startswith("The query took longer than 0.2 seconds and was stopped. Hint: filter")
    assert (await library.call("sql.execute", {"sql": "SELECT count(*) FROM orders"})).data["rows"] == [[4]]


async def test_every_alias_names_a_tool(sqlite_shop):
    library = ToolLibrary(create_sql_tools(sqlite_shop))
    assert len(TOOL_ALIASES) == 3
    assert [library.find_tool(tool_id).tool_id for tool_id in TOOL_ALIASES.values()] == list(TOOL_ALIASES.values())


BRACES = [
    ("SELECT '%{{name}}%'", {}, "%{{name}}%"),
    ("SELECT '{{ a }} and {{b}}'", {"b": 1}, "{{ a }} and 1"),
    ("SELECT '{{{a}}}'", {}, "{{{a}}}"),
    ("SELECT '{{{a}}}'", {"a": "x"}, "{x}"),
    ("SELECT 'it''s {{a}}' FROM (SELECT {{b}} AS n) AS q WHERE n = 1", {"b": 1}, "it's {{a}}"),
    ("SELECT '{{a}}' /* {{b}} */", {"a": "'; DROP TABLE orders; --"}, "'; DROP TABLE orders; --"),
    ("SELECT '{{a}}'", {"a": "{{b}}"}, "{{b}}"),
    ("SELECT '{% if x %}{{ x | upper }}{{}}'", {"x": "y"}, "{% if x %}{{ x | upper }}{{}}"),
]


@pytest.mark.parametrize(("sql", "parameters", "value"), BRACES)
async def test_a_placeholder_in_quotes_is_text_unless_a_parameter_has_its_name(sqlite_shop, sql, parameters, value):
    found = await SqlTools(sqlite_shop).execute(sql, parameters)
    assert found["rows"] == [[value]]


@pytest.mark.parametrize(
    "sql", ["SELECT note AS \"{{a}}\" FROM orders WHERE note LIKE '%{{name}}%'", "SELECT $$ {{a}}$$"]
)
async def test_a_query_without_parameters_is_run_as_written(duckdb_shop, sql):
    tools = SqlTools(duckdb_shop)
    assert (await tools.execute(sql))["sql"] == sql
    assert (await tools.validate(sql))["valid"] is True
    assert (await tools.refine(sql))["sql"] == sql


@pytest.mark.parametrize(
    ("sql", "field"),
    [("SELECT {{a}}, '{{b}}'", "parameters.a"), ("SELECT '{{bb}}'", "parameters.b"), ('SELECT 1 AS "{{b}}"', "sql")],
)
async def test_a_placeholder_of_the_code_needs_a_value_and_a_name_takes_none(sqlite_shop, sql, field):
    with pytest.raises(InvalidArguments) as raised:
        await SqlTools(sqlite_shop).execute(sql, {"b": 1})
    assert [problem.field for problem in raised.value.problems] == [field]
