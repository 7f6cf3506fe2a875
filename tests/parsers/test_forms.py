"""Every family's calls are read exactly, whatever stands around them and however the stream is cut."""

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


def made(reading: ParseResult):
    return [(call.name, call.arguments) for call in reading.calls]


def in_pieces(text, size):
    reader = StreamParser(TOOLS, new_id=lambda: "id")
    for start in range(0, len(text), size):
        reader.feed(text[start : start + size])
    return reader.close()


@pytest.mark.parametrize(("form", "calls"), TABLE)
def test_calls_are_read_exactly_with_their_types(form, calls):
    reading = parse(form(calls), TOOLS)
    assert made(reading) == calls
    assert [type(v) for c in reading.calls for v in c.arguments.values()] == [
        type(v) for _, a in calls for v in a.values()
    ]
    assert reading.rejected == ()


@pytest.mark.parametrize(("form", "calls"), TABLE)
def test_a_stream_cut_anywhere_reads_as_the_whole(form, calls):
    text = form(calls)
    whole = in_pieces(text, len(text))
    assert in_pieces(text, 1) == whole
    assert in_pieces(text, 7) == whole


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
def test_calls_after_thinking_are_read(name, form, calls):
    reading = parse(f"<think>\nThey ask for two things {{maybe}}.\n</think>\n\n{form(calls)}", TOOLS)
    assert made(reading) == calls
    assert reading.thinking.startswith("They ask for two things {maybe}.")


@pytest.mark.parametrize(("name", "form", "calls"), TRUNK, ids=FORMS)
def test_calls_after_thinking_that_the_prompt_opened_are_read(name, form, calls):
    reading = parse(f"They ask for two things.\n</think>\n\n{form(calls)}", TOOLS)
    assert made(reading) == calls
    assert reading.thinking.startswith("They ask for two things.")


LEADS = ["Let me check that for you.\n\n", "I'll look it up:\n", "好的，我来查询一下。\n\n", "我将调用工具：\n"]
TOLD_ONLY_AT_THE_START = {"harmony, recipient in the role", "phi 4 mini, firefunction"}


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize(("name", "form", "calls"), TRUNK, ids=FORMS)
def test_calls_after_a_lead_are_read_and_the_lead_is_shown(name, form, calls, lead):
    if name in TOLD_ONLY_AT_THE_START:
        pytest.skip("this family's calls are a reply of their own")
    reading = parse(lead + form(calls), TOOLS)
    assert made(reading) == calls
    assert reading.text.startswith(lead.strip())


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_an_unknown_tool_is_never_called(form):
    reading = parse(form([("no_such_tool", {"x": 1})]), TOOLS)
    assert reading.calls == ()
    assert [item.reason for item in reading.rejected] == ["unknown_tool"]
    assert [item.name.removeprefix("functions.") for item in reading.rejected] == ["no_such_tool"]


@pytest.mark.parametrize(("name", "form", "calls"), TRUNK, ids=FORMS)
def test_no_end_of_the_text_makes_up_a_call(name, form, calls):
    """Cut off at any point by the token limit, a reply holds only calls that were written whole."""
    text = form(calls)
    for end in range(0, len(text), 5):
        for call in parse(text[:end], TOOLS, truncated=True).calls:
            assert (call.name, call.arguments) in calls


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_without_tools_nothing_is_called(form):
    assert parse(form(CALLS["two"]), []).calls == ()
