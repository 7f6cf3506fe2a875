import pytest
from tests.ask.intent.questions import TODAY

from opposable.ask.intent.parser import SemanticParser
from opposable.ask.team.semantic_interpreter import interpret_question
from opposable.ask.team.state import TeamState
from opposable.domain.language import detect_language
from opposable.domain.localized_text import localize
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("question", "assumptions"),
    [
        ("revenue of the last 3 months", ["the last 3 months ends with 2024-12-31"]),
        ("最近3个月的销售额", ["“最近3个月”截止到 2024-12-31"]),
        ("revenue in May", ["may is taken as that of 2024"]),
        ("5月的销售额", ["“5月”理解为 2024 年"]),
        ("revenue yoy", ["no period was named: the year 2024 is compared"]),
        ("销售额同比", ["没有指明时间范围：对比的是 2024 年"]),
    ],
)
async def test_assumptions_are_in_the_language_of_the_question(question, assumptions, shop_urls, shop_model):
    database = await open_database(shop_urls["sqlite"])
    state = TeamState(question, detect_language(question))
    parser = SemanticParser(shop_model, {})
    interpret_question(state, parser, database.dialect, lambda: TODAY)
    await database.close()
    assert [localize(text, state.language) for text in state.assumptions] == assumptions
