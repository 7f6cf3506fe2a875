import datetime

import pytest

from opposable.ask.intent.intent import StructuredIntent, TimeIntent
from opposable.ask.intent.sql_compiler import CompiledQuery, UnsupportedIntent, compile_intent
from opposable.ask.semantics.loader import parse_semantic_model
from opposable.domain.localized_text import localize
from opposable.sql.name_checker import check_names
from opposable.sql.statement_guard import parse_safe_query

pytestmark = pytest.mark.anyio
TODAY = datetime.date(2024, 12, 31)
BIG = {"dimension": "big", "value": True}

CASES = {
    "a default filter holds": ({"metrics": ["revenue"]}, [[112]]),
    "only the metric's own default filter holds": (
        {"metrics": ["revenue", "orders"]},
        [[112, 7]],
    ),
    "rows by a dimension, the unknown one too": (
        {"metrics": ["revenue"], "dimensions": ["city"]},
        [["Berlin", 30], ["上海", 70], [None, 12]],
    ),
    "top": (
        {"metrics": ["revenue"], "dimensions": ["customer"], "order_by": {"column": "revenue"}, "limit": 2},
        [["李雷", 40], ["Ann", 30]],
    ),
    "a ranking leaves out the unknown": (
        {"metrics": ["revenue"], "dimensions": ["city"], "order_by": {"column": "revenue"}, "limit": 3},
        [["Berlin", 30], ["上海", 70]],
    ),
    "a bound leaves out the unknown": (
        {
            "metrics": ["revenue"],
            "dimensions": ["city"],
            "filters": [{"dimension": "revenue", "operator": ">", "value": 10}],
        },
        [["Berlin", 30], ["上海", 70]],
    ),
    "the default filter itself": (
        {"metrics": ["revenue"], "filters": [{"dimension": "paid", "value": True}]},
        [[112]],
    ),
    "a value with a quote": (
        {"metrics": ["revenue"], "filters": [{"dimension": "customer", "value": "O'Neil"}]},
        [[7]],
    ),
    "a value that tries to be SQL": (
        {"metrics": ["orders"], "filters": [{"dimension": "customer", "value": "x' OR '1'='1"}]},
        [[0]],
    ),
    "several values": (
        {"metrics": ["revenue"], "filters": [{"dimension": "city", "operator": "in", "value": ["上海", "Berlin"]}]},
        [[100]],
    ),
    "another value keeps the unknown": (
        {"metrics": ["revenue"], "filters": [{"dimension": "city", "operator": "!=", "value": "上海"}]},
        [[42]],
    ),
    "a named filter": ({"metrics": ["orders"], "filters": [BIG]}, [[3]]),
    "a named filter denied": ({"metrics": ["orders"], "filters": [{"dimension": "big", "value": False}]}, [[4]]),
    "an exclusion keeps the unknown": ({"metrics": ["units"], "exclusions": ["tea"]}, [[6]]),
    "a bound on a metric": (
        {
            "metrics": ["orders"],
            "dimensions": ["city"],
            "filters": [{"dimension": "orders", "operator": ">", "value": 2}],
        },
        [["上海", 3]],
    ),
    "a bound on a metric that is not shown": (
        {"dimensions": ["city"], "filters": [{"dimension": "orders", "operator": ">", "value": 2}]},
        [["上海"]],
    ),
    "a period": ({"metrics": ["revenue"], "time": {"year": 2024, "quarter": 1}}, [[50]]),
    "rows by month": (
        {"metrics": ["orders"], "time": {"year": 2024, "grain": "month"}},
        [["2024-02", 1], ["2024-03", 1], ["2024-06", 1], ["2024-12", 1]],
    ),
    "rows by quarter": (
        {"metrics": ["revenue"], "time": {"year": 2024, "grain": "quarter"}},
        [["2024-Q1", 50], ["2024-Q4", 40]],
    ),
    "rows by week": (
        {"metrics": ["visits"], "time": {"year": 2024, "grain": "week"}},
        [["2024-01-01", 1], ["2024-01-29", 1], ["2024-02-26", 1]],
    ),
    "a year against the year before": (
        {"metrics": ["revenue"], "time": {"year": 2024, "comparison": "yoy"}},
        [[90, 22, 68 / 22]],
    ),
    "quarters against the quarters before": (
        {"metrics": ["orders"], "time": {"year": 2024, "comparison": "qoq", "grain": "quarter"}},
        [["2024-Q1", 2, 2, 0.0], ["2024-Q2", 1, 2, -0.5], ["2024-Q3", None, 1, None], ["2024-Q4", 1, None, None]],
    ),
    "months against the months before, over the turn of the year": (
        {
            "metrics": ["orders"],
            "time": {"start": "2023-12-01", "end": "2024-01-31", "comparison": "mom", "grain": "month"},
        },
        [["2023-12", 1, 1, 0.0], ["2024-01", None, 1, None]],
    ),
    "by a dimension against the year before": (
        {"metrics": ["revenue"], "dimensions": ["city"], "time": {"year": 2024, "comparison": "yoy"}},
        [["Berlin", 20, 10, 1.0], ["上海", 70, None, None], [None, None, 12, None]],
    ),
    "metrics of two tables are each summed before they meet": (
        {"metrics": ["revenue", "visits"], "dimensions": ["customer"]},
        [["Ann", 30, 2], ["Bob", 30, 1], ["O'Neil", 7, 1], ["李雷", 40, None], [None, 5, None]],
    ),
    "a metric over metrics": (
        {
            "metrics": ["revenue_per_visit"],
            "dimensions": ["customer"],
            "filters": [{"dimension": "city", "value": "上海"}],
        },
        [["Bob", 30.0], ["李雷", None]],
    ),
    "from the first of the year to today": ({"metrics": ["orders"], "time": {"comparison": "ytd"}}, [[4]]),
    "a list": ({"dimensions": ["product"]}, [["cup"], ["tea"], [None]]),
    "a list of some": (
        {"dimensions": ["customer"], "filters": [{"dimension": "city", "value": "上海"}]},
        [["Bob"], ["李雷"]],
    ),
}


def normalize_cell(value):
    number = isinstance(value, int | float) or (isinstance(value, str) and value.replace(".", "").isdigit())
    return round(float(value), 6) if number else value


def sort_rows(rows):
    return sorted((tuple(normalize_cell(value) for value in row) for row in rows), key=repr)


@pytest.mark.parametrize("name", CASES)
async def test_an_intent_has_the_same_rows_on_every_engine(name, shop, shop_model):
    intent, rows = CASES[name]
    compiled = compile_intent(StructuredIntent(**intent), shop_model, shop.dialect, TODAY)
    assert isinstance(compiled, CompiledQuery), compiled
    schema = await shop.get_schema()
    assert check_names(parse_safe_query(compiled.sql, shop.dialect, schema), schema) == ()
    result = await shop.run(compiled.sql)
    assert result.columns == compiled.columns
    assert sort_rows(result.rows) == sort_rows(rows)


UNSUPPORTED = {
    "a condition that a default filter may contradict": (
        {"metrics": ["revenue"], "filters": [{"dimension": "paid", "value": False}]},
        "a default filter of revenue restricts paid too",
    ),
    "a join that would count twice": (
        {"metrics": ["revenue"], "dimensions": ["product"]},
        "revenue cannot go with product: joining lines to orders would multiply the rows of orders, or no join leads there",
    ),
    "a metric without a date": (
        {"metrics": ["customers"], "time": {"year": 2024}},
        "customers cannot be dated: orders.day is not reached from customers",
    ),
    "an id that is not there": (
        {"metrics": ["revenu"]},
        "There is no metric 'revenu' in the semantic model; did you mean revenue or revenue_per_visit?",
    ),
    "weeks against the year before": (
        {"metrics": ["orders"], "time": {"year": 2024, "comparison": "yoy", "grain": "week"}},
        "yoy of rows by week",
    ),
    "a list without values": (
        {"metrics": ["orders"], "filters": [{"dimension": "city", "operator": "in", "value": []}]},
        "a list of values is empty",
    ),
    "an order by something else": (
        {"metrics": ["orders"], "order_by": {"column": "city"}},
        "There is no column 'city' in the semantic model",
    ),
    "nothing": ({}, "The intent names no metric and no dimension: name at least one."),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_an_unsupported_intent_has_a_reason(name, shop_model):
    intent, reason = UNSUPPORTED[name]
    unsupported = compile_intent(StructuredIntent(**intent), shop_model, "duckdb", TODAY)
    assert isinstance(unsupported, UnsupportedIntent)
    assert unsupported.reason.startswith(reason)


def test_an_ambiguous_join_path_is_unsupported():
    model = parse_semantic_model(
        "joins: [a.b_id = b.id, a.c_id = c.id, b.d_id = d.id, c.d_id = d.id]\n"
        "metrics: {n: {expr: COUNT(*), table: a}}\ndimensions: {d: {expr: name, table: d}}"
    )
    unsupported = compile_intent(StructuredIntent(metrics=("n",), dimensions=("d",)), model, "sqlite", TODAY)
    assert isinstance(unsupported, UnsupportedIntent)
    assert "give each role its own table" in unsupported.reason


async def test_an_unfinished_period_is_compared_by_its_days_so_far(shop, shop_model):
    intent = StructuredIntent(metrics=("orders",), time=TimeIntent(year=2024, comparison="yoy"))
    compiled = compile_intent(intent, shop_model, shop.dialect, datetime.date(2024, 11, 30))
    assert isinstance(compiled, CompiledQuery)
    assert [(localize(text, "en"), localize(text, "zh")) for text in compiled.assumptions] == [
        (
            "the period is not over: its days up to 2024-11-30 are compared with the same days before",
            "该时间段尚未结束：截至 2024-11-30 的日期与之前相同的日期对比",
        )
    ]
    assert [list(row) for row in (await shop.run(compiled.sql)).rows] == [[3, 2, 0.5]]


async def test_a_period_with_an_open_end_is_compared_by_its_days_so_far(shop, shop_model):
    intent = StructuredIntent(metrics=("orders",), time=TimeIntent(start=datetime.date(2024, 1, 1), comparison="yoy"))
    compiled = compile_intent(intent, shop_model, shop.dialect, TODAY)
    assert isinstance(compiled, CompiledQuery)
    assert [list(row) for row in (await shop.run(compiled.sql)).rows] == [[4, 3, 1 / 3]]


RESTRICTED = parse_semantic_model("""
default_filters: ["region <> 'Test'"]
metrics:
  trips: {expr: COUNT(*), table: trips, default_filters: ["state <> 'Cancelled'"]}
  rides: {expr: COUNT(*), table: trips}
  trips_per_ride: trips / rides
dimensions:
  state: {expr: state, table: trips}
  region: {expr: lower(region), table: trips}
  driver: {expr: driver, table: trips}
""")


@pytest.mark.parametrize(
    ("metric", "dimension", "is_supported"),
    [
        ("trips", "state", False),
        ("rides", "state", True),
        ("trips_per_ride", "state", False),
        ("rides", "region", False),
        ("trips", "driver", True),
    ],
)
def test_a_filter_on_a_column_of_a_default_filter_goes_to_the_model(metric, dimension, is_supported):
    for value, operator in (("Cancelled", "="), ("Test", "!="), (("a", "b"), "in")):
        filters = ({"dimension": dimension, "value": value, "operator": operator},)
        intent = StructuredIntent(metrics=(metric,), filters=filters)
        assert isinstance(compile_intent(intent, RESTRICTED, "sqlite", TODAY), CompiledQuery) == is_supported
    grouped = StructuredIntent(metrics=(metric,), dimensions=(dimension,))
    assert isinstance(compile_intent(grouped, RESTRICTED, "sqlite", TODAY), CompiledQuery)


def test_a_list_in_a_model_with_default_filters_goes_to_the_model():
    compiled = compile_intent(StructuredIntent(dimensions=("driver",)), RESTRICTED, "sqlite", TODAY)
    assert isinstance(compiled, UnsupportedIntent)


def test_what_a_ranking_leaves_out_is_an_assumption(shop_model):
    intent = StructuredIntent(metrics=("revenue",), dimensions=("city",), limit=1, order_by={"column": "revenue"})
    compiled = compile_intent(intent, shop_model, "sqlite", TODAY)
    assert [(localize(text, "en"), localize(text, "zh")) for text in compiled.assumptions] == [
        ("rows without city are left out", "不含没有 city 的数据")
    ]
    listed = compile_intent(intent.model_copy(update={"limit": None}), shop_model, "sqlite", TODAY)
    assert listed.assumptions == ()
