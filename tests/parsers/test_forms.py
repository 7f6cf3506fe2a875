"""The calls of every model family are parsed exactly, in any context and however the stream is split."""

import pytest
from tests.parsers.forms import CALLS, CANNOT_SAY, FORMS, TOOLS

from opposable.parsers import ParseResult, StreamParser, parse

TABLE = [
    pytest.param(form, calls, id=f"{form_name}: {calls_name}")
    for form_name, form in FORMS.items()
    for calls_name, calls in CALLS.items()
    if calls_name not in CANNOT_SAY.get(form_name, ())
]
TRUNK = [(name, form, CALLS["two"]) for name, form in FORMS.items()]


def get_calls(result: ParseResult):
    return [(call.name, call.arguments) for call in result.calls]


def parse_in_chunks(text, size):
    parser = StreamParser(TOOLS, new_id=lambda: "id")
    for start in range(0, len(text), size):
        parser.feed(text[start : start + size])
    return parser.close()


@pytest.mark.parametrize(("form", "calls"), TABLE)
def test_calls_are_parsed_exactly_with_their_types(form, calls):
    result = parse(form(calls), TOOLS)
    assert get_calls(result) == calls
    assert [type(v) for c in result.calls for v in c.arguments.values()] == [
        type(v) for _, a in calls for v in a.values()
    ]
    assert result.rejected == ()


@pytest.mark.parametrize(("form", "calls"), TABLE)
def test_a_stream_gives_the_same_result_as_the_whole_text(form, calls):
    text = form(calls)
    expected = parse_in_chunks(text, len(text))
    assert parse_in_chunks(text, 1) == expected
    assert parse_in_chunks(text, 7) == expected


@pytest.mark.parametrize(("name", "form", "calls"), TRUNK, ids=FORMS)
def test_no_markup_is_left_in_the_text(name, form, calls):
    text = parse(form(calls), TOOLS).text
    assert text in (
        "",
        "Thought: I need it.",
        "Thought: I need it.\n\nThought: I need it.",
        "Thought: I need it.\nThought: I need it.",
    )


@pytest.mark.parametrize(("name", "form", "calls"), TRUNK, ids=FORMS)
def test_calls_after_thinking_are_parsed(name, form, calls):
    result = parse(f"<think>\nThey ask for two things {{maybe}}.\n</think>\n\n{form(calls)}", TOOLS)
    assert get_calls(result) == calls
    assert result.thinking.startswith("They ask for two things {maybe}.")


@pytest.mark.parametrize(("name", "form", "calls"), TRUNK, ids=FORMS)
def test_calls_after_thinking_that_the_prompt_opened_are_parsed(name, form, calls):
    result = parse(f"They ask for two things.\n</think>\n\n{form(calls)}", TOOLS)
    assert get_calls(result) == calls
    assert result.thinking.startswith("They ask for two things.")


LEADS = ["Let me check that for you.\n\n", "I'll look it up:\n", "好的，我来查询一下。\n\n", "我将调用工具：\n"]
ONLY_AT_THE_START = {"harmony, recipient in the role", "phi 4 mini, firefunction"}


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize(("name", "form", "calls"), TRUNK, ids=FORMS)
def test_calls_after_an_introduction_are_parsed_and_it_is_shown(name, form, calls, lead):
    if name in ONLY_AT_THE_START:
        pytest.skip("a call of this family must begin the reply")
    result = parse(lead + form(calls), TOOLS)
    assert get_calls(result) == calls
    assert result.text.startswith(lead.strip())


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_an_unknown_tool_is_never_called(form):
    result = parse(form([("no_such_tool", {"x": 1})]), TOOLS)
    assert result.calls == ()
    assert [item.reason for item in result.rejected] == ["unknown_tool"]
    assert [item.name.removeprefix("functions.") for item in result.rejected] == ["no_such_tool"]


@pytest.mark.parametrize(("name", "form", "calls"), TRUNK, ids=FORMS)
def test_a_truncated_reply_has_only_complete_calls(name, form, calls):
    text = form(calls)
    parsed = [call for end in range(0, len(text), 5) for call in parse(text[:end], TOOLS, truncated=True).calls]
    assert [call for call in parsed if (call.name, call.arguments) not in calls] == []


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_without_tools_there_are_no_calls(form):
    assert parse(form(CALLS["two"]), []).calls == ()
