import pytest

from opposable.ask.semantics.lint import lint_semantic_model
from opposable.ask.semantics.loader import parse_semantic_model

pytestmark = pytest.mark.anyio


GOOD = """
joins: [sales.部门编号 = 部门.编号]
metrics: {total: {expr: SUM(amount), table: sales, time: day, default_filters: [some]}, twice: total * 2}
dimensions: {部门: {expr: 名称, table: 部门}}
filters: {some: sales.amount > 10}
"""


CASES = {
    "metrics: {a: {expr: SUM(amout), table: sales}}": [("error", "metrics.a.expr", "sales has no column amout")],
    "metrics: {a: {expr: SUM(amount), table: sale}}": [
        ("error", "tables.sale", "There is no table sale"),
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
    "metrics: {a: {expr: COUNT(*), table: sales, default_filters: [x]}}\n"
    "exclusions: {x: 'NULLIF(sales.amount, sales.amount) > 1'}": [
        ("warning", "exclusions.x.expr", "it is true for none of 3 rows")
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


async def test_a_model_that_fits_its_database_has_no_findings(sales):
    assert await lint_semantic_model(parse_semantic_model(GOOD), sales) == ()


@pytest.mark.parametrize("text", CASES)
async def test_each_problem_is_reported_with_its_location(text, sales):
    findings = await lint_semantic_model(parse_semantic_model(text), sales)
    expected = CASES[text]
    assert [(finding.severity, finding.location.rpartition(": ")[2]) for finding in findings] == [
        (severity, location) for severity, location, _ in expected
    ]
    reported = [finding.problem for finding in findings]
    assert [problem for (_, _, problem), text in zip(expected, reported, strict=True) if problem not in text] == []


async def test_a_text_that_is_not_a_date_is_an_error(sales):
    model = parse_semantic_model("metrics: {a: {expr: COUNT(*), table: sales, time: city}}")
    assert [finding.severity for finding in await lint_semantic_model(model, sales)] == ["error"]


async def test_the_time_of_a_table_is_checked_once_and_reported_where_it_is_written(sales):
    metrics = "{a: {expr: COUNT(*), table: sales}, b: {expr: SUM(amount), table: sales}}"
    model = parse_semantic_model(f"metrics: {metrics}\ntables: {{sales: {{time: city}}}}")
    findings = await lint_semantic_model(model, sales)
    assert [finding.location for finding in findings] == ["model.yaml, line 2: tables.sales.time"]
