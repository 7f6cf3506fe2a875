"""Conversion of stored messages to and from JSON."""

from typing import Any

from opposable.domain.messages import Message
from opposable.domain.tools import ToolCall


def message_to_json(message: Message) -> dict[str, Any]:
    """Convert a message to JSON, without empty fields."""
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        body["tool_calls"] = [_call_to_json(call) for call in message.tool_calls]
    return body | {name: value for name in ("call_id", "name", "thinking") if (value := getattr(message, name))}


def message_from_json(body: dict[str, Any]) -> Message:
    """Return the message that `message_to_json` converted."""
    calls = tuple(map(_call_from_json, body.get("tool_calls", ())))
    return Message(**{**body, "tool_calls": calls})


def _call_to_json(call: ToolCall) -> dict[str, Any]:
    """Return a call with its arguments as JSON text, byte for byte as the model wrote them."""
    return {
        "id": call.id,
        "name": call.name,
        "arguments": call.arguments_json,
        "dialect": call.dialect,
        "repairs": list(call.repairs),
        "truncated": call.truncated,
    }


def _call_from_json(body: dict[str, Any]) -> ToolCall:
    return ToolCall.from_json(
        body["id"],
        body["name"],
        body["arguments"],
        dialect=body["dialect"],
        repairs=tuple(body["repairs"]),
        truncated=body["truncated"],
    )
