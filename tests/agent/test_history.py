"""What of a conversation is sent."""

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opposable.agent.history import estimate_tokens, match_results_to_calls, trim_messages
from opposable.domain.content import ImagePart
from opposable.domain.messages import Message, assistant_message, system_message, tool_message, user_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.anthropic import build_request
from opposable.models.base import ModelOptions
from opposable.models.calling_modes import apply_calling_mode
from opposable.models.scripted import ScriptedModel

TOOL = ToolDefinition("f", "Do it.", {"type": "object", "properties": {}})


def reply_wanting_calls(*ids, text=""):
    return assistant_message(text, tuple(ToolCall.from_json(one, "f", "{}") for one in ids))


A, B = tool_message("a", "f", "ra"), tool_message("b", "f", "rb")
LOST = "There is no result: the call was not finished, but it may have taken effect."

CASES = {
    "whole": ([user_message("x"), reply_wanting_calls("a", "b"), B, A, assistant_message("done")], None),
    "empty": ([], None),
    "call without a result": (
        [user_message("x"), reply_wanting_calls("a")],
        [user_message("x"), reply_wanting_calls("a"), tool_message("a", "f", LOST)],
    ),
    "one of two": (
        [user_message("x"), reply_wanting_calls("a", "b"), B, user_message("y")],
        [user_message("x"), reply_wanting_calls("a", "b"), tool_message("a", "f", LOST), B, user_message("y")],
    ),
    "result without a call": (
        [user_message("x"), A, assistant_message("hm")],
        [user_message("x"), assistant_message("hm")],
    ),
    "result before its call": ([A, reply_wanting_calls("a")], [reply_wanting_calls("a"), tool_message("a", "f", LOST)]),
    "second result": ([reply_wanting_calls("a"), A, tool_message("a", "f", "again")], [reply_wanting_calls("a"), A]),
    "late result": (
        [reply_wanting_calls("a"), user_message("hurry"), A],
        [reply_wanting_calls("a"), A, user_message("hurry")],
    ),
    "same id twice in a conversation": (
        [reply_wanting_calls("a"), A, user_message("again"), reply_wanting_calls("a")],
        [reply_wanting_calls("a"), A, user_message("again"), reply_wanting_calls("a"), tool_message("a", "f", LOST)],
    ),
    "Chinese": (
        [reply_wanting_calls("a", text="我来查一下")],
        [
            reply_wanting_calls("a", text="我来查一下"),
            tool_message("a", "f", "没有结果：该调用没有完成，但可能已经生效。"),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_calls_and_results_come_in_pairs(name):
    messages, expected = CASES[name]
    assert match_results_to_calls(messages) == (messages if expected is None else expected)


MESSAGES = st.lists(
    st.one_of(
        st.builds(user_message, st.sampled_from(["hi", "你好", "x" * 400])),
        st.builds(system_message, st.just("s")),
        st.lists(st.sampled_from("abc"), max_size=3, unique=True).map(lambda ids: reply_wanting_calls(*ids)),
        st.builds(tool_message, st.sampled_from("abcd"), st.just("f"), st.sampled_from(["r", "结果" * 200])),
    ),
    max_size=14,
)


def are_calls_paired(messages: list[Message]) -> bool:
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
    whole = match_results_to_calls(messages)
    assert are_calls_paired(whole)
    assert match_results_to_calls(whole) == whole
    assert are_calls_paired(trim_messages(whole, tokens))
    assert [m for m in whole if m.role != "tool"] == [m for m in messages if m.role != "tool"]


LONG = "word " * 400


def test_results_go_before_exchanges_and_no_request_stays_without_what_was_done_for_it():
    messages = [
        system_message("be brief"),
        user_message("the task"),
        reply_wanting_calls("a"),
        tool_message("a", "f", LONG),
        assistant_message("fine"),
        user_message("the next thing"),
        reply_wanting_calls("b"),
        tool_message("b", "f", LONG),
        reply_wanting_calls("c"),
        tool_message("c", "f", "short"),
    ]
    trimmed_start = [system_message("be brief\n\n[Earlier messages were left out here to make room.]")]
    short_a, short_b = (tool_message(i, "f", "[This result was left out to make room.]") for i in "ab")
    assert trim_messages(messages, 10_000) == messages
    tokens = estimate_tokens(messages)
    assert trim_messages(messages, tokens - 100) == [*messages[:3], short_a, *messages[4:]]
    assert trim_messages(messages, tokens - 500) == [*trimmed_start, *messages[5:]]
    assert trim_messages(messages, 120) == [*trimmed_start, *messages[5:7], short_b, *messages[8:]]
    assert trim_messages(messages, 0) == [*trimmed_start, messages[5], *messages[8:]]
    assert trim_messages(messages[1:], 0)[1:] == [messages[5], *messages[8:]]


@pytest.mark.parametrize("word", ["word ", "结果"])
def test_the_latest_results_are_cut_where_nothing_else_is_left_to_drop(word):
    messages = [user_message("the task"), reply_wanting_calls("a", "b")]
    messages += [tool_message("a", "f", "short"), tool_message("b", "f", f"begin {word * 4000} end")]
    trimmed = trim_messages(messages, 1000)
    assert 900 < estimate_tokens(trimmed) <= 1050  # with the note in the middle
    assert [message.content for message in trimmed[:3]] == [message.content for message in messages[:3]]
    assert trimmed[3].content.startswith("begin ")
    assert trimmed[3].content.endswith(" end")


def test_of_the_latest_results_the_longest_is_cut_first_and_others_keep_their_images():
    image = tool_message("a", "f", "a chart of " + "some " * 20, (ImagePart("", b"png", "image/png"),))
    messages = [user_message("the task"), reply_wanting_calls("a", "b"), image, tool_message("b", "f", "word " * 4000)]
    trimmed = trim_messages(messages, 1000)
    assert trimmed[2] == image
    assert trimmed[3].content.count("left out here") == 1
    assert len(trimmed[3].content) < 4000


def test_a_system_message_within_an_exchange_does_not_divide_it():
    history = [user_message("a"), system_message("be polite"), assistant_message(LONG), user_message("b")]
    note = "[Earlier messages were left out here to make room.]"
    assert trim_messages(history, 50) == [system_message(f"be polite\n\n{note}"), user_message("b")]


def test_a_chinese_result_is_left_out_with_a_chinese_note():
    messages = [user_message("做"), reply_wanting_calls("a"), tool_message("a", "f", "结果" * 400)]
    messages += [reply_wanting_calls("b"), tool_message("b", "f", "好")]
    assert trim_messages(messages, 100)[2].content == "[为节省空间，此结果已省略。]"


@pytest.mark.parametrize("mode", ["native", "auto", "text", "prompted", "constrained", "python"])
@pytest.mark.anyio
async def test_note_about_omitted_messages_is_never_in_the_users_role(mode):
    trimmed = trim_messages([user_message("a"), assistant_message(LONG), user_message("b")], 100)
    inner = ScriptedModel("fine")
    [part async for part in apply_calling_mode(mode, inner).stream(trimmed, (TOOL,))]
    by_role = [(message.role, "left out here" in message.content) for message in inner.requests[0].messages]
    assert by_role[0] == ("system", True)
    assert ("user", True) not in by_role


def test_note_about_omitted_messages_is_part_of_the_instructions_for_anthropic():
    trimmed = trim_messages([user_message("a"), assistant_message(LONG), user_message("b")], 100)
    body = orjson.loads(build_request("m", trimmed, (), ModelOptions(max_tokens=5)))
    assert "left out here" in body["system"]
    assert "left out here" not in str(body["messages"])


def test_chinese_is_counted_by_the_character():
    assert estimate_tokens([user_message("你" * 300)]) > 2 * estimate_tokens([user_message("a" * 300)])
