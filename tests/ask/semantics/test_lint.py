import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import duckdb
import pytest

from opposable.ask.semantics.draft import draft_semantic_model
from opposable.ask.semantics.lint import lint_semantic_model
from opposable.ask.semantics.loader import parse_semantic_model
from opposable.sql.database import Database
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio

DATA = """
CREATE TABLE 部门 (编号 INTEGER PRIMARY KEY, 名称 VARCHAR(20));
CREATE TABLE sales (id INTEGER PRIMARY KEY, 部门编号 INTEGER REFERENCES 部门(编号), amount INTEGER, city VARCHAR(20), day DATE,
  "Zip Code" VARCHAR(9), customer_id INTEGER);
CREATE TABLE customers (customer_id INTEGER, name VARCHAR(20));
INSERT INTO 部门 VALUES (1,'行政'),(2,'研发');
INSERT INTO sales VALUES (1,1,10,'Berlin','2024-01-01','1',7),(2,1,20,'Paris','2024-02-01','2',8),
  (3,2,30,'Paris','2024-03-01','3',9);
INSERT INTO customers VALUES (7,'Ann'),(8,'Bob'),(8,'Bob');
"""


@pytest.fixture(params=["sqlite", "duckdb"])
async def sales(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    path = tmp_path / f"sales.{request.param}"
    if request.param == "sqlite":
        made = sqlite3.connect(path)
        made.executescript(DATA)
        made.close()
    else:
        with duckdb.connect(str(path)) as with_duckdb:
            with_duckdb.execute(DATA)
    database = await open_database(str(path))
    yield database
    await database.close()


GOOD = """
joins: [sales.部门编号 = 部门.编号]
metrics: {total: {expr: SUM(amount), table: sales, time: day, default_filters: [some]}, twice: total * 2}
dimensions: {部门: {expr: 名称, table: 部门}}
filters: {some: sales.amount > 10}
"""

CASES = {
    "metrics: {a: {expr: SUM(amout), table: sales}}": [("error", "metrics.a.expr", "sales has no column amout")],
    "metrics: {a: {expr: SUM(amount), table: sale}}": [
        ("error", "tables.sale", "the database has no table sale"),
        ("error", "metrics.a.expr", "sale"),
    ],
    "metrics: {a: {expr: amount, table: sales}}": [("error", "metrics.a.expr", "'amount' neither aggregates")],
    "metrics: {a: b + 1, b: a + 1}": [
        ("error", "metrics.a.expr", "the metric a is computed from itself"),
        ("error", "metrics.b.expr", "the metric b"),
    ],
    "metrics: {a: {expr: 'SUM(amount); DROP TABLE sales', table: sales}}": [
        ("error", "metrics.a.expr", "is not a single SQL")
    ],
    "metrics: {a: {expr: 'SUM((SELECT 1))', table: sales}}": [("error", "metrics.a.expr", "contains a query")],
    "metrics: {a: {expr: COUNT(*), table: sales, default_filters: [amount < 0]}}": [
        ("error", "metrics.a.default_filters", "they exclude every one of 3 rows")
    ],
    "metrics: {a: {expr: COUNT(*), table: sales, time: 部门.名称}}": [
        ("error", "metrics.a.expr", "there is no table 部门")
    ],
    "metrics: {a: {expr: COUNT(*), table: sales}}\nexclusions: {x: sales.amount > 0}": [
        ("error", "exclusions.x.expr", "it leaves out all 3 rows")
    ],
    "metrics: {a: {expr: COUNT(*), table: sales}}\nfilters: {x: sales.city = 'Rome'}": [
        ("warning", "filters.x.expr", "it is true for none of 3 rows")
    ],
    "metrics: {a: {expr: COUNT(*), table: sales, synonyms: [数]}, b: {expr: COUNT(*), table: sales, synonyms: [数]}}": [
        ("warning", "metrics.b.synonyms", "'数' is also a name of a")
    ],
    "metrics: {a: {expr: COUNT(*), table: 部门}}\ndimensions: {d: sales.city}\njoins: [sales.部门编号 = 部门.编号]": [
        ("warning", "dimensions.d", "it goes with no metric")
    ],
    "metrics: {a: {expr: COUNT(*), table: sales}}\njoins: [sales.customer_id = customers.customer_id]": [
        ("error", "joins.sales.customer_id = customers.customer_id", "the join fans out"),
        ("warning", "joins.sales.customer_id = customers.customer_id", "1 rows of sales find no row of customers"),
    ],
    "metrics: {a: {expr: COUNT(*), table: sales}}\njoins: [sales.部门 = 部门.编号]": [
        ("error", "joins.sales.部门 = 部门.编号", "sales has no column 部门")
    ],
    "metrics: {a: SUM(部门.编号) + SUM(sales.amount)}\njoins: [sales.部门编号 = 部门.编号]": [
        ("error", "metrics.a.expr", "the metric a would count twice")
    ],
}


async def test_a_model_that_fits_has_no_findings(sales):
    assert await lint_semantic_model(parse_semantic_model(GOOD), sales) == ()


@pytest.mark.parametrize("text", CASES)
async def test_what_does_not_fit_is_found(text, sales):
    found = await lint_semantic_model(parse_semantic_model(text), sales)
    expected = CASES[text]
    assert [(f.severity, f.location.rpartition(": ")[2]) for f in found] == [
        (severity, where) for severity, where, _ in expected
    ]
    assert [problem for f, (_, _, problem) in zip(found, expected, strict=True) if problem not in f.problem] == []


async def test_a_text_that_is_no_date_is_found_in_sqlite(sales):
    found = await lint_semantic_model(
        parse_semantic_model("metrics: {a: {expr: COUNT(*), table: sales, time: city}}"), sales
    )
    assert [f.severity for f in found] == ["error"]


async def test_a_draft_lints_clean_and_joins_only_what_fits(sales):
    text = await draft_semantic_model(sales)
    model = parse_semantic_model(text)
    assert [f for f in await lint_semantic_model(model, sales) if f.severity != "info"] == []
    assert [join.text for join in model.joins] == ["sales.部门编号 = 部门.编号"]
    assert {"total_amount", "average_amount", "sales_count"} <= set(model.metrics)
    assert model.tables["sales"].time == "day"
    assert "city" in model.dimensions
