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


def finished(failure=None, call_id="c1"):
    return "tool_finished", {"call_id": call_id, "name": "add", "result": "3", "failure": failure}


def test_events_alone_have_the_calls_and_results():
    events = create_events(replied(CALL), ("tool_started", CALL), finished("failed"))
    assert list_executed_messages(events, (), "en") == (REPLY, tool_message("c1", "add", "3", is_error=True), END)


def test_known_replies_are_stored_as_the_model_wrote_them():
    texts = [assistant_message("", (), "empty"), assistant_message("Let me see.", REPLY.tool_calls, "a thought")]
    events = create_events(replied(), replied(CALL), finished())
    assert list_executed_messages(events, texts, "en") == (texts[1], tool_message("c1", "add", "3"), END)


def test_a_call_without_a_result_gets_one():
    call, result, end = list_executed_messages(create_events(replied(CALL)), (), "zh")
    assert (call, result.call_id, end.content) == (REPLY, "c1", "[运行在此结束，没有给出答案。]")
    assert "it may have taken effect" in result.content


def test_results_have_the_order_of_their_calls():
    events = create_events(replied(CALL, {**CALL, "call_id": "c2"}), finished(call_id="c2"), finished())
    assert [message.call_id for message in list_executed_messages(events, (), "en")] == ["", "c1", "c2", ""]


def test_the_text_that_the_user_has_seen_is_part_of_the_turn():
    texts = [("text", {"content": text}) for text in ("Once upon", " a time\n")]
    [end] = list_executed_messages(create_events(*texts), (), "en")
    assert end.content == f"Once upon a time\n\n{END.content}"
    events = create_events(("text", {"content": "Let me see."}), replied(CALL), finished(), *texts)
    assert list_executed_messages(events, (), "en")[2:] == (end,)


def test_a_run_without_calls_and_text_adds_nothing():
    assert list_executed_messages(create_events(replied()), (), "en") == ()
