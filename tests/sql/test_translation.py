"""Translation from other SQL dialects: the result means the same, or an error says why."""

import pytest

from opposable.sql.tools import SqlTools

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("engines", "source", "sql", "rows"),
    [
        ("duckdb mysql postgres", "tsql", "SELECT id / 2, (id + 1) / COUNT(*), amount / 2 FROM orders WHERE id = 3 GROUP BY id, amount", [[1, 4, 2.625]]),
        ("duckdb mysql", "postgres", "SELECT 7 / 2, -7 / 2, 7 / 2.0, sum(id) / 3 AS id FROM orders", [[3, -3, 3.5, 3]]),
        ("sqlite postgres", "mysql", "SELECT 5 / 2", [[2.5]]),
        ("sqlite duckdb postgres mysql", "tsql", "SELECT name + '-' + city, id + 1 FROM customers WHERE id = 1", [["Ann-Berlin", 2]]),
        ("sqlite duckdb postgres", "mysql", "SELECT LENGTH('é'), CHAR_LENGTH('é')", [[2, 1]]),
        ("sqlite duckdb postgres mysql", "tsql", "SELECT LEN('ab  ')", [[2]]),
        ("sqlite duckdb postgres mysql", "tsql", "SELECT DATEDIFF(day, '2024-01-01 23:00:00', '2024-01-03 01:00:00')", [[2]]),
        ("sqlite duckdb postgres", "mysql", "SELECT DATEDIFF('2024-01-03 01:00:00', '2024-01-01 23:00:00')", [[2]]),
        ("duckdb", "tsql", "SELECT DATEDIFF(month, '2024-01-31', '2024-02-01')", [[1]]),
        ("sqlite duckdb postgres", "mysql", "SELECT DATE_FORMAT(ordered, '%Y-%m') FROM orders WHERE id = 1", [["2024-01"]]),
        ("duckdb", "postgres", "SELECT EXTRACT(dow FROM ordered) FROM orders WHERE id = 1", [[1]]),
    ],
)  # fmt: skip
async def test_a_translated_query_returns_the_same(shop, engine, engines, source, sql, rows):
    if engine not in engines.split():
        pytest.skip(f"{engine} is not a target here")
    refined = await SqlTools(shop).refine(sql, source)
    assert refined["problem"] is None
    assert (await SqlTools(shop).execute(refined["sql"]))["rows"] == rows


@pytest.mark.parametrize(
    ("engines", "source", "sql"),
    [
        ("duckdb mysql clickhouse", "postgres", "SELECT x / 2 FROM (SELECT id AS x FROM orders) q"),
        ("sqlite duckdb postgres mysql clickhouse", "tsql", "SELECT note + id FROM orders"),
        ("sqlite duckdb postgres mysql clickhouse", "tsql", "SELECT AVG(id) FROM orders"),
        ("sqlite duckdb postgres clickhouse", "mysql", "SELECT DAYOFWEEK(ordered) FROM orders"),
        ("sqlite duckdb postgres clickhouse", "mysql", "SELECT WEEKDAY(ordered), WEEK(ordered) FROM orders"),
        ("sqlite duckdb postgres mysql clickhouse", "bigquery", "SELECT EXTRACT(DAYOFWEEK FROM ordered) FROM orders"),
        ("sqlite duckdb postgres mysql clickhouse", "tsql", "SELECT DATEPART(weekday, ordered) FROM orders"),
        ("sqlite", "mysql", "SELECT DATE_FORMAT(ordered, '%M') FROM orders"),
        ("mysql sqlite", "postgres", "SELECT to_char(ordered, 'Month') FROM orders"),
        ("postgres", "sqlite", "SELECT strftime('%w', ordered) FROM orders"),
        ("sqlite postgres mysql", "tsql", "SELECT DATEDIFF(month, ordered, ordered) FROM orders"),
        ("sqlite duckdb postgres clickhouse", "mysql", "SELECT TIMESTAMPDIFF(MONTH, ordered, ordered) FROM orders"),
    ],
)
async def test_a_construct_that_differs_is_an_error(shop, engine, engines, source, sql):
    if engine not in engines.split():
        pytest.skip(f"{engine} is not a target here")
    refined = await SqlTools(shop).refine(sql, source)
    assert (refined["sql"], refined["valid"]) == (sql, False)
    assert f"it cannot be translated from {source} to {engine}" in refined["problem"]
