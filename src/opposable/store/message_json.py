"""Messages as JSON and back."""

from dataclasses import asdict
from typing import Any

from opposable.domain.messages import Message
from opposable.domain.tools import ToolCall


def message_to_json(message: Message) -> dict[str, Any]:
    """A message without what can be made again; empty fields are left out."""
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        body["tool_calls"] = [asdict(call) for call in message.tool_calls]
    return body | {name: value for name in ("call_id", "name", "thinking") if (value := getattr(message, name))}


def message_from_json(body: dict[str, Any]) -> Message:
    """The message that `message_as_json` wrote."""
    calls = tuple(ToolCall(**{**call, "repairs": tuple(call["repairs"])}) for call in body.get("tool_calls", ()))
    return Message(**{**body, "tool_calls": calls})
