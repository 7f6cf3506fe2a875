"""The guard refuses everything except one read-only statement."""

import time

import pytest

from opposable.domain.errors import InvalidArguments, ToolRefused
from opposable.sql.schema import Column, DatabaseSchema, Table
from opposable.sql.statement_guard import parse_safe_query, refuse_unlisted_tables

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


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("postgres", "SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' AT LOCAL::date, id AT LOCAL FROM orders"),
        ("postgres", 'SELECT j.id FROM orders JOIN orders b USING (id, "Größe") AS j JOIN orders c USING (id) AS "K"'),
        ("postgres", "SELECT id FROM ONLY (orders) AS o, ONLY (public.orders)"),
        (
            "postgres",
            "SELECT id <<| id, id &<| 1, id ?|| id, ?- id, id ## id, # id, @-@ id, id <^ 1, id <=> id, id <#> id FROM orders",
        ),
        (
            "postgres",
            "SELECT @ -id, |/ (id <-> id) * 2 FROM orders WHERE id <+> id BETWEEN 1 AND id |>> 2 ORDER BY id USING ~<~",
        ),
        (
            "duckdb",
            "PIVOT orders o JOIN orders c ON c.id = o.id ON id, id + 1 USING sum(id) AS s GROUP BY id ORDER BY abs(id)",
        ),
        ("duckdb", "PIVOT (FROM orders) t LEFT JOIN orders USING (id) ON id IN (1, 2) USING count(*) LIMIT 50%"),
        ("duckdb", "WITH o AS (FROM orders) PIVOT_WIDER o ON id USING count(*) ORDER BY abs(id) OFFSET 1"),
        (
            "duckdb",
            "(PIVOT orders ON id USING count(*) ORDER BY id) UNION ALL (PIVOT orders ON id USING max(id) LIMIT 1)",
        ),
        (
            "duckdb",
            "UNPIVOT orders o JOIN orders USING (id) ON id, (id, id) AS p INTO NAME k VALUE v, w ORDER BY v * 2",
        ),
        ("duckdb", "PIVOT_LONGER orders ON id"),
        ("duckdb", "SELECT x'00', invoke(lambda x: x + 1, binom(5, 2)), [1, 2][ :: -1] FROM orders"),
        ("mysql", "SELECT id FROM orders WHERE id IN (VALUES (1), (2)) AND id NOT IN (VALUES (3))"),
        ("mysql", "SELECT \\N, id FROM orders o WHERE MATCH o.id, id AGAINST ('x' IN BOOLEAN MODE)"),
        (
            "mysql",
            "WITH RECURSIVE t(n, m) AS (SELECT 1, 1 UNION ALL SELECT n, m FROM t) CYCLE n, m RESTRICT SELECT n FROM t",
        ),
        ("sqlite", "SELECT CAST(id AS UNSIGNED BIG INT), CAST(id AS VARYING CHARACTER(9)) FROM orders"),
        ("clickhouse", "SELECT id FROM orders LIMIT 1 BY id LIMIT 2 OFFSET 3"),
    ],
)
def test_forms_that_sqlglot_lacks_are_accepted(dialect, sql):
    schema = DatabaseSchema((Table("orders", (Column("id", "INTEGER"),)),), "public", dialect)
    query = parse_safe_query(sql, dialect, schema)
    assert query.sql == sql
    refuse_unlisted_tables(query, schema)


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("postgres", "SELECT id <-> pg_sleep(1) FROM orders"),
        ("postgres", "SELECT 1 <-> 2 FROM orders JOIN pg_authid USING (id) AS j"),
        ("postgres", "SELECT 1 <-> 2 FROM orders, hidden at local"),
        ("postgres", "WITH x AS (DELETE FROM orders RETURNING id) SELECT id <-> 1 FROM x"),
        ("postgres", "SELECT id <-> 1 FROM orders FOR UPDATE"),
        ("postgres", "SELECT id AT LOCAL FROM ONLY (hidden)"),
        ("duckdb", "PIVOT orders JOIN hidden USING (id) ON id USING count(*)"),
        ("duckdb", "PIVOT orders ON id USING count(*) ORDER BY (SELECT max(id) FROM hidden)"),
        ("duckdb", "PIVOT orders ON id USING count(*) LIMIT getenv('x')"),
        ("duckdb", "UNPIVOT orders JOIN 'a.csv' USING (id) ON id INTO NAME k VALUE v"),
        ("mysql", "SELECT id FROM orders WHERE id IN (VALUES (LOAD_FILE('x')))"),
        ("mysql", "SELECT id FROM hidden WHERE MATCH id AGAINST ('x')"),
        ("sqlite", "SELECT CAST(id AS UNSIGNED BIG INT) FROM hidden"),
    ],
)
def test_forms_that_sqlglot_lacks_hide_no_table_and_no_function(dialect, sql):
    schema = DatabaseSchema((Table("orders", (Column("id", "INTEGER"),)),), "public", dialect)
    with pytest.raises((ToolRefused, InvalidArguments)):
        refuse_unlisted_tables(parse_safe_query(sql, dialect, schema), schema)


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
