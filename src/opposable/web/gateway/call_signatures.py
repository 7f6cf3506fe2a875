"""What only the server of a reply understands, such as Gemini's thought signatures and encrypted reasoning.

Other APIs have no place for it, so it is stored here until the client sends the calls of the reply back.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from opposable.domain.json_text import dump_json
from opposable.domain.messages import Message, NativeReply
from opposable.domain.tools import ToolCall
from opposable.web.middleware.authentication import CURRENT_CALLER

MAX_CALLS = 2000
MAX_BYTES = 50_000_000


class _StoredReply(NamedTuple):
    """What the server returned besides text and calls, the text of the reply, and the size of the first in bytes."""

    native: NativeReply
    content: str
    size: int


class CallSignatures:
    """The last replies with calls as their servers returned them, for the API key that received them."""

    def __init__(self) -> None:
        self._replies: OrderedDict[tuple[str, str, str, int], _StoredReply] = OrderedDict()
        self._size = 0  # in bytes

    def save(self, message: Message) -> None:
        """Store a reply with calls, if its server returned more than its text and calls."""
        if message.native is None:
            return
        reply = _StoredReply(message.native, message.content, len(dump_json(message.native.items)))
        for call in message.tool_calls:
            replaced = self._replies.pop(key := _build_key(call), None)
            self._replies[key] = reply
            self._size += reply.size - (replaced.size if replaced else 0)
        while len(self._replies) > MAX_CALLS or self._size > MAX_BYTES:
            self._size -= self._replies.popitem(last=False)[1].size

    def restore(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages, with what only their server understands where the client sends calls back unchanged."""
        if not self._replies:
            return tuple(messages)
        return tuple(self._restore_message(message) if message.tool_calls else message for message in messages)

    def _restore_message(self, message: Message) -> Message:
        found = {call.id: stored for call in message.tool_calls if (stored := self._replies.get(_build_key(call)))}
        if not found:
            return message
        reply = next(iter(found.values()))
        is_whole = len(found) == len(message.tool_calls) and all(one is reply for one in found.values())
        if is_whole and message.content == reply.content:
            return replace(message, native=reply.native)
        # the items of other APIs are sent in place of the text, which the client may have changed
        items = [item for one in found.values() for item in one.native.items if one.native.api in ("", "chat")]
        own_items = tuple(item for item in items if item.get("type") == "reply" or item.get("id") in found)
        return replace(message, native=replace(reply.native, items=own_items))


def _build_key(call: ToolCall) -> tuple[str, str, str, int]:
    """Return what identifies a call of the current API key."""
    arguments = dump_json(dict(call.arguments), default=str, sort_keys=True)
    return CURRENT_CALLER.get().principal.key_id, call.id, call.name, hash(arguments)
