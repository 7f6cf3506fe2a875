import datetime
import json

import pytest

from opposable.ask.intent.intent import IntentFilter, OrderBy, StructuredIntent, TimeIntent
from opposable.ask.intent.llm_parser import build_intent_schema
from opposable.ask.intent.parser import SemanticParser
from opposable.ask.intent.value_lookup import (
    DimensionValueLookup,
    IndexValueLookup,
    ValueMention,
    load_dimension_values,
)
from opposable.ask.team.briefing import SemanticModelInterpreter
from opposable.domain.language import detect_language
from opposable.models.scripted import ScriptedModel
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio
TODAY = datetime.date(2024, 12, 31)
VALUES = DimensionValueLookup(
    {"city": ["Berlin", "上海"], "customer": ["Ann", "Bob", "李雷", "O'Neil"], "product": ["tea", "cup", "40"]}
)


def intent(*metrics: str, **more: object) -> StructuredIntent:
    return StructuredIntent.model_validate({"metrics": metrics, **more})


TOP = {"order_by": OrderBy(column="revenue"), "intent_type": "dimension"}
CASES = {
    "What was our revenue in 2024?": intent("revenue", time={"granularity": "year", "year": 2024}),
    "2024年的流水是多少": intent("revenue", time={"granularity": "year", "year": 2024}),
    "Revenue by city": intent("revenue", dimensions=["city"], intent_type="dimension"),
    "各城市的销售额": intent("revenue", dimensions=["city"], intent_type="dimension"),
    "按城市和客户统计订单数": intent("orders", dimensions=["city", "customer"], intent_type="dimension"),
    "Top 3 clients by revenue": intent("revenue", dimensions=["customer"], limit=3, **TOP),
    "销售额最高的3个客户": intent("revenue", dimensions=["customer"], limit=3, **TOP),
    "销售额前五的城市": intent("revenue", dimensions=["city"], limit=5, **TOP),
    "哪个城市的销售额最高？": intent("revenue", dimensions=["city"], limit=1, **TOP),
    "Which town has the lowest sales?": intent(
        "revenue",
        dimensions=["city"],
        limit=1,
        order_by={"column": "revenue", "direction": "ASC"},
        intent_type="dimension",
    ),
    "各城市销售额，从低到高": intent(
        "revenue", dimensions=["city"], order_by={"column": "revenue", "direction": "ASC"}, intent_type="dimension"
    ),
    "How many orders from Shanghai?": intent("orders", filters=[IntentFilter(dimension="city", value="上海")]),
    "上海有多少客户？": intent("customers", filters=[IntentFilter(dimension="city", value="上海")]),
    "柏林和上海的订单数分别是多少": intent(
        "orders",
        dimensions=["city"],
        filters=[IntentFilter(dimension="city", value=("Berlin", "上海"), operator="in")],
        intent_type="dimension",
    ),
    "除了上海，各城市的订单数": intent(
        "orders",
        dimensions=["city"],
        filters=[IntentFilter(dimension="city", value="上海", operator="!=")],
        intent_type="dimension",
    ),
    "units excluding tea": intent("units", exclusions=["tea"], intent_type="complex"),
    "不包括茶的上海销量": intent(
        "units", exclusions=["tea"], filters=[IntentFilter(dimension="city", value="上海")], intent_type="complex"
    ),
    "大额订单数": intent("orders", filters=[IntentFilter(dimension="big", value=True)]),
    "Clients with more than 1,000 of revenue": intent(
        "revenue",
        dimensions=["customer"],
        filters=[IntentFilter(dimension="revenue", value=1000, operator=">")],
        intent_type="dimension",
    ),
    "Clients with revenue above 100": intent(
        "revenue",
        dimensions=["customer"],
        filters=[IntentFilter(dimension="revenue", value=100, operator=">")],
        intent_type="dimension",
    ),
    "Top 3 cities and clients by revenue": intent("revenue", dimensions=["city", "customer"], limit=3, **TOP),
    "订单数超过40的城市": None,
    "2024年每个月的销售额": intent(
        "revenue", time={"granularity": "year", "year": 2024, "grain": "month"}, intent_type="dimension"
    ),
    "Q1流水同比增长多少": intent(
        "revenue",
        time={"granularity": "quarter", "year": 2024, "quarter": 1, "comparison": "yoy"},
        intent_type="trend",
    ),
    "units of tea": intent("units", filters=[IntentFilter(dimension="product", value="tea")]),
    "sales of Bob": intent("revenue", filters=[IntentFilter(dimension="customer", value="Bob")]),
}
CASES["订单数超过40的城市"] = intent(
    "orders",
    dimensions=["city"],
    filters=[IntentFilter(dimension="orders", value=40, operator=">")],
    intent_type="dimension",
)


@pytest.mark.parametrize("question", CASES)
async def test_rules_settle_what_they_know(question, shop_model):
    parsed = await SemanticParser(shop_model, VALUES).parse(question, TODAY)
    assert (parsed.intent, parsed.unmatched_words, parsed.ambiguities) == (CASES[question], (), ())
    assert (parsed.source, parsed.is_resolved) == ("rules", True)


@pytest.mark.parametrize(
    ("question", "unmatched", "unsure"),
    [
        ("revenue of purple elephants", ("purple elephants",), ()),
        ("share of revenue by city", (), ("the word share",)),
        ("各城市销售额占比", (), ("the word 占比",)),
        ("how is the weather", ("weather",), ("no metric of the semantic model is named",)),
        ("revenue growth", (), ("what a change is measured against",)),
        ("revenue above 100", (), ("a bound on a metric needs groups",)),
        ("orders with paid tax", ("tax",), ()),
        ("每个城市销售额最高的客户", (), ("the best within each group",)),
        ("top 3 clients in each city by revenue", (), ("the best within each group",)),
        ("每个月销售额最高的城市", (), ("the best within each group",)),
        ("orders with total above 10 by city", (), ("which total 10 bounds",)),
    ],
)
async def test_what_rules_cannot_settle_is_told(question, unmatched, unsure, shop_model):
    parsed = await SemanticParser(shop_model, VALUES).parse(question, TODAY)
    assert (parsed.unmatched_words, parsed.ambiguities, parsed.is_resolved) == (unmatched, unsure, False)
    assert parsed.confidence < 1


TWICE = DimensionValueLookup({"city": ["Lisbon"], "customer": ["Lisbon"]})


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("revenue of the last 3 months", ["the last 3 months ends with 2024-12-31"]),
        ("最近3个月的销售额", ["“最近3个月”截止到 2024-12-31"]),
        ("revenue trend", ["the trend is shown by month"]),
        ("销售额趋势", ["趋势按月显示"]),
        ("orders of Lisbon", ["Lisbon is taken as city, not customer"]),
        ("Lisbon的订单数", ["“Lisbon”理解为 city，而不是 customer"]),
        ("revenue yoy", ["no period was named: the year 2024 is compared"]),
        ("销售额同比", ["没有指明时间范围：对比的是 2024 年"]),
    ],
)
async def test_what_is_assumed_is_told_in_the_language_of_the_question(question, told, shop_urls, shop_model):
    database = await open_database(shop_urls["sqlite"])
    reading = await SemanticModelInterpreter(shop_model, database, TWICE, lambda: TODAY).interpret(
        question, detect_language(question)
    )
    await database.close()
    assert list(reading.assumptions) == told


async def test_a_settled_question_takes_no_model(shop_model):
    model = ScriptedModel("{}")
    await SemanticParser(shop_model, VALUES, model).parse("各城市的销售额", TODAY)
    assert model.requests == []


async def test_a_model_answers_within_the_ids_and_the_rules_keep_time_and_values(shop_model):
    said = {
        "intent_type": "dimension",
        "metrics": ["revenue"],
        "dimensions": ["city"],
        "time": {"year": 1999},
        "limit": None,
    }
    model = ScriptedModel(json.dumps(said))
    parsed = await SemanticParser(shop_model, VALUES, model).parse("Bob 2024年的营业业绩按地方看", TODAY)
    assert (parsed.source, parsed.is_resolved) == ("model", True)
    assert parsed.intent == intent(
        "revenue",
        dimensions=["city"],
        time=TimeIntent(granularity="year", year=2024),
        filters=[IntentFilter(dimension="customer", value="Bob")],
        intent_type="dimension",
    )
    asked = model.requests[0]
    assert asked.options.response_schema == build_intent_schema(shop_model)
    assert asked.options.stream is False
    assert parsed.usage.requests == 1


@pytest.mark.parametrize(
    "answer",
    ["I do not know", '{"metrics": ["profit"]}', '{"metrics": []}', '{"metrics": 1}', "[]", '{"metrics": ["revenue"]'],
)
async def test_an_answer_outside_the_ids_is_not_taken(answer, shop_model):
    parsed = await SemanticParser(shop_model, VALUES, ScriptedModel(answer)).parse("profit of purple elephants", TODAY)
    assert (parsed.source, parsed.is_resolved, parsed.usage.requests) == ("rules", False, 1)
    assert parsed.ambiguities


def test_the_schema_knows_no_other_ids(shop_model):
    schema = build_intent_schema(shop_model)
    assert schema["properties"]["metrics"]["items"]["enum"] == list(shop_model.metrics)
    assert schema["properties"]["exclusions"]["items"]["enum"] == ["tea"]


async def test_values_are_read_from_the_database(shop_urls, shop_model):
    database = await open_database(shop_urls["sqlite"])
    values = await load_dimension_values(shop_model, database)
    await database.close()
    assert await values("orders of o'neil in 上海") == [
        ValueMention("O'Neil", 10, 16, "customer", score=0.95),
        ValueMention("上海", 20, 22, "city"),
    ]


async def test_an_index_tells_table_and_column(shop_model):
    class Found:
        table, column, value, phrase, score = "customers", "CITY", "上海", "上海", 1.0

    async def matches(text: str) -> list[Found]:
        return [Found()]

    parsed = await SemanticParser(shop_model, IndexValueLookup(matches)).parse("上海的订单数", TODAY)
    assert parsed.intent == intent("orders", filters=[IntentFilter(dimension="city", value="上海")])
