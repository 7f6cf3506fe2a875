"""Replies of particular model families give the expected calls, text and thinking."""

import pytest
from tests.parsers.texts import TEXTS, TOOLS

from opposable.parsers import StreamParser, parse


def get_calls_and_text(result):
    return [(call.name, call.arguments) for call in result.calls], result.text


@pytest.mark.parametrize(("text", "calls", "shown", "thinking"), TEXTS)
def test_a_reply_is_parsed(text, calls, shown, thinking):
    result = parse(text, TOOLS)
    assert get_calls_and_text(result) == (calls, shown)
    assert thinking is None or result.thinking == thinking


@pytest.mark.parametrize(("text", "calls", "shown", "thinking"), TEXTS)
def test_a_reply_in_single_characters_is_parsed_the_same(text, calls, shown, thinking):
    parser = StreamParser(TOOLS)
    for character in text:
        parser.feed(character)
    result = parser.close()
    assert get_calls_and_text(result) == (calls, shown)
    assert thinking is None or result.thinking == thinking
