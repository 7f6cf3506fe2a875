"""The stream: parts come as soon as they are certain, add up to the reading, and nothing ever raises."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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


def parts_of(pieces, **options):
    reader = StreamParser(TOOLS, new_id=lambda: "id", **options)
    parts = [part for piece in pieces for part in reader.feed(piece)]
    reading = reader.close()
    return [*parts, *reader.final_events], reading


def test_plain_text_goes_through_at_once():
    reader = StreamParser(TOOLS)
    assert reader.feed("Hello") == (TextDelta("Hello"),)
    assert reader.feed(" wor") == (TextDelta(" wor"),)
    assert reader.feed("ld, a < b") == (TextDelta("ld, a < b"),)


def test_what_may_become_a_marker_is_held_back():
    reader = StreamParser(TOOLS)
    assert reader.feed("So: <tool_") == (TextDelta("So: "),)
    assert reader.feed("box>") == (TextDelta("<tool_box>"),)


def test_a_call_is_told_when_its_own_end_has_come():
    reader = StreamParser(TOOLS, new_id=lambda: "id")
    assert reader.feed("<tool_call>\n" + CALL[:-1]) == ()
    parts = reader.feed("}")
    assert parts[:2] == (CallDelta(0, "id", "add"), CallDelta(0, arguments='{"a":2,"b":3}'))
    assert isinstance(parts[2], CallFinished)


def test_indexes_rise_by_one_and_names_come_once():
    parts, _ = parts_of(list(f"<tool_call>{CALL}</tool_call>" * 3))
    deltas = [part for part in parts if isinstance(part, CallDelta)]
    assert [(part.index, part.name) for part in deltas if part.name] == [(0, "add"), (1, "add"), (2, "add")]
    assert [part.call.name for part in parts if isinstance(part, CallFinished)] == ["add"] * 3


def test_thinking_is_told_apart():
    parts, reading = parts_of(["<thi", "nk>Hm", " so</th", "ink>\n\nYes"])
    assert parts == [ThinkingDelta("Hm"), ThinkingDelta(" so"), TextDelta("Yes")]
    assert (reading.thinking, reading.text) == ("Hm so", "Yes")


def test_thinking_that_the_prompt_opened_is_told_as_thinking():
    parts, _ = parts_of(["Hm", " so</think>Yes"], thinking=True)
    assert parts == [ThinkingDelta("Hm"), ThinkingDelta(" so"), TextDelta("Yes")]


def test_thinking_of_which_nobody_told_is_taken_back():
    parts, reading = parts_of(["Hm so", "</think>Yes"])
    assert parts == [TextDelta("Hm so"), TextWasThinking(), TextDelta("Yes")]
    assert (reading.thinking, reading.text) == ("Hm so", "Yes")


def test_without_tools_text_passes_and_thinking_is_still_split():
    reading = parse(f"<think>Hm</think>{CALL}", [])
    assert (reading.text, reading.thinking, reading.calls) == (CALL, "Hm", ())


def told(parts):
    text = ""
    for part in parts:
        if isinstance(part, TextDelta):
            text += part.text
        elif isinstance(part, TextWasThinking):
            text = ""
    return text.strip()


def agree(text, pieces, **options):
    whole = parts_of([text], **options)[1]
    parts, reading = parts_of(pieces, **options)
    assert reading == whole
    assert told(parts) == reading.text
    return reading


@pytest.mark.parametrize("text", [*NO_CALLS.values(), *(text for text, *_ in TEXTS)])
def test_every_split_in_two_gives_the_same(text):
    for place in range(0, len(text), 3):
        agree(text, [text[:place], text[place:]])


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
    pieces = draw(st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=6)), max_size=16))
    text = "".join(pieces)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return text, [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@settings(max_examples=300, deadline=None)
@given(replies(), st.booleans())
def test_nothing_raises_and_any_cut_gives_the_same(reply, thinking):
    text, pieces = reply
    agree(text, pieces, thinking=thinking)
    agree(text, list(text), thinking=thinking)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read(text):
    agree(text, list(text))


@settings(max_examples=200, deadline=None)
@given(
    st.text(
        alphabet=st.characters(exclude_characters="<>[]{}`\n\r=:|◁▷", exclude_categories=["Cs", "Z", "C"]), min_size=1
    )
)
def test_text_without_marks_is_shown_as_it_is(text):
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
def test_any_json_is_read(value, opening):
    text = opening + json.dumps(value)
    agree(text, list(text))


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
SIZE = 100_000
OPENINGS = {
    "none": "",
    "JSON": '{"name": "',
    "tag": "<tool_call>",
    "parameter": "<function=add><parameter=a>",
    "fence": "```json\n",
}


@pytest.mark.parametrize("opening", OPENINGS.values(), ids=OPENINGS)
@pytest.mark.parametrize("pattern", HOSTILE.values(), ids=HOSTILE)
def test_time_grows_with_the_text_and_no_faster(pattern, opening):
    """100 kB of anything, fed letter by letter, stays far from what re-reading it would take (minutes)."""
    text = opening + (pattern * (SIZE // len(pattern) + 1))[:SIZE]
    begun = time.perf_counter()
    reader = StreamParser(TOOLS)
    for letter in text:
        reader.feed(letter)
    reader.close()
    parse(text, TOOLS)
    assert time.perf_counter() - begun < 5


def test_no_marker_is_the_beginning_of_another_by_accident():
    """A longer marker that begins as a shorter one is waited for; there is one such pair, and it is meant."""
    every = [*markers.OPENERS, *markers.IGNORED_MARKERS, *markers.THINKING_MARKERS, *markers.THINKING_ENDS]
    pairs = {(short, long) for short in every for long in every if long != short and long.startswith(short)}
    assert pairs == {("<|channel>", "<|channel>thought")}
