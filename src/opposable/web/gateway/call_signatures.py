"""What only the server of a reply understands, such as Gemini's thought signatures and encrypted reasoning.

Other APIs have no place for it, so it is stored here until the client sends the calls of the reply back.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from opposable.domain.json_text import dump_json
from opposable.domain.messages import Message, NativeReply
from opposable.domain.tools import ToolCall
from opposable.web.middleware.authentication import CURRENT_CALLER

MAX_CALLS = 2000
MAX_BYTES = 50_000_000

_CallKey = tuple[str, str, str, int]
"""The API key, and the id, the name and a hash of the arguments of a call."""


class _StoredReply(NamedTuple):
    """What the server returned besides text and calls, the text of the reply, and the size of the first in bytes."""

    native: NativeReply
    content: str
    size: int


class CallSignatures:
    """The last replies with calls as their servers returned them, for the API key that received them.

    Some servers number the calls of each conversation, or of each reply. So calls with one id, name and arguments are
    distinguished by the conversation before them.
    """

    def __init__(self) -> None:
        self._replies: OrderedDict[tuple[_CallKey, int], _StoredReply] = OrderedDict()
        self._contexts: dict[_CallKey, set[int]] = {}
        self._size = 0  # in bytes

    def save(self, message: Message, history: Sequence[Message]) -> None:
        """Store a reply with calls to the messages of `history`, if its server returned more than its text and calls."""
        if message.native is None:
            return
        reply = _StoredReply(message.native, message.content, len(dump_json(message.native.items)))
        *_, context = _hash_contexts((*history, message))
        for call in message.tool_calls:
            replaced = self._replies.pop((key := _build_key(call), context), None)
            self._replies[key, context] = reply
            self._contexts.setdefault(key, set()).add(context)
            self._size += reply.size - (replaced.size if replaced else 0)
        while len(self._replies) > MAX_CALLS or self._size > MAX_BYTES:
            (key, context), removed = self._replies.popitem(last=False)
            self._contexts[key].discard(context)
            if not self._contexts[key]:
                del self._contexts[key]
            self._size -= removed.size

    def restore(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages, with what only their server understands where the client sends calls back unchanged."""
        if not self._replies:
            return tuple(messages)
        return tuple(
            self._restore_message(message, context) if message.tool_calls else message
            for message, context in zip(messages, _hash_contexts(messages), strict=True)
        )

    def _find(self, call: ToolCall, context: int) -> _StoredReply | None:
        """Return the reply with a call in this context; in another one if the client has changed earlier messages."""
        contexts = self._contexts.get(key := _build_key(call), set())
        if context not in contexts and len(contexts) == 1:
            (context,) = contexts
        return self._replies.get((key, context))

    def _restore_message(self, message: Message, context: int) -> Message:
        found = {call.id: stored for call in message.tool_calls if (stored := self._find(call, context))}
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


def _hash_contexts(messages: Sequence[Message]) -> Iterator[int]:
    """Yield for each message a hash of the messages of the user and the results before it."""
    context = 0
    for message in messages:
        yield context
        if message.role in ("user", "tool"):
            context = hash((context, message.content, message.parts))


def _build_key(call: ToolCall) -> _CallKey:
    """Return what identifies a call of the current API key."""
    arguments = dump_json(dict(call.arguments), default=str, sort_keys=True)
    return CURRENT_CALLER.get().principal.key_id, call.id, call.name, hash(arguments)
