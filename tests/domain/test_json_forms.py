"""The JSON forms of calls, results, messages, events, runs and executions."""

from dataclasses import fields, replace
from datetime import UTC, datetime

from opposable.domain.content import ImagePart
from opposable.domain.events import (
    CallDelta,
    DecisionMade,
    ModelReplied,
    TextDelta,
    ToolDelta,
    ToolFinished,
    ToolStarted,
)
from opposable.domain.json_forms import (
    MAX_EVENT_MEDIA_BYTES,
    call_to_json,
    event_to_json,
    execution_to_json,
    message_from_json,
    message_to_json,
    result_to_json,
    run_to_json,
)
from opposable.domain.messages import assistant_message, tool_message, user_message
from opposable.domain.records import Execution, Run
from opposable.domain.tools import ToolCall, ToolResult
from opposable.domain.usage import Usage

NOW = datetime(2026, 1, 2, tzinfo=UTC)
CALL = ToolCall.from_json("c1", "add", '{"a": 1}', repairs=("closed a bracket",))
CALL_FORM = {"call_id": "c1", "name": "add", "arguments": {"a": 1}}
RESULT = ToolResult("c1", "add", "1", data=1, seconds=0.25)
RESULT_FORM = {
    "call_id": "c1",
    "name": "add",
    "success": True,
    "result": "1",
    "failure": None,
    "seconds": 0.25,
    "attempts": 1,
    "cached": False,
    "cut": 0,
    "handle": "",
    "repairs": [],
}


def test_calls_and_results_have_one_form() -> None:
    assert call_to_json(CALL) == CALL_FORM
    assert result_to_json(RESULT) == RESULT_FORM
    assert result_to_json(RESULT, include_data=True) == {**RESULT_FORM, "data": 1}


def test_events_contain_the_forms_of_their_calls_and_results() -> None:
    assert event_to_json(TextDelta("a")) == ("text", {"content": "a"})
    assert event_to_json(ToolStarted(CALL)) == ("tool_started", CALL_FORM)
    assert event_to_json(ToolDelta(CALL, "x")) == ("tool_delta", {"call_id": "c1", "name": "add", "delta": "x"})
    assert event_to_json(ToolFinished(CALL, RESULT)) == ("tool_finished", RESULT_FORM)
    images = (ImagePart("", b"png", "image/png"), ImagePart("", bytes(MAX_EVENT_MEDIA_BYTES + 1), "image/png"))
    with_images = event_to_json(ToolFinished(CALL, replace(RESULT, media=images)))
    media = [{"type": "image", "media_type": "image/png", "data": "cG5n"}]
    assert with_images == ("tool_finished", {**RESULT_FORM, "media": media})
    assert event_to_json(DecisionMade("replan", "it failed")) == (
        "decided",
        {"action": "replan", "reason": "it failed"},
    )
    kind, form = event_to_json(ModelReplied(1, assistant_message("", (CALL,)), "tool_calls", Usage(7, 3, 1)))
    assert (kind, form["tool_calls"], form["usage"]["total_tokens"]) == ("model_replied", [CALL_FORM], 10)
    assert event_to_json(CallDelta(0)) is None


def test_a_message_is_restored_from_its_stored_form() -> None:
    messages = [user_message("hi"), assistant_message("", (CALL,), "hm"), tool_message("c1", "add", "1")]
    assert [message_from_json(message_to_json(message, include_parsing=True)) for message in messages] == messages


def test_a_message_without_parsing_details_has_the_arguments_as_the_model_wrote_them() -> None:
    assert message_to_json(assistant_message("", (CALL,))) == {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c1", "name": "add", "arguments": '{"a": 1}'}],
    }


def test_a_run_has_its_tokens_but_not_its_owner() -> None:
    form = run_to_json(Run("r1", NOW, owner="k1", usage=Usage(7, 3, 1)))
    assert (form["run_id"], form["input_tokens"], form["output_tokens"], "owner" in form) == ("r1", 7, 3, False)


def test_an_execution_has_every_field() -> None:
    execution = Execution("e1", "r1", "c1", "add", "add", {"a": 1}, "1", NOW, 0.25, repairs=("closed a bracket",))
    form = execution_to_json(execution)
    assert list(form) == [field.name for field in fields(Execution)]
    assert form["repairs"] == ["closed a bracket"]
