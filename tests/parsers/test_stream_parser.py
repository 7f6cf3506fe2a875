"""Streaming: events are emitted as soon as they are certain and add up to the result; the parser never raises."""

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parsers.linear_time import assert_linear
from tests.parsers.no_calls import NO_CALLS
from tests.parsers.texts import TEXTS

from opposable.domain.events import CallDelta, TextDelta, ThinkingDelta
from opposable.domain.tools import ToolDefinition
from opposable.parsers import CallFinished, StreamParser, TextWasThinking, markers, parse

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "s": {"type": "string"}},
    "required": ["a", "b"],
}
TOOLS = [ToolDefinition("add", "Adds.", SCHEMA), {"name": "add_one", "parameters": {"properties": {"n": {}}}}]
CALL = '{"name": "add", "arguments": {"a": 2, "b": 3}}'


def parse_deltas(deltas, **options):
    parser = StreamParser(TOOLS, new_id=lambda: "id", **options)
    events = [event for delta in deltas for event in parser.feed(delta)]
    result = parser.close()
    return [*events, *parser.final_events], result


def test_plain_text_is_emitted_at_once():
    parser = StreamParser(TOOLS)
    assert parser.feed("Hello") == (TextDelta("Hello"),)
    assert parser.feed(" wor") == (TextDelta(" wor"),)
    assert parser.feed("ld, a < b") == (TextDelta("ld, a < b"),)


def test_a_message_without_text_is_an_empty_reply():
    assert parse(None, []) == parse("", [])


def test_a_possible_marker_is_buffered():
    parser = StreamParser(TOOLS)
    assert parser.feed("So: <tool_") == (TextDelta("So: "),)
    assert parser.feed("box>") == (TextDelta("<tool_box>"),)


def test_a_call_is_emitted_as_soon_as_it_is_complete():
    parser = StreamParser(TOOLS, new_id=lambda: "id")
    assert parser.feed("<tool_call>\n" + CALL[:-1]) == ()
    events = parser.feed("}")
    assert events[:2] == (CallDelta(0, "id", "add"), CallDelta(0, arguments='{"a":2,"b":3}'))
    assert isinstance(events[2], CallFinished)


def test_indexes_increase_by_one_and_names_occur_once():
    events, _ = parse_deltas(list(f"<tool_call>{CALL}</tool_call>" * 3))
    deltas = [event for event in events if isinstance(event, CallDelta)]
    assert [(event.index, event.name) for event in deltas if event.name] == [(0, "add"), (1, "add"), (2, "add")]
    assert [event.call.name for event in events if isinstance(event, CallFinished)] == ["add"] * 3


def test_thinking_is_separated_from_text():
    events, result = parse_deltas(["<thi", "nk>Hm", " so</th", "ink>\n\nYes"])
    assert events == [ThinkingDelta("Hm"), ThinkingDelta(" so"), TextDelta("Yes")]
    assert (result.thinking, result.text) == ("Hm so", "Yes")


def test_thinking_that_the_prompt_opened_is_emitted_as_thinking():
    events, _ = parse_deltas(["Hm", " so</think>Yes"], thinking=True)
    assert events == [ThinkingDelta("Hm"), ThinkingDelta(" so"), TextDelta("Yes")]


def test_text_before_an_unexpected_end_of_thinking_is_reclassified():
    events, result = parse_deltas(["Hm so", "</think>Yes"])
    assert events == [TextDelta("Hm so"), TextWasThinking(), TextDelta("Yes")]
    assert (result.thinking, result.text) == ("Hm so", "Yes")


def test_without_tools_calls_are_text_and_thinking_is_separated():
    result = parse(f"<think>Hm</think>{CALL}", [])
    assert (result.text, result.thinking, result.calls) == (CALL, "Hm", ())


def join_text(events):
    text = ""
    for event in events:
        if isinstance(event, TextDelta):
            text += event.text
        elif isinstance(event, TextWasThinking):
            text = ""
    return text.strip()


def assert_same_result(text, deltas, **options):
    expected = parse_deltas([text], **options)[1]
    events, result = parse_deltas(deltas, **options)
    assert result == expected
    assert join_text(events) == result.text
    return result


@pytest.mark.parametrize("text", [*NO_CALLS.values(), *(text for text, *_ in TEXTS)])
def test_every_split_in_two_gives_the_same_result(text):
    for position in range(0, len(text), 3):
        assert_same_result(text, [text[:position], text[position:]])


FRAGMENTS = sorted({
    *markers.OPENERS, *markers.CLOSERS, *markers.IGNORED_MARKERS, *markers.THINKING_MARKERS, *markers.THINKING_ENDS, *markers.QUOTED_ELEMENTS, *markers.HEADER_MARKERS,
    *markers.TAGGED_CALL_STARTS, CALL, "{", "}", "[", "]", '"', "'", "`", "```", "```json\n", "```tool_code\n", "\n", " ", "\n\n", "hello", "Let me:",
    "Action: add\n", "Action Input: ", "Observation: 5", "add(a=2, b=3)", "[add(a=2, b=3)]", "add\n", "functions.add:0", "[ARGS]", "[CALL_ID]",
    "<|tool_call_argument_begin|>", "<arg_key>a</arg_key>", "<arg_value>2</arg_value>", "<parameter=a>", "</parameter>", 'add">', "add>",
    "<parameter=b>3</parameter>", '{"a": 2, "b": 3}', '{"a": 2, "b":', "For example:", ">>>add\n", " to=functions.add", "<|message|>", "<tool_sep>",
    "<｜tool▁sep｜>", "call:add{", "a:2,b:3}", '<|"|>', "\\", ",", ";", "：", "“", "格", "。", "<![CDATA[", "]]>", "]<]minimax[>[<a>2", "]<]minimax[>[</a>",
})  # fmt: skip


@st.composite
def replies(draw):
    deltas = draw(st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=6)), max_size=16))
    text = "".join(deltas)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return text, [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@settings(max_examples=300, deadline=None)
@given(replies(), st.booleans())
def test_nothing_raises_and_any_split_gives_the_same_result(reply, thinking):
    text, deltas = reply
    assert_same_result(text, deltas, thinking=thinking)
    assert_same_result(text, list(text), thinking=thinking)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_parsed(text):
    assert_same_result(text, list(text))


@settings(max_examples=200, deadline=None)
@given(
    st.text(
        alphabet=st.characters(exclude_characters="<>[]{}`\n\r=:|◁▷", exclude_categories=["Cs", "Z", "C"]), min_size=1
    )
)
def test_text_without_markers_is_unchanged(text):
    assert parse(text, TOOLS).text == text.strip()


JSON_KEYS = st.sampled_from(
    [
        "name",
        "arguments",
        "parameters",
        "action",
        "action_input",
        "tool_calls",
        "function",
        "id",
        "type",
        "reasoning",
        "content",
        "add",
        "a",
        "b",
    ]
)
JSON_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(max_size=5),
    st.sampled_from(["add", "finish", "tool_call", "{}", CALL]),
)
JSON_VALUES = st.recursive(
    JSON_LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(JSON_KEYS, inner, max_size=4)),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(JSON_VALUES, st.sampled_from(["", "<tool_call>", "```json\n", "[TOOL_CALLS]", "<|tools_prefix|>"]))
def test_any_json_is_parsed(value, opening):
    text = opening + json.dumps(value)
    assert_same_result(text, list(text))


HOSTILE = {
    "prose": "Hello world, this is text.\n",
    "calls": f"<tool_call>\n{CALL}\n</tool_call>\n",
    "objects": f"{CALL};\n",
    "open brackets": "{",
    "open lists": "[",
    "angles": "<",
    "backticks": "`",
    "fences": "```json\n{",
    "quotes": '"',
    "spaces": " ",
    "lines": "\n",
    "openers": "<tool_call>",
    "openers with strings": '<tool_call>{"',
    "closers in strings": '<tool_call>{"a</tool_call>',
    "tags": "<function=add><parameter=a>",
    "ends of parameters": "</parameter> ",
    "thinking": '<think><tool_call>{"a": "',
    "ReAct": 'Action: add\nAction Input: {"a": 1, "b": 2}\n',
    "headers": "<|channel|>",
    "names": "add\n",
    "mentions": f"the <tool_call>{CALL}</tool_call> x ",
    "MiniMax": "]<]minimax[>[<a>",
    "backslashes": "\\",
}
SIZE = 12_500
OPENINGS = {
    "none": "",
    "JSON": '{"name": "',
    "tag": "<tool_call>",
    "parameter": "<function=add><parameter=a>",
    "fence": "```json\n",
    "thinking": "<think>",
    "body": "<|channel|>commentary to=functions.add<|message|>",
}


@pytest.mark.parametrize("opening", OPENINGS.values(), ids=OPENINGS)
@pytest.mark.parametrize("pattern", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_takes_linear_time(pattern, opening):
    def work(size):
        text = opening + pattern * (size // len(pattern) + 1)  # a pattern that is cut may be another case
        parse_deltas(text)
        parse(text, TOOLS)

    assert_linear(work, SIZE)


@pytest.mark.parametrize(
    "text",
    [
        "<think>" + '<tool_call>{"' * 2_000,
        f"<think><tool_call>[{', '.join([CALL] * 500)}]",
        f"[{', '.join([CALL] * 500)}]",
    ],
    ids=["broken calls", "calls in thinking", "calls"],
)
def test_many_calls_do_not_each_hold_the_whole_text(text):
    tracemalloc.start()
    try:
        parse(text, TOOLS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * len(text)


SPACED = [CALL, f"```json\n{CALL}\n```", f"<tool_call>{CALL}</tool_call>"]


@pytest.mark.parametrize("text", SPACED)
@pytest.mark.parametrize("space", [" ", "\n"])
def test_endless_space_after_a_call_takes_linear_time(text, space):
    assert_linear(lambda size: parse_deltas([text, *[space * 4] * size]), 1_000)
    for size in (119, 120, 121, 239, 240, 241, 256, 257):
        whole = text + space * size + f"}}\n{CALL}"
        assert_same_result(whole, list(whole))


def test_only_one_marker_is_a_prefix_of_another():
    """The parser waits for the longer marker of such a pair, so that a new pair must be intended."""
    every = [*markers.OPENERS, *markers.IGNORED_MARKERS, *markers.THINKING_MARKERS, *markers.THINKING_ENDS]
    pairs = {(short, long) for short in every for long in every if long != short and long.startswith(short)}
    assert pairs == {("<|channel>", "<|channel>thought")}
