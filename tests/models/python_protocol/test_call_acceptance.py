"""Which calls are made, by confidence and by the words of the request."""

import pytest
from tests.models.python_protocol.weather_tool import WEATHER

from opposable.domain.events import Reply, Token
from opposable.domain.messages import assistant_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.python_protocol.call_acceptance import (
    count_ungrounded_numbers,
    drop_dependent_calls,
    get_grounding_score,
    get_no_call_logprob,
    is_acceptable,
    load_weights,
)
from opposable.models.python_protocol.call_reader import read_calls


@pytest.mark.parametrize(("arguments", "expected"), [({}, False), ({"url": "https://news.org"}, True)])
def test_a_call_without_a_required_argument_is_not_made(arguments, expected):
    tool = ToolDefinition("get", "Get it.", {"properties": {"url": {"type": "string"}}, "required": ["url"]})
    choice = Reply(assistant_message("get"), tokens=(Token("get", (("get", 0.0),)),))
    call = ToolCall("c", "get", arguments)
    assert is_acceptable(choice, choice, (call,), (tool,), "read https://news.org") is expected


def test_lists_of_anything_are_borne_out_by_nothing():
    ids = {"type": "array", "items": True}
    tool = ToolDefinition("delete", "", {"properties": {"ids": ids}, "required": ["ids"]})
    assert get_grounding_score((ToolCall.from_json("c", "delete", '{"ids": ["a"]}'),), (tool,), "x") == 0.0


@pytest.mark.parametrize(
    ("alternatives", "logprob"),
    [
        ((("get", -0.5), ("pass", -2.0)), -2.0),
        ((("pass", -0.7), (" pass", -3.0)), -0.604),
        ((("get", -0.1),), -12.0),
    ],
)
def test_the_no_call_option_is_measured_at_the_first_token(alternatives, logprob):
    tokens = (Token("x", alternatives), Token("y", (("pass", 0.0),)))
    assert get_no_call_logprob(Reply(assistant_message("x"), tokens=tokens)) == pytest.approx(logprob, abs=0.001)


@pytest.mark.parametrize(("content", "logprob"), [("```python\npass", 0.0), ("```python\nget", -12.0)])
def test_without_probabilities_the_no_call_option_is_what_the_model_wrote(content, logprob):
    assert get_no_call_logprob(Reply(assistant_message(content))) == logprob


@pytest.mark.parametrize(
    ("said", "arguments", "share"),
    [
        ("weather in Oslo", 'city="Oslo"', 1.0),
        ("weather in New York", 'city="New York City"', 2 / 3),
        ("weather in district two", 'city="District 2"', 1.0),
        ("weather in mc murdo station", 'city="McMurdo\'s Station"', 1 / 3),
        ("tell me a joke", 'city="Paris"', 0.0),
        ("the forecast for Norwegian towns", 'city="Norway"', 1.0),
        ("奥斯陆的天气", 'city="奥斯陆"', 1.0),
        ("奥斯陆的天气", 'city="卑尔根"', 0.0),
        ("奥斯陆的天气", 'city="Oslo"', 1.0),
        ("the weather in Oslo", 'city="奥斯陆"', 1.0),
        ("Bergen 的天气", 'city="Bergen"', 1.0),
        ("the weather in 奥斯陆", 'city="Oslo 奥斯"', 2 / 3),
        ("weather", 'city="weather", unit="celsius"', 1.0),
    ],
)
def test_a_required_text_is_borne_out_by_the_words_that_were_said(said, arguments, share):
    calls = read_calls(f"get_weather({arguments})", (WEATHER,))
    assert get_grounding_score(calls, (WEATHER,), said) == pytest.approx(share)


@pytest.mark.parametrize(
    ("said", "ids", "share"),
    [
        ("delete the tasks 7 and 8", "[7, 8]", 1.0),
        ("delete the old tasks", "[1, 2, 3]", 0.0),
        ("tell Ana and Rui", '["Ana", "Rui", "Eva"]', 2 / 3),
        ("delete all", "[]", 1.0),
        ("delete this", '[{"id": 1}]', 1.0),
        ("add 1,000 and 2,000", "[1000, 2000]", 1.0),
        ("三加四", "[3, 4]", 1.0),
    ],
)
def test_a_required_list_is_borne_out_by_the_words_that_were_said(said, ids, share):
    tool = ToolDefinition("delete", "", {"properties": {"ids": {"type": "array", "items": {}}}, "required": ["ids"]})
    call = ToolCall.from_json("c", "delete", f'{{"ids": {ids}}}')
    assert get_grounding_score((call,), (tool,), said) == pytest.approx(share)


@pytest.mark.parametrize(
    ("said", "arguments", "count"),
    [
        ("how far is it", '{"lat": 59.91, "long": [10.75]}', 2),
        ("from 59.91 to 10.75", '{"lat": 59.91, "long": 10.75}', 0),
        ("5 % of 100 million", '{"share": 0.05, "of": 100000000}', 0),
        ("a dozen", '{"number": 12}', 0),
        ("on 20230929", '{"day": "2023-09-29"}', 0),
        ("on the 29th of September", '{"day": "2023-09-29"}', 0),
        ("on March 3rd", '{"day": "2023-03-03", "number": 731}', 1),
        ("on March 3rd", '{"day": "03/03/2023", "year": 1999}', 1),
        ("the mean of 3, 4 and 5", '{"numbers":[3,4,5]}', 0),
        ("", "{}", 0),
    ],
)
def test_ungrounded_long_numbers_are_counted(said, arguments, count):
    assert count_ungrounded_numbers((ToolCall.from_json("c", "f", arguments),), said) == count


def test_the_weights_are_numbers():
    assert all(isinstance(weight, float) for weight in load_weights().values())


FIND = ToolDefinition(
    "find_order", "", {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
)
CANCEL = ToolDefinition(
    "cancel_order", "", {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ('find_order(name="Ann")\ncancel_order(id="A-1711")', ["find_order"]),
        ('find_order(name="Ann")\ncancel_order(id="unknown")', ["find_order"]),
        ('find_order(name="Ann")\ncancel_order(id="B-20")', ["find_order", "cancel_order"]),
        ('cancel_order(id="A-1711")\ncancel_order(id="A-1712")', ["cancel_order", "cancel_order"]),
        ('find_order(name="Bob")\ncancel_order(id="A-1711")', ["find_order", "cancel_order"]),
    ],
    ids=["an invented id", "invented words", "said", "one tool", "nothing said"],
)
def test_a_call_that_depends_on_the_result_of_another_tool_is_left_out(code, names):
    said = "Cancel the order of Ann, or B-20"
    tools = (FIND, CANCEL)
    calls = read_calls(code, tools)
    assert [call.name for call in drop_dependent_calls(calls, tools, said)] == names
