"""What of a conversation is sent."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opposable.agent.history import estimated, repaired, trimmed
from opposable.domain.messages import Message, assistant, system, tool, user
from opposable.domain.tools import ToolCall


def wants(*ids, text=""):
    return assistant(text, tuple(ToolCall(one, "f", "{}") for one in ids))


A, B = tool("a", "f", "ra"), tool("b", "f", "rb")
LOST = "There is no result: the call was not finished."

CASES = {
    "whole": ([user("x"), wants("a", "b"), B, A, assistant("done")], None),
    "empty": ([], None),
    "call without a result": ([user("x"), wants("a")], [user("x"), wants("a"), tool("a", "f", LOST)]),
    "one of two": (
        [user("x"), wants("a", "b"), B, user("y")],
        [user("x"), wants("a", "b"), tool("a", "f", LOST), B, user("y")],
    ),
    "result without a call": ([user("x"), A, assistant("hm")], [user("x"), assistant("hm")]),
    "result before its call": ([A, wants("a")], [wants("a"), tool("a", "f", LOST)]),
    "second result": ([wants("a"), A, tool("a", "f", "again")], [wants("a"), A]),
    "late result": ([wants("a"), user("hurry"), A], [wants("a"), A, user("hurry")]),
    "same id twice in a conversation": (
        [wants("a"), A, user("again"), wants("a")],
        [wants("a"), A, user("again"), wants("a"), tool("a", "f", LOST)],
    ),
    "Chinese": (
        [wants("a", text="我来查一下")],
        [wants("a", text="我来查一下"), tool("a", "f", "没有结果：该调用没有完成。")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_calls_and_results_come_in_pairs(name):
    messages, expected = CASES[name]
    assert repaired(messages) == (messages if expected is None else expected)


MESSAGES = st.lists(
    st.one_of(
        st.builds(user, st.sampled_from(["hi", "你好", "x" * 400])),
        st.builds(system, st.just("s")),
        st.lists(st.sampled_from("abc"), max_size=3, unique=True).map(lambda ids: wants(*ids)),
        st.builds(tool, st.sampled_from("abcd"), st.just("f"), st.sampled_from(["r", "结果" * 200])),
    ),
    max_size=14,
)


def in_pairs(messages: list[Message]) -> bool:
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            if message.call_id not in waiting:
                return False
            waiting.remove(message.call_id)
        elif waiting:
            return False
        else:
            waiting = [call.id for call in message.tool_calls]
    return not waiting


@settings(max_examples=400)
@given(MESSAGES, st.integers(0, 1500))
def test_whatever_comes_in_no_orphan_goes_out_repaired_or_trimmed(messages, tokens):
    whole = repaired(messages)
    assert in_pairs(whole)
    assert repaired(whole) == whole
    assert in_pairs(trimmed(whole, tokens))
    assert [m for m in whole if m.role != "tool"] == [m for m in messages if m.role != "tool"]


LONG = "word " * 400


def test_the_oldest_goes_first_and_what_the_task_needs_stays():
    messages = [
        system("be brief"),
        user("the task"),
        wants("a"),
        tool("a", "f", LONG),
        assistant("fine"),
        user("the next thing"),
        wants("b"),
        tool("b", "f", LONG),
        wants("c"),
        tool("c", "f", "short"),
    ]
    note = user("[Earlier messages were left out here to make room.]")
    assert trimmed(messages, 10_000) == messages
    assert trimmed(messages, estimated(messages) - 100) == [*messages[:2], note, *messages[4:]]
    assert trimmed(messages, 200) == [*messages[:2], note, messages[5], *messages[8:]]
    assert trimmed(messages, 0) == [*messages[:2], note, messages[5], *messages[8:]]


def test_chinese_is_counted_by_the_character():
    assert estimated([user("你" * 300)]) > 2 * estimated([user("a" * 300)])
