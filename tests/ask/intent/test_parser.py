import pytest
from tests.ask.intent.questions import TODAY, VALUES

from opposable.ask.intent.parser import SemanticParser
from opposable.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_a_question_that_rules_resolve_needs_no_model(shop_model):
    model = ScriptedModel("{}")
    await SemanticParser(shop_model, VALUES, model).parse("各城市的销售额", TODAY)
    assert model.requests == []
