import pytest
from tests.ask.intent.questions import TODAY

from opposable.ask.intent.dimension_values import load_dimension_values
from opposable.ask.intent.intent import IntentFilter
from opposable.ask.intent.parser import SemanticParser
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio


async def test_values_are_loaded_from_the_database(shop_urls, shop_model):
    database = await open_database(shop_urls["sqlite"])
    values = await load_dimension_values(shop_model, database)
    await database.close()
    assert sorted(values["customer"]) == ["Ann", "Bob", "O'Neil", "李雷"]
    assert SemanticParser(shop_model, values).parse("orders of o'neil in 上海", TODAY).intent.filters == (
        IntentFilter(dimension="customer", value="O'Neil"),
        IntentFilter(dimension="city", value="上海"),
    )
