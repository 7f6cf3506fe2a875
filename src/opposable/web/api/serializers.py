"""Runs, answers and messages as JSON."""

from typing import Any

import orjson
from starlette.responses import Response

from opposable.domain.events import ToolFinished
from opposable.domain.messages import Message
from opposable.domain.records import Conversation
from opposable.service.runner import ActiveRun


def dump_json(value: Any) -> bytes:
    """JSON of anything: what JSON does not know is written as its text."""
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # an integer beyond 64 bits
        from opposable.store.column_types import to_json

        return to_json(value).encode()


def json_response(value: Any, status: int = 200) -> Response:
    """A JSON answer."""
    return Response(dump_json(value), status, media_type="application/json")


def serialize_answer(active_run: ActiveRun) -> dict[str, Any]:
    """The answer of a run that ended, as `bodies.ChatAnswer` has it."""
    run = active_run.run
    ended = run.ended_at or run.started_at
    return {
        "success": run.status == "finished",
        "response": run.text,
        "conversation_id": run.conversation_id,
        "trace_id": run.trace_id,
        "tool_calls": [_serialize_call(made) for made in active_run.finished_calls],
        "meta": {
            "total_tokens": run.usage.total_tokens,
            "tool_calls_count": run.tool_calls,
            "latency_ms": round((ended - run.started_at).total_seconds() * 1000),
            "run_id": run.run_id,
            "agent_id": run.agent_id,
            "reason": run.reason,
        },
    }


def serialize_conversation(conversation: Conversation) -> dict[str, Any]:
    """A conversation, as `bodies.ShownConversation` has it."""
    return {
        "conversation_id": conversation.conversation_id,
        "agent_id": conversation.agent_id,
        "title": conversation.title,
        "messages_count": conversation.messages,
        "created_at": conversation.created_at,
        "updated_at": conversation.updated_at,
    }


def serialize_message(message: Message) -> dict[str, Any]:
    """A message, as `bodies.ShownMessage` has it."""
    shown: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        shown["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments_json} for call in message.tool_calls
        ]
    if message.role == "tool":
        shown |= {"call_id": message.call_id, "name": message.name}
    return shown


def _serialize_call(finished_call: ToolFinished) -> dict[str, Any]:
    result = finished_call.result
    failed = result.failure is not None
    return {
        "tool": finished_call.call.name,
        "arguments": dict(finished_call.call.arguments),
        "result": {
            "success": not failed,
            "output": None if failed else result.content if result.data is None else result.data,
            "error": {"kind": result.failure, "message": result.content} if failed else None,
            "duration_ms": round(result.seconds * 1000, 3),
            "attempts": result.attempts,
        },
    }
