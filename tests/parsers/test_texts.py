"""Texts of particular families give exactly the calls, the text and the thinking they hold."""

import pytest
from tests.parsers.texts import TEXTS, TOOLS

from opposable.parsers import StreamParser, parse


def told(reading):
    return [(call.name, call.arguments) for call in reading.calls], reading.text


@pytest.mark.parametrize(("text", "calls", "shown", "thinking"), TEXTS)
def test_a_text_gives_what_it_holds(text, calls, shown, thinking):
    reading = parse(text, TOOLS)
    assert told(reading) == (calls, shown)
    assert thinking is None or reading.thinking == thinking


@pytest.mark.parametrize(("text", "calls", "shown", "thinking"), TEXTS)
def test_letter_by_letter_it_gives_the_same(text, calls, shown, thinking):
    reader = StreamParser(TOOLS)
    for letter in text:
        reader.feed(letter)
    reading = reader.close()
    assert told(reading) == (calls, shown)
    assert thinking is None or reading.thinking == thinking
