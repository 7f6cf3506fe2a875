"""The guard refuses everything except one read-only statement."""

import time

import pytest

from opposable.domain.errors import InvalidArguments, ToolRefused
from opposable.sql.schema import Column, DatabaseSchema, Table
from opposable.sql.statement_guard import parse_safe_query

SHOP_SCHEMA = DatabaseSchema((Table("orders", (Column("id", "INTEGER"),)),))


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("", "The SQL is empty: write one SELECT statement."),
        ("SELCT 1", "The SQL must begin with SELECT or WITH, not selct."),
        (
            "SELECT (1",
            "The safety check cannot read the SQL near '1' (line 1, column 9): Expecting ). Correct it there, or",
        ),
        ("SELECT 'a", "A string that begins at character 8 is never closed."),
        ("SELECT 1 FROM", "The safety check cannot read the SQL"),
        ("SELECT", "A SELECT here selects nothing: name its columns."),
    ],
)
def test_invalid_sql_is_reported_in_one_sentence(sql, sentence):
    with pytest.raises(InvalidArguments) as raised:
        parse_safe_query(sql, "duckdb", SHOP_SCHEMA)
    (problem,) = raised.value.problems
    assert problem.field == "sql"
    assert problem.problem.startswith(sentence)
    assert "Token" not in problem.problem


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("postgres", "SELECT id ? FROM orders"),
        ("duckdb", "SELECT {: 1} FROM orders"),
        ("sqlite", "SELECT id ->> FROM orders"),
        ("mysql", "SELECT date_add(, INTERVAL 1 DAY)"),
    ],
)
def test_an_expression_without_an_operand_is_invalid_sql(dialect, sql):
    with pytest.raises(InvalidArguments, match=r"^sql: The (SQL cannot be read|safety check cannot read the SQL)"):
        parse_safe_query(sql, dialect, SHOP_SCHEMA)


def test_a_json_value_with_a_default_is_accepted():
    sql = """SELECT JSON_VALUE('{"a": 1}', '$.a' RETURNING int DEFAULT 0 ON EMPTY)"""
    assert parse_safe_query(sql, "postgres", SHOP_SCHEMA).sql == sql


@pytest.mark.parametrize("tail", [" " * 45_000 + ")", " LIMIT 1" * 2_000, " ORDER BY a" * 2_000 + "("])
def test_sql_that_sqlglot_cannot_parse_is_refused_in_seconds(tail):
    started = time.perf_counter()
    with pytest.raises(InvalidArguments):
        parse_safe_query("SELECT 1" + tail, "duckdb", SHOP_SCHEMA)
    assert time.perf_counter() - started < 5


def test_comments_of_mysql_reach_the_server_without_its_hints():
    sql = "SELECT /*+ MAX_EXECUTION_TIME(0) */ id /* its key */ FROM orders -- all"
    assert parse_safe_query(sql, "mysql", SHOP_SCHEMA).sql == "SELECT   id /* its key */ FROM orders -- all"


@pytest.mark.parametrize("target", ["OUTFILE '/tmp/x'", "DUMPFILE '/tmp/x'", "@found"])
def test_a_target_of_a_select_is_refused(target):
    with pytest.raises(ToolRefused, match=r"^INTO is not allowed in a query: "):
        parse_safe_query(f"SELECT 1 INTO {target}", "mysql", SHOP_SCHEMA)
