"""A JSON final answer is emitted while it streams."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.parsers.linear_time import assert_linear

from opposable.domain.events import TextDelta
from opposable.domain.tools import ToolDefinition
from opposable.parsers import StreamParser, parse
from opposable.parsers.marker_aliases import MARKER_ALIASES

ADD = ToolDefinition("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
HEAD = '{"action": "finish", "content": "'


def parse_in_chunks(text, size, **close):
    parser = StreamParser([ADD])
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    result = parser.close(**close)
    emitted = "".join(event.text for event in (*events, *parser.final_events) if type(event) is TextDelta)
    return emitted, result


def test_an_answer_is_emitted_in_deltas():
    parser = StreamParser([ADD])
    parser.feed('{"action": "finish", "content": "')
    assert parser.feed("It is") == (TextDelta("It is"),)
    assert parser.feed(" 12.") == (TextDelta(" 12."),)
    assert parser.feed('"}') == ()
    assert parser.close().text == "It is 12."


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
    ('{"action": "finish", "content": "comma",}', "comma"),
    ('{"action": "finish", "content": "brackets"}}', "brackets"),
    ('{"action": "finish", "content": "a"} }]\nand more', "a\nand more"),
    ('{"action": "finish", "content": "Use {{start}} and }"}', "Use {{start}} and }"),
    (
        '{"action": "finish", "content": "<tool_call>{\\"name\\": \\"add\\", \\"arguments\\": {\\"a\\": 1}}</tool_call>"}',
        None,
    ),
]


@pytest.mark.parametrize(("text", "expected"), ANSWERS)
def test_an_answer_is_unwrapped_and_has_no_calls(text, expected):
    result = parse(text, [ADD])
    assert result.calls == ()
    if expected is not None:
        assert result.text == expected


@pytest.mark.parametrize("text", [text for text, _ in ANSWERS])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_an_answer_is_the_same_however_it_is_split(text, size):
    emitted, result = parse_in_chunks(text, size)
    assert (emitted.strip(), result.text) == (parse(text, [ADD]).text, parse(text, [ADD]).text)


@given(st.text(max_size=60), st.integers(1, 9))
def test_any_text_is_emitted_unchanged(text, size):
    text = text.encode("utf-8", "ignore").decode().strip()
    assume(not any(alias in text for alias in MARKER_ALIASES))  # the parser replaces these
    reply = json.dumps({"action": "finish", "content": text}, ensure_ascii=bool(size % 2))
    emitted, result = parse_in_chunks(reply, size)
    assert result.text == text
    assert emitted.strip() == text


def test_calls_of_the_same_protocol_are_parsed():
    text = '{"action": "tool_call", "tool_calls": [{"name": "add", "arguments": {"a": 1}}]}'
    for size in (1, 5, 1000):
        assert [call.arguments for call in parse_in_chunks(text, size)[1].calls] == [{"a": 1}]


@pytest.mark.parametrize("pattern", ["word \\n \\u4f60 ", '"', '", '], ids=["escapes", "quotes", "fields"])
def test_a_long_answer_takes_linear_time(pattern):
    assert_linear(lambda size: parse_in_chunks(HEAD + pattern * size + '"}', 8), 1_000)
    assert_linear(lambda size: parse(HEAD + pattern * size, [ADD]), 5_000)
