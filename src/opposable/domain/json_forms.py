"""The JSON forms of calls, results, messages, events, runs, executions and approvals."""

from dataclasses import asdict, fields
from typing import Any

from opposable.domain.content import part_from_json, part_to_json
from opposable.domain.events import (
    DataAnswered,
    DecisionMade,
    Event,
    ModelReplied,
    RunFinished,
    RunStarted,
    TextDelta,
    ThinkingDelta,
    ToolDelta,
    ToolFinished,
    ToolStarted,
)
from opposable.domain.messages import Message, NativeReply
from opposable.domain.records import Approval, Execution, Run, get_public_conversation_id
from opposable.domain.tools import ToolCall, ToolResult

MAX_EVENT_MEDIA_BYTES = 2 * 1024 * 1024
"""The largest image or file of a result that an event contains; the result describes a larger one in words."""


def call_to_json(call: ToolCall) -> dict[str, Any]:
    """Return `call_id`, `name` and `arguments` (an object) of a call."""
    return {"call_id": call.id, "name": call.name, "arguments": dict(call.arguments)}


def result_to_json(result: ToolResult, *, include_data: bool = False) -> dict[str, Any]:
    """Return a result: `result` is the text sent to the model.

    `include_data` adds `data`, the value of the tool, which can be large and is not always JSON.
    """
    form = {
        "call_id": result.call_id,
        "name": result.name,
        "success": result.failure is None,
        "result": result.content,
        "failure": result.failure,
        "seconds": round(result.seconds, 6),
        "attempts": result.attempts,
        "cached": result.cached,
        "cut": result.cut,
        "handle": result.handle,
        "repairs": list(result.repairs),
    }
    return {**form, "data": result.data} if include_data else form


def message_to_json(message: Message, *, include_parsing: bool = False) -> dict[str, Any]:
    """Return a message without its empty fields.

    The arguments of calls are the JSON text that the model wrote. `include_parsing` adds what stored messages have: how
    calls were parsed (`dialect`, `repairs`, `truncated`), the `native` form of a reply, and whether it `is_error`.
    """
    form: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        form["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments_json}
            | (
                {"dialect": call.dialect, "repairs": list(call.repairs), "truncated": call.truncated}
                if include_parsing
                else {}
            )
            for call in message.tool_calls
        ]
    if message.parts:
        form["parts"] = [part_to_json(part) for part in message.parts]
    if include_parsing and message.native is not None:
        native = message.native
        form["native"] = {"model": native.model, "items": list(native.items), "api": native.api}
    if include_parsing and message.is_error:
        form["is_error"] = True
    return form | {name: value for name in ("call_id", "name", "thinking") if (value := getattr(message, name))}


def message_from_json(form: dict[str, Any]) -> Message:
    """Return the message of a form with parsing details."""
    calls = tuple(
        ToolCall.from_json(
            call["id"],
            call["name"],
            call["arguments"],
            dialect=call["dialect"],
            repairs=tuple(call["repairs"]),
            truncated=call["truncated"],
        )
        for call in form.get("tool_calls", ())
    )
    parts = tuple(part_from_json(part) for part in form.get("parts", ()))
    native = form.get("native")
    native_reply = (
        None if native is None else NativeReply(native["model"], tuple(native["items"]), native.get("api", ""))
    )
    return Message(**{**form, "tool_calls": calls, "parts": parts, "native": native_reply})


def event_to_json(event: Event) -> tuple[str, dict[str, Any]] | None:
    """Return the kind and the data of an event, None for `CallDelta`.

    Kinds: run_started, text, thinking, model_replied, tool_started, tool_delta, tool_finished, decided,
    data_answered, run_finished. A service adds commentary, approval_needed, approval_decided and error. Only text events have
    `content`, so that a simple client can concatenate every `content` to get the answer.
    """
    match event:
        case TextDelta(text):
            return "text", {"content": text}
        case ThinkingDelta(text):
            return "thinking", {"thinking": text}
        case ToolStarted(call):
            return "tool_started", call_to_json(call)
        case ToolDelta(call, text):
            return "tool_delta", {"call_id": call.id, "name": call.name, "delta": text}
        case ToolFinished(call, result):
            media = [part_to_json(part) for part in result.media if len(part.data) <= MAX_EVENT_MEDIA_BYTES]
            form = {**result_to_json(result), "call_id": call.id, "name": call.name}
            return "tool_finished", {**form, "media": media} if media else form
        case ModelReplied(turn, message, finish, usage):
            calls = [call_to_json(call) for call in message.tool_calls]
            return "model_replied", {"turn": turn, "finish": finish, "tool_calls": calls, "usage": usage.as_json()}
        case RunStarted(run_id):
            return "run_started", {"run_id": run_id}
        case DecisionMade(action, reason):
            return "decided", {"action": action, "reason": reason}
        case DataAnswered(answer):
            return "data_answered", asdict(answer)
        case RunFinished():
            return "run_finished", {
                "text": event.text,
                "reason": event.reason,
                "turns": event.turns,
                "tool_calls": event.tool_calls,
                "usage": event.usage.as_json(),
                "cost": event.cost,
            }
    return None


def run_to_json(run: Run) -> dict[str, Any]:
    """Return a run without its owner and worker.

    Its usage becomes `input_tokens` and `output_tokens`.
    """
    return {
        "run_id": run.run_id,
        "status": run.status,
        "agent_id": run.agent_id,
        "conversation_id": get_public_conversation_id(run.conversation_id),
        "trace_id": run.trace_id,
        "task": run.task,
        "text": run.text,
        "reason": run.reason,
        "input_tokens": run.usage.input_tokens,
        "output_tokens": run.usage.output_tokens,
        "turns": run.turns,
        "tool_calls": run.tool_calls,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "kind": run.kind,
        "model": run.model,
    }


def execution_to_json(execution: Execution) -> dict[str, Any]:
    """Return every field of an execution, in the order of its definition, with the id of its conversation as in runs."""
    form = {name: getattr(execution, name) for name in _EXECUTION_FIELDS}
    conversation_id = get_public_conversation_id(execution.conversation_id)
    return form | {"repairs": list(execution.repairs), "conversation_id": conversation_id}


def approval_to_json(approval: Approval) -> dict[str, Any]:
    """Return an approval without its owner."""
    form = asdict(approval) | {"conversation_id": get_public_conversation_id(approval.conversation_id)}
    del form["owner"]
    return form


_EXECUTION_FIELDS = tuple(field.name for field in fields(Execution))
