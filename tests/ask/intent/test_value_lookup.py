import pytest
from tests.ask.intent.questions import TODAY, build_intent

from opposable.ask.intent.intent import IntentFilter
from opposable.ask.intent.parser import SemanticParser
from opposable.ask.intent.value_lookup import IndexValueLookup, ValueMention, load_dimension_values
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio


async def test_values_are_loaded_from_the_database(shop_urls, shop_model):
    database = await open_database(shop_urls["sqlite"])
    values = await load_dimension_values(shop_model, database)
    await database.close()
    assert await values("orders of o'neil in 上海") == [
        ValueMention("O'Neil", 10, 16, "customer", score=0.95),
        ValueMention("上海", 20, 22, "city"),
    ]


class Match:
    table, column, value, phrase, score = "customers", "CITY", "上海", "上海", 1.0


async def test_a_value_of_an_index_is_matched_to_its_dimension(shop_model):
    async def match_values(text: str) -> list[Match]:
        return [Match()]

    parsed = await SemanticParser(shop_model, IndexValueLookup(match_values)).parse("上海的订单数", TODAY)
    assert parsed.intent == build_intent("orders", filters=[IntentFilter(dimension="city", value="上海")])
