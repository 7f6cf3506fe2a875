"""Quoted, explained, considered or repeated calls, and similar texts, are never executed."""

import pytest
from tests.parsers.no_calls import NO_CALLS, PLAIN, QUOTED, REACT, SEED, TAG, C

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
MARKED = ("<|", "think", "finish", "\nFinal Answer: ")


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


JSON_FENCE = f"```json\n{C}\n```"


@pytest.mark.parametrize("lead", ["Should I make this call?", "Do you agree?", "May I run this?", "要执行这个调用吗？"])
@pytest.mark.parametrize("call", [TAG, JSON_FENCE, C], ids=["tag", "fence", "bare"])
def test_a_call_that_the_user_is_asked_about_is_not_made(lead, call):
    assert parse(f"{lead}\n\n{call}", TOOLS).calls == ()


STATEMENTS = [
    "Let me fix the format.",
    "I did not get a result earlier, trying once more.",
    "The tool requires a number rather than text.",
    "As the error message says, both must be integers.",
    "I have already listed them; now the sum.",
    "Okay!",
    "上次调用失败了，重新计算。",
]


@pytest.mark.parametrize("lead", STATEMENTS)
@pytest.mark.parametrize("call", [TAG, JSON_FENCE, C, SEED, REACT], ids=["tag", "fence", "bare", "seed", "react"])
def test_a_call_after_a_finished_sentence_is_made(lead, call):
    assert [made.arguments for made in parse(f"{lead}\n\n{call}", TOOLS).calls] == [{"a": 2, "b": 3}]
