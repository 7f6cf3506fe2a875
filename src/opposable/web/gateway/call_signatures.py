"""Fields of calls that only their server understands, such as Gemini's thought signatures.

The APIs of Anthropic and of responses have no place for them, so they are stored here until the client sends the calls
of the reply back.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from opposable.domain.json_text import dump_json
from opposable.domain.messages import Message, NativeReply
from opposable.domain.tools import ToolCall
from opposable.web.middleware.authentication import CURRENT_CALLER

MAX_CALLS = 2000


class CallSignatures:
    """The fields of the last calls, for the API key that received them."""

    def __init__(self) -> None:
        self._fields: OrderedDict[tuple[str, str, str, int], tuple[str, dict[str, Any]]] = OrderedDict()

    def save(self, message: Message) -> None:
        """Store the further fields of the calls of a reply."""
        native = message.native
        items = {item["id"]: item for item in native.items if item.get("type") == "function"} if native else {}
        for call in message.tool_calls:
            if native and call.id in items:
                self._fields[_build_key(call)] = (native.model, items[call.id])
        while len(self._fields) > MAX_CALLS:
            self._fields.popitem(last=False)

    def restore(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages, with the further fields of calls that the client sends back unchanged."""
        if not self._fields:
            return tuple(messages)
        return tuple(self._restore_message(message) if message.tool_calls else message for message in messages)

    def _restore_message(self, message: Message) -> Message:
        found = [stored for call in message.tool_calls if (stored := self._fields.get(_build_key(call)))]
        if not found:
            return message
        return replace(message, native=NativeReply(found[0][0], tuple(item for _, item in found)))


def _build_key(call: ToolCall) -> tuple[str, str, str, int]:
    """Return what identifies a call of the current API key."""
    arguments = dump_json(dict(call.arguments), default=str, sort_keys=True)
    return CURRENT_CALLER.get().principal.key_id, call.id, call.name, hash(arguments)
