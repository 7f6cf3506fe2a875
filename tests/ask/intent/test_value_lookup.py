import pytest

from opposable.ask.intent.value_lookup import ValueMention, load_dimension_values
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio


async def test_values_are_loaded_from_the_database(shop_urls, shop_model):
    database = await open_database(shop_urls["sqlite"])
    values = await load_dimension_values(shop_model, database)
    await database.close()
    assert await values("orders of o'neil in 上海") == [
        ValueMention("O'Neil", 10, 16, "customer"),
        ValueMention("上海", 20, 22, "city"),
    ]
