"""What happened in a run, as JSON that can be sent and kept."""

from dataclasses import asdict
from typing import Any

import orjson

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
from opposable.domain.tools import ToolCall


def serialize_event(event: Event) -> tuple[str, dict[str, Any]] | None:
    """The kind of an event and what is told of it; None for those that say nothing the others do not.

    Kinds: run_started, text, thinking, model_replied, tool_started, tool_delta, tool_finished, decided, data_answered,
    run_finished. A service adds approval_needed, approval_decided and error. Only text has `content`: a client that
    knows nothing else joins that up and has the answer.
    """
    match event:
        case TextDelta(text):
            return "text", {"content": text}
        case ThinkingDelta(text):
            return "thinking", {"thinking": text}
        case ToolStarted(call):
            return "tool_started", {**_serialize_call(call), "arguments": parse_call_arguments(call)}
        case ToolDelta(call, text):
            return "tool_delta", {**_serialize_call(call), "delta": text}
        case ToolFinished():
            return "tool_finished", _serialize_tool_finished(event)
        case ModelReplied(turn, message, finish, usage):
            calls = [{**_serialize_call(call), "arguments": parse_call_arguments(call)} for call in message.tool_calls]
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


def parse_call_arguments(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call that was understood: a JSON object."""
    value = orjson.loads(call.arguments or "{}")
    return value if isinstance(value, dict) else {}


def _serialize_call(call: ToolCall) -> dict[str, Any]:
    return {"call_id": call.id, "name": call.name}


def _serialize_tool_finished(event: ToolFinished) -> dict[str, Any]:
    result = event.result
    return {
        **_serialize_call(event.call),
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
