"""The messages that a run without an answer adds to its conversation."""

from opposable.domain.messages import assistant_message, tool_message
from opposable.domain.records import RunEvent, get_utc_now
from opposable.domain.tools import ToolCall
from opposable.service.unfinished_turns import list_executed_messages

CALL = {"call_id": "c1", "name": "add", "arguments": {"a": 1}}
REPLY = assistant_message("", (ToolCall("c1", "add", {"a": 1}),))
END = assistant_message("[The run ended here without an answer.]")


def create_events(*kinds_and_data):
    return [RunEvent("r1", number, *item, get_utc_now()) for number, item in enumerate(kinds_and_data, 1)]


def replied(*calls):
    return "model_replied", {"turn": 1, "tool_calls": list(calls)}


def finished(failure=None):
    return "tool_finished", {"call_id": "c1", "name": "add", "result": "3", "failure": failure}


def test_events_alone_have_the_calls_and_results():
    events = create_events(replied(CALL), ("tool_started", CALL), finished("failed"), ("text", {"content": "It"}))
    assert list_executed_messages(events, (), "en") == (REPLY, tool_message("c1", "add", "3", is_error=True), END)


def test_known_replies_are_stored_as_the_model_wrote_them():
    texts = [assistant_message("", (), "empty"), assistant_message("Let me see.", REPLY.tool_calls, "a thought")]
    events = create_events(replied(), replied(CALL), finished())
    assert list_executed_messages(events, texts, "en") == (texts[1], tool_message("c1", "add", "3"), END)


def test_a_call_without_a_result_gets_one():
    call, result, end = list_executed_messages(create_events(replied(CALL)), (), "zh")
    assert (call, result.call_id, end.content) == (REPLY, "c1", "[运行在此结束，没有给出答案。]")
    assert "it may have taken effect" in result.content


def test_a_run_without_calls_adds_nothing():
    assert list_executed_messages(create_events(replied()), (), "en") == ()
