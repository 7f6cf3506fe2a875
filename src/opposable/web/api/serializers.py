"""JSON responses, and the forms of the API that follow its published documents."""

from typing import Any

import orjson
from starlette.responses import JSONResponse, Response

from opposable.domain import json_text
from opposable.domain.events import ToolFinished
from opposable.domain.records import Conversation, get_public_conversation_id
from opposable.service.runner import ActiveRun
from opposable.tools.result_text import encode_value, to_jsonable


def dump_json(value: Any) -> bytes:
    """Return a value as JSON; the values of tools as models get them."""
    try:
        return orjson.dumps(value, default=encode_value, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # an integer beyond 64 bits, a string that is not valid Unicode, or deep nesting
        return json_text.dump_json(to_jsonable(value), default=encode_value)


class ApiResponse(JSONResponse):
    """The response of a route that returns a model. Pydantic's own JSON rejects lone surrogates."""

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return dump_json(content)


def json_response(value: Any, status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(dump_json(value), status, media_type="application/json")


def serialize_answer(active_run: ActiveRun) -> dict[str, Any]:
    """Return the answer of an ended run in the form of `ChatResponse`."""
    run = active_run.run
    ended_at = run.ended_at or run.started_at
    return {
        "success": run.status == "finished" and run.reason != "no_answer",
        "response": run.text,
        "conversation_id": get_public_conversation_id(run.conversation_id),
        "trace_id": run.trace_id,
        "tool_calls": [_serialize_call(call) for call in active_run.finished_calls],
        "meta": {
            "total_tokens": run.usage.total_tokens,
            "tool_calls_count": run.tool_calls,
            "latency_ms": round((ended_at - run.started_at).total_seconds() * 1000),
            "run_id": run.run_id,
            "agent_id": run.agent_id,
            "reason": run.reason,
        },
    }


def serialize_conversation(conversation: Conversation) -> dict[str, Any]:
    """Return a conversation in the form of `ConversationResponse`."""
    return {
        "conversation_id": get_public_conversation_id(conversation.conversation_id),
        "agent_id": conversation.agent_id,
        "title": conversation.title,
        "messages_count": conversation.messages,
        "created_at": conversation.created_at,
        "updated_at": conversation.updated_at,
    }


def _serialize_call(finished_call: ToolFinished) -> dict[str, Any]:
    result = finished_call.result
    is_failed = result.failure is not None
    return {
        "tool": finished_call.call.name,
        "arguments": dict(finished_call.call.arguments),
        "result": {
            "success": not is_failed,
            "output": None if is_failed else result.content if result.data is None else result.data,
            "error": {"kind": result.failure, "message": result.content} if is_failed else None,
            "duration_ms": round(result.seconds * 1000, 3),
            "attempts": result.attempts,
        },
    }
