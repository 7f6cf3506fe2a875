"""The guard refuses everything except one read-only statement."""

import time

import pytest
from sqlglot import exp

from opposable.domain.errors import InvalidArguments, ToolRefused
from opposable.sql.name_checker import check_names
from opposable.sql.schema import Column, DatabaseSchema, Table
from opposable.sql.statement_guard import parse_safe_query

SHOP_SCHEMA = DatabaseSchema((Table("orders", (Column("id", "INTEGER"),)),))


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("", "The SQL is empty: write one SELECT statement."),
        ("SELCT 1", "The SQL must begin with SELECT or WITH, not selct."),
        ("SELECT (1", "The SQL has a syntax error near '1' (line 1, column 9): Expecting )."),
        ("SELECT 'a", "A string that begins at character 8 is never closed."),
        ("SELECT 1 FROM", "The SQL has a syntax error"),
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


def test_a_json_value_with_a_default_is_accepted():
    sql = """SELECT JSON_VALUE('{"a": 1}', '$.a' RETURNING int DEFAULT 0 ON EMPTY)"""
    assert parse_safe_query(sql, "postgres", SHOP_SCHEMA).sql == sql


@pytest.mark.parametrize("tail", [" " * 45_000 + ")", " LIMIT 1" * 2_000, " ORDER BY a" * 2_000 + "("])
def test_sql_that_sqlglot_cannot_parse_is_refused_in_seconds(tail):
    started = time.perf_counter()
    with pytest.raises(InvalidArguments):
        parse_safe_query("SELECT 1" + tail, "duckdb", SHOP_SCHEMA)
    assert time.perf_counter() - started < 5


KEYWORD_COLUMNS = (
    "insert",
    "drop",
    "lock",
    "grant",
    "glob",
    "map",
    "force",
    "window",
    "offset",
    "for",
    "cross",
    "inner",
)
KEYWORD_TABLES = (Table("t", tuple(Column(name, "INTEGER") for name in ("id", *KEYWORD_COLUMNS))),)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
@pytest.mark.parametrize("name", KEYWORD_COLUMNS)
def test_a_column_with_the_name_of_a_keyword_is_read(dialect, name):
    schema = DatabaseSchema(KEYWORD_TABLES, dialect=dialect)
    for sql in (
        f"SELECT {name} FROM t",
        f"SELECT t.{name.upper()}, 'a {name} b' FROM t JOIN t AS u USING (id)",
        f"SELECT {name}, count(*) FROM t WHERE {name} > 1 GROUP BY {name} ORDER BY {name} LIMIT 2 OFFSET 1",
    ):
        query = parse_safe_query(sql, dialect, schema)
        assert query.sql == sql
        assert name in {column.name.lower() for column in query.tree.find_all(exp.Column)}
        assert not check_names(query, schema)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1)",
        "DROP TABLE t",
        "SELECT insert FROM t; DROP TABLE t",
        "SELECT insert FROM t; DROP",
        "WITH x AS (INSERT INTO t(id) VALUES (1) RETURNING id) SELECT drop FROM x",
        "WITH x AS (SELECT drop FROM t) INSERT INTO t SELECT 1",
        "SELECT insert INTO x FROM t",
        "SELECT drop, insert(1) FROM t",
        "SELECT drop, pg_sleep(1) FROM t",
        "SELECT drop FROM t FOR UPDATE",
    ],
)
def test_a_statement_that_writes_is_refused_where_its_keywords_are_columns(dialect, sql):
    with pytest.raises((ToolRefused, InvalidArguments)):
        parse_safe_query(sql, dialect, DatabaseSchema(KEYWORD_TABLES, dialect=dialect))


@pytest.mark.parametrize(
    "join", ["CROSS JOIN", "INNER JOIN", "FORCE JOIN", "NATURAL INNER JOIN", "CROSS", "OFFSET 1, "]
)
def test_a_column_with_the_name_of_a_keyword_hides_no_table(join):
    schema = DatabaseSchema(KEYWORD_TABLES, dialect="postgres")
    try:
        query = parse_safe_query(f"SELECT insert, drop FROM t {join} secret", "postgres", schema)
    except InvalidArguments:
        return
    assert any("secret" in problem.message for problem in check_names(query, schema))


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE r AS (SELECT id, drop FROM t UNION ALL SELECT id, drop FROM r) "
        'CYCLE id, drop, "map" SET is_cycle USING path SELECT id, is_cycle FROM r',
        "WITH RECURSIVE r AS (SELECT id, map FROM t UNION ALL SELECT id, map FROM r) "
        "SEARCH BREADTH FIRST BY id, map SET position SELECT id FROM r ORDER BY position",
        "SELECT j.id, u.map FROM t JOIN t AS u USING (id, map) AS j JOIN t AS v USING (id) AS w WHERE j.map = w.id",
    ],
)
def test_clauses_of_several_columns_and_join_aliases_are_read(sql):
    schema = DatabaseSchema(KEYWORD_TABLES, dialect="postgres")
    query = parse_safe_query(sql, "postgres", schema)
    assert query.sql == sql
    assert not check_names(query, schema)


def test_the_alias_of_a_join_has_only_its_columns():
    schema = DatabaseSchema(KEYWORD_TABLES, dialect="postgres")
    query = parse_safe_query("SELECT j.map FROM t JOIN t AS u USING (id) AS j", "postgres", schema)
    assert [problem.message for problem in check_names(query, schema)]
