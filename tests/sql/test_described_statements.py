"""EXPLAIN and DESCRIBE are checked as the query or the table that they are about."""

import pytest

from opposable.sql.described_statements import extract_query


@pytest.mark.parametrize(
    ("dialect", "sql", "query"),
    [
        ("sqlite", "explain query plan SELECT 1", "SELECT 1"),
        ("sqlite", "/* a */ EXPLAIN -- b\n WITH t AS (SELECT 1) TABLE t", "-- b\n WITH t AS (SELECT 1) TABLE t"),
        ("postgres", "EXPLAIN(ANALYZE, COSTS off , FORMAT JSON)SELECT 1", "SELECT 1"),
        ("postgres", "EXPLAIN ANALYZE VERBOSE (SELECT 1)", "(SELECT 1)"),
        ("postgres", "EXPLAIN ANALYZE DELETE FROM orders", "DELETE FROM orders"),
        ("postgres", "DESCRIBE orders", "DESCRIBE orders"),
        ("duckdb", "DESC orders", "FROM orders"),
        ("duckdb", 'SUMMARIZE "order lines"', 'FROM "order lines"'),
        ("duckdb", "SUMMARIZE FROM orders", "FROM orders"),
        ("duckdb", "SHOW TABLES", "SHOW TABLES"),
        ("mysql", "EXPLAIN FORMAT = JSON SELECT 1", "SELECT 1"),
        ("mysql", "SHOW FULL COLUMNS FROM orders", "FROM orders"),
        ("mysql", "ANALYZE FORMAT=JSON SELECT 1", "SELECT 1"),
        ("mysql", "ANALYZE TABLE orders", "ANALYZE TABLE orders"),
        ("mysql", "EXPLAIN orders", "FROM orders"),
        ("mysql", "EXPLAIN FOR CONNECTION 5", "EXPLAIN FOR CONNECTION 5"),
        ("clickhouse", "EXPLAIN PLAN indexes = 1, json = 1 SELECT 1", "SELECT 1"),
        ("clickhouse", "DESCRIBE TABLE orders", "FROM orders"),
        ("clickhouse", "DESCRIBE (SELECT 1)", "(SELECT 1)"),
        ("clickhouse", "SHOW CREATE TABLE orders", "SHOW CREATE TABLE orders"),
        ("clickhouse", "SELECT 'EXPLAIN SELECT 1'", "SELECT 'EXPLAIN SELECT 1'"),
    ],
)
def test_the_query_of_a_statement_has_the_same_position(dialect, sql, query):
    found = extract_query(sql, dialect)
    assert found.lstrip() == query
    assert len(found) == len(sql)
