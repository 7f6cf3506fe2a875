"""Estimates of the size of values refuse what would exhaust the memory, and nothing else."""

import pytest

from opposable.domain.errors import ToolRefused
from opposable.sql.tools import SqlTools

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("engine", ["postgres", "duckdb"])]

NAMES = [f"c{number}" for number in range(7)]
LEVELS = "".join(
    f", s{level} AS (SELECT coalesce({', '.join(NAMES)}) AS c0, {', '.join(NAMES[1:])} FROM s{level - 1})"
    for level in range(1, 7)
)
CHAIN = f"WITH s0 AS (SELECT {', '.join(f'id AS {name}' for name in NAMES)} FROM orders){LEVELS} SELECT sum(c0) FROM s6"


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (CHAIN, [[10]]),
        ("SELECT length(repeat('ab', 1000)), length(repeat('c', 200))", [[2000, 200]]),
        ("SELECT length(lpad('a', 1000, ' ') || rpad('b', 2000, ' '))", [[3000]]),
        (
            "WITH a AS (SELECT amount * 2 + amount * id + amount AS n FROM orders), b AS (SELECT sum(n + n + n) AS n FROM a),"
            " c AS (SELECT n + n + n + n AS n FROM b), d AS (SELECT n + n + n + n + n AS n FROM c) SELECT count(n) FROM d",
            [[1]],
        ),
    ],
)
async def test_sizes_of_values_side_by_side_are_added(shop, sql, rows):
    assert (await SqlTools(shop).execute(sql))["rows"] == rows


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat(repeat('a', 10000), 10000)",
        "SELECT repeat(lpad('a', 200, 'b') || repeat('c', 1000), 1000)",
        "SELECT repeat((SELECT repeat('a', 10000)), 10000)",
        "SELECT repeat(s, 10000) FROM (SELECT repeat('a', 10000) AS s) q",
        "WITH a AS (SELECT repeat('a', 10000) AS s), b AS (SELECT repeat(s, 10000) AS s FROM a) SELECT s FROM b",
        "SELECT id FROM orders WHERE length(repeat(repeat('a', 10000), 10000)) > 1",
        "SELECT '', " + ", ".join(["repeat('a', 90000)"] * 20),
    ],
)
async def test_sizes_of_nested_values_are_multiplied(shop, sql):
    with pytest.raises(ToolRefused, match="would blow text up"):
        await SqlTools(shop).execute(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT s FROM (" + "SELECT s||s AS s FROM (" * 20 + "SELECT note AS s FROM orders" + ") q" * 20 + ") q",
        "SELECT s FROM (" + "SELECT s+s AS s, 1 AS t FROM (" * 20 + "SELECT id AS s FROM orders" + ") q" * 20 + ") q",
        "WITH q0 AS (SELECT note AS s FROM orders)"
        + "".join(f", q{i} AS (SELECT x.s||y FROM q{i - 1} AS x(s), (SELECT 'a' AS y) z)" for i in range(1, 3))
        + "".join(f", q{i} AS (SELECT x.s||x.s FROM q{i - 1} AS x(s))" for i in range(3, 22))
        + " SELECT * FROM q21",
        "WITH a0 AS (SELECT id AS s FROM orders)"
        + "".join(f", a{i} AS (SELECT * FROM (SELECT s+s+s+s AS s FROM a{i - 1}) q)" for i in range(1, 12))
        + " SELECT id FROM orders WHERE id IN (SELECT s FROM a11)",
    ],
)
async def test_subqueries_that_multiply_the_columns_of_one_another_are_refused(shop, engine, sql):
    if engine == "duckdb":
        pytest.skip("DuckDB plans each subquery once")
    with pytest.raises(ToolRefused, match="use one another's columns too often"):
        await SqlTools(shop).execute(sql)
