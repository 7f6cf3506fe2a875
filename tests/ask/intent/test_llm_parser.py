import json

import pytest
from tests.ask.intent.questions import TODAY, VALUES, build_intent

from opposable.ask.intent.intent import IntentFilter, TimeIntent
from opposable.ask.intent.llm_parser import build_intent_schema
from opposable.ask.intent.parser import SemanticParser
from opposable.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_a_model_adds_ids_and_the_rules_determine_time_and_values(shop_model):
    answer = {
        "intent_type": "dimension",
        "metrics": ["revenue"],
        "dimensions": ["city"],
        "time": {"year": 1999},
        "limit": None,
    }
    model = ScriptedModel(json.dumps(answer))
    parsed = await SemanticParser(shop_model, VALUES, model).parse("Bob 2024年的营业业绩按地方看", TODAY)
    assert (parsed.source, parsed.is_resolved) == ("model", True)
    assert parsed.intent == build_intent(
        "revenue",
        dimensions=["city"],
        time=TimeIntent(granularity="year", year=2024),
        filters=[IntentFilter(dimension="customer", value="Bob")],
        intent_type="dimension",
    )
    request = model.requests[0]
    assert request.options.response_schema == build_intent_schema(shop_model)
    assert request.options.stream is False
    assert parsed.usage.requests == 1


@pytest.mark.parametrize(
    "answer",
    ["I do not know", '{"metrics": ["profit"]}', '{"metrics": []}', '{"metrics": 1}', "[]", '{"metrics": ["revenue"]'],
)
async def test_an_answer_with_unknown_ids_is_ignored(answer, shop_model):
    parsed = await SemanticParser(shop_model, VALUES, ScriptedModel(answer)).parse("profit of purple elephants", TODAY)
    assert (parsed.source, parsed.is_resolved, parsed.usage.requests) == ("rules", False, 1)
    assert parsed.ambiguities


def test_the_schema_allows_only_the_ids_of_the_model(shop_model):
    schema = build_intent_schema(shop_model)
    assert schema["properties"]["metrics"]["items"]["enum"] == list(shop_model.metrics)
    assert schema["properties"]["exclusions"]["items"]["enum"] == ["tea"]
