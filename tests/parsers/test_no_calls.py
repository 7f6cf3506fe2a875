"""Quoted, explained, considered or repeated calls, and similar texts, are never executed."""

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
def test_the_text_has_no_calls(text):
    assert parse(text, TOOLS).calls == ()
    parser = StreamParser(TOOLS)
    for character in text:
        parser.feed(character)
    assert parser.close() == parse(text, TOOLS)


SHOWN_UNCHANGED = {name: text for name, text in {**PLAIN, **QUOTED}.items() if not any(mark in text for mark in MARKED)}


@pytest.mark.parametrize("text", SHOWN_UNCHANGED.values(), ids=SHOWN_UNCHANGED)
def test_the_text_is_shown_unchanged(text):
    assert parse(text, TOOLS).text == text.strip()
