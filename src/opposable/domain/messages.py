"""Messages of a conversation, as every provider is told them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from opposable.domain.tools import ToolCall

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    `tool_calls` belongs to role "assistant"; `call_id` and `name` to role "tool"; `thinking` is a reasoning model's
    reasoning, kept apart from `content`.
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
    """The instructions a conversation stands under."""
    return Message("system", content)


def user_message(content: str) -> Message:
    """What a person said."""
    return Message("user", content)


def assistant_message(content: str, tool_calls: tuple[ToolCall, ...] = (), thinking: str = "") -> Message:
    """What the model said, the calls it wants made, and its reasoning."""
    return Message("assistant", content, tool_calls=tool_calls, thinking=thinking)


def tool_message(call_id: str, name: str, content: str) -> Message:
    """What came of the call `call_id`."""
    return Message("tool", content, call_id=call_id, name=name)
