"""What is quoted, explained, thought of, repeated or only alike is never called."""

import pytest
from tests.parsers.no_calls import NO_CALLS, PLAIN, QUOTED

from opposable.parsers import StreamParser, parse

TOOLS = [
    {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    }
]
MARKED = ("<|", "think", "finish")


@pytest.mark.parametrize("text", NO_CALLS.values(), ids=NO_CALLS)
def test_it_is_no_call(text):
    assert parse(text, TOOLS).calls == ()
    reader = StreamParser(TOOLS)
    for letter in text:
        reader.feed(letter)
    assert reader.close() == parse(text, TOOLS)


SHOWN_AS_IT_IS = {name: text for name, text in {**PLAIN, **QUOTED}.items() if not any(mark in text for mark in MARKED)}


@pytest.mark.parametrize("text", SHOWN_AS_IT_IS.values(), ids=SHOWN_AS_IT_IS)
def test_it_is_shown_as_it_is(text):
    assert parse(text, TOOLS).text == text.strip()
