"""Serialization of replies and errors for Anthropic's messages API, whole and as events."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

from opposable.domain.events import FinishReason, ModelEvent, Reply, TextDelta, ThinkingDelta
from opposable.domain.json_text import dump_json
from opposable.domain.tools import ToolCall
from opposable.domain.usage import Usage
from opposable.web.sse_response import escape_line_ends

STOP_REASONS: dict[FinishReason, str] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "incomplete": "max_tokens",
    "content_filter": "refusal",
}


def serialize_message(model: str, reply: Reply) -> bytes:
    """Return a whole message."""
    content: list[dict[str, Any]] = []
    if reply.message.thinking:
        content.append({"type": "thinking", "thinking": reply.message.thinking, "signature": ""})
    if reply.message.content:
        content.append({"type": "text", "text": reply.message.content})
    calls = map(_wrap_unreadable_arguments, reply.message.tool_calls)
    content += [{**_open_call(call), "input": dict(call.arguments)} for call in calls]
    ending = {"stop_reason": _get_stop_reason(reply), "usage": _serialize_usage(reply.usage)}
    return dump_json({**_open_message(model), "content": content, **ending})


class MessageEventSerializer:
    """Serializes the events of one streamed message.

    Args:
        model: The name of the model in the message.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._is_started = False
        self._block_index = -1
        self._open_kind = ""

    def serialize(self, event: ModelEvent) -> bytes:
        """Return the events for a part of the reply; a `Reply` ends the message."""
        if isinstance(event, TextDelta):
            return self._serialize_delta("text", event.text)
        if isinstance(event, ThinkingDelta):
            return self._serialize_delta("thinking", event.text, signature="")
        return self._serialize_ending(event) if isinstance(event, Reply) else b""

    def _serialize_delta(self, kind: str, text: str, **more: str) -> bytes:
        """Return the events for a text of this kind, whose block has more fields."""
        opening = self._start()
        if self._open_kind != kind:
            opening += self._close() + self._open({"type": kind, kind: "", **more})
        return opening + self._delta({"type": f"{kind}_delta", kind: text})

    def _serialize_ending(self, reply: Reply) -> bytes:
        events = [self._start(), self._close()]
        for call in reply.message.tool_calls:
            events.append(self._open(_open_call(call)))
            arguments = _wrap_unreadable_arguments(call).arguments_json
            events.append(self._delta({"type": "input_json_delta", "partial_json": arguments}))
            events.append(self._close())
        delta = {"stop_reason": _get_stop_reason(reply), "stop_sequence": None}
        events.append(format_event("message_delta", delta=delta, usage=_serialize_usage(reply.usage)))
        events.append(format_event("message_stop"))
        return b"".join(events)

    def _start(self) -> bytes:
        if self._is_started:
            return b""
        self._is_started = True
        return format_event("message_start", message=_open_message(self._model))

    def _open(self, block: dict[str, Any]) -> bytes:
        self._open_kind = block["type"]
        self._block_index += 1
        return format_event("content_block_start", index=self._block_index, content_block=block)

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return format_event("content_block_delta", index=self._block_index, delta=delta)

    def _close(self) -> bytes:
        if not self._open_kind:
            return b""
        signature = b""
        if self._open_kind == "thinking":
            signature = self._delta({"type": "signature_delta", "signature": ""})
        self._open_kind = ""
        return signature + format_event("content_block_stop", index=self._block_index)


def format_event(kind: str, **fields: Any) -> bytes:
    """Return an event with its kind in the name and in the data."""
    return b"event: " + kind.encode() + b"\ndata: " + escape_line_ends(dump_json({"type": kind, **fields})) + b"\n\n"


def format_error_event(error: bytes) -> bytes:
    """Return the last event of a stream that failed, from the JSON of its error."""
    return b"event: error\ndata: " + error + b"\n\n"


def _get_stop_reason(reply: Reply) -> str:
    return "refusal" if reply.message.is_refusal else STOP_REASONS[reply.finish]


def _serialize_usage(usage: Usage) -> dict[str, Any]:
    """Return the tokens of a reply; the input tokens of this API are those outside of the cache."""
    cached = {"cache_read_input_tokens": usage.cached_tokens} if usage.cached_tokens else {}
    details = {"thinking_tokens": usage.reasoning_tokens}
    thinking = {"output_tokens_details": details} if usage.reasoning_tokens else {}
    uncached = max(0, usage.input_tokens - usage.cached_tokens)
    return {"input_tokens": uncached, "output_tokens": usage.output_tokens, **cached, **thinking}


def _open_message(model: str) -> dict[str, Any]:
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def _open_call(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}


def _wrap_unreadable_arguments(call: ToolCall) -> ToolCall:
    """Return a call whose arguments are an object, as the API requires; invalid text is the value of a key."""
    return call if call.has_valid_arguments else replace(call, arguments={"unreadable": call.raw}, raw=None)
