import pytest
from tests.ask.intent.questions import TODAY, VALUES

from opposable.ask.intent.number_parsing import parse_number
from opposable.ask.intent.parser import SemanticParser

NUMBERS = {
    "一千五": 1_500,
    "三百二": 320,
    "两百五": 250,
    "一千零五": 1_005,
    "一千零五十": 1_050,
    "一百二十三": 123,
    "一百零五": 105,
    "二十三": 23,
    "十": 10,
    "十二": 12,
    "二〇二四": None,
    "一万五": 15_000,
    "一万五千": 15_000,
    "三万零五": 30_005,
    "一百二十万": 1_200_000,
    "一亿": 100_000_000,
    "两三百": None,
    "两三": None,
    "十五六": None,
    "一千二三": None,
    "一亿五千万": None,
    "5千": 5_000,
    "2.5k": 2_500,
    "100万": 1_000_000,
    "1,000": 1_000,
    "12,345,678.5": 12_345_678.5,
    "1,5": None,
    "12,34,567": None,
    "1万5": None,
    "50%": None,
    "twelve": 12,
    "": None,
}


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_are_parsed(text):
    assert parse_number(text) == NUMBERS[text]


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("cities with revenue over 1,500, highest first", 1_500),
        ("销售额超过一千五的城市", 1_500),
        ("销售额超过一万五的城市", 15_000),
        ("销售额超过5千的城市", 5_000),
    ],
)
def test_a_number_bounds_a_metric(question, number, shop_model):
    parsed = SemanticParser(shop_model, VALUES).parse(question, TODAY)
    assert [condition.value for condition in parsed.intent.filters] == [number]
    assert (parsed.is_resolved, parsed.intent.limit) == (True, None)


@pytest.mark.parametrize(
    "question",
    [
        *("cities with revenue over 1,5", "cities with revenue over 1.234,56", "cities with revenue over 12,34,567"),
        *("销售额超过1万5的城市", "销售额超过1万5千的城市", "销售额超过2k5的城市", "销售额超过两三百的城市"),
        *("cities with revenue over 50%", "销售额超过50%的城市", "cities with revenue above 12.5 %"),
    ],
)
def test_a_number_of_several_readings_goes_to_the_model(question, shop_model):
    assert not SemanticParser(shop_model, VALUES).parse(question, TODAY).is_resolved
