"""Messages of a conversation, independent of a provider."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from opposable.domain.tools import ToolCall

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a conversation.

    `tool_calls` and `thinking`, the model's reasoning, belong to role "assistant"; `call_id` and `name` to role
    "tool".
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""
    thinking: str = ""
    _wire_cache: dict[str, bytes] = field(default_factory=dict, init=False, compare=False, repr=False)

    def encode_once(self, wire_format: str, encode: Callable[["Message"], bytes]) -> bytes:
        """Return `encode(self)`, computed once for each wire format."""
        encoded = self._wire_cache.get(wire_format)
        if encoded is None:
            encoded = self._wire_cache[wire_format] = encode(self)
        return encoded


def system_message(content: str) -> Message:
    """Create a message with the instructions of a conversation."""
    return Message("system", content)


def user_message(content: str) -> Message:
    """Create a message of the user."""
    return Message("user", content)


def assistant_message(content: str, tool_calls: tuple[ToolCall, ...] = (), thinking: str = "") -> Message:
    """Create a message of the model, with its tool calls and reasoning."""
    return Message("assistant", content, tool_calls=tool_calls, thinking=thinking)


def tool_message(call_id: str, name: str, content: str) -> Message:
    """Create a message with the result of the call `call_id`."""
    return Message("tool", content, call_id=call_id, name=name)
