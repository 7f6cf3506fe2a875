"""Final answers of the seed protocol are told while they are written."""

import json
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from opposable.domain.events import TextDelta
from opposable.domain.tools import ToolDefinition
from opposable.parsers import StreamParser, parse
from opposable.parsers.marker_aliases import MARKER_ALIASES

ADD = ToolDefinition("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})


def shown(text, size, **close):
    reader = StreamParser([ADD])
    parts = [part for at in range(0, len(text), size) for part in reader.feed(text[at : at + size])]
    reading = reader.close(**close)
    told = "".join(part.text for part in (*parts, *reader.final_events) if type(part) is TextDelta)
    return told, reading


def test_the_answer_comes_piece_by_piece():
    reader = StreamParser([ADD])
    reader.feed('{"action": "finish", "content": "')
    assert reader.feed("It is") == (TextDelta("It is"),)
    assert reader.feed(" 12.") == (TextDelta(" 12."),)
    assert reader.feed('"}') == ()
    assert reader.close().text == "It is 12."


ANSWERS = [
    ('{"action": "finish", "content": "plain"}', "plain"),
    ('{\n  "action" : "finish",\n  "content" : "spaced"\n}', "spaced"),
    (
        '{"action":"finish","content":"a\\nb \\"quoted\\" \\\\ \\u4f60\\u597d \\ud83d\\ude00 é"}',
        'a\nb "quoted" \\ 你好 😀 é',
    ),
    ('{"action": "finish", "content": "he said "yes" to it"}', 'he said "yes" to it'),
    ('{"action": "finish", "content": "x", "reasoning": "because } of \\"y\\""}', "x"),
    ('{"action": "finish", "content": ""}', ""),
    ('{"action": "finish", "content": "no end', "no end"),
    ('{"action": "finish", "content": "half \\u4f', "half \\u4f"),
    ('{"action": "finish", "content": "a"} and more', "a\nand more"),
    ('{"action": "finish", "content": "Use {{start}} and }"}', "Use {{start}} and }"),
    (
        '{"action": "finish", "content": "<tool_call>{\\"name\\": \\"add\\", \\"arguments\\": {\\"a\\": 1}}</tool_call>"}',
        None,
    ),
]


@pytest.mark.parametrize(("text", "expected"), ANSWERS)
def test_an_answer_is_unwrapped_and_holds_no_calls(text, expected):
    reading = parse(text, [ADD])
    assert reading.calls == ()
    if expected is not None:
        assert reading.text == expected


@pytest.mark.parametrize("text", [text for text, _ in ANSWERS])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_the_answer_is_the_same_however_it_is_cut(text, size):
    told, reading = shown(text, size)
    assert (told.strip(), reading.text) == (parse(text, [ADD]).text, parse(text, [ADD]).text)


@given(st.text(max_size=60), st.integers(1, 9))
def test_any_text_comes_through_as_it_was_meant(said, size):
    said = said.encode("utf-8", "ignore").decode().strip()
    assume(not any(alias in said for alias in MARKER_ALIASES))  # these are told in the words they are read as
    text = json.dumps({"action": "finish", "content": said}, ensure_ascii=bool(size % 2))
    told, reading = shown(text, size)
    assert reading.text == said
    assert told.strip() == said


def test_calls_of_the_protocol_are_still_read():
    text = '{"action": "tool_call", "tool_calls": [{"name": "add", "arguments": {"a": 1}}]}'
    for size in (1, 5, 1000):
        assert [call.arguments for call in shown(text, size)[1].calls] == [{"a": 1}]


def test_long_answers_take_time_in_proportion():
    body = "word \\n \\u4f60 " * 60_000
    started = time.process_time()
    text = '{"action": "finish", "content": "' + body + '"}'
    reader = StreamParser([ADD])
    for at in range(0, len(text), 8):
        reader.feed(text[at : at + 8])
    reader.close()
    parse('{"action": "finish", "content": "' + '"' * 200_000, [ADD])
    parse('{"action": "finish", "content": "' + '", ' * 100_000, [ADD])
    assert time.process_time() - started < 20
