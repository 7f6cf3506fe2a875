"""Serialization of replies as chat completions, whole and in chunks.

Chunks are concatenated from bytes, because one is needed for every token.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import orjson

from opposable.domain.events import ModelEvent, Reply, TextDelta, ThinkingDelta
from opposable.domain.json_text import dump_json
from opposable.domain.tools import ToolCall
from opposable.domain.usage import Usage
from opposable.web.sse_response import DONE_EVENT, escape_line_ends


def serialize_completion(model: str, reply: Reply) -> bytes:
    """Return a whole completion."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.message.content, "refusal": None}
    if reply.message.is_refusal:
        message |= {"content": None, "refusal": reply.message.content}
    if reply.message.thinking:
        message["reasoning_content"] = reply.message.thinking
    if reply.message.tool_calls:
        message["content"] = reply.message.content or None
        message["tool_calls"] = [serialize_call(call, call.arguments_json) for call in reply.message.tool_calls]
    return dump_json(
        {
            "id": _create_id(),
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": get_finish_reason(reply)}],
            "usage": serialize_usage(reply.usage),
        }
    )


class ChunkSerializer:
    """Serializes the chunks of one streamed completion as server-sent events.

    Args:
        model: The name of the model in the chunks.
        include_usage: Whether to add a chunk with the token counts.
        first_chunk: A chunk of the same completion, whose id, time and other fields the chunks get.
    """

    __slots__ = ("_delta_prefix", "_delta_suffix", "_head", "_include_usage")

    def __init__(self, model: str, include_usage: bool, first_chunk: Mapping[str, Any] | None = None) -> None:
        head = {"id": _create_id(), "object": "chat.completion.chunk", "created": int(time.time()), "model": model}
        if first_chunk:
            head = {key: value for key, value in first_chunk.items() if key not in ("choices", "usage")} or head
        self._head = b"data: " + dump_json(head)[:-1] + b',"choices":['
        self._delta_prefix = self._head + b'{"index":0,"delta":'
        self._delta_suffix = (
            b',"logprobs":null,"finish_reason":null}]' + (b',"usage":null}' if include_usage else b"}") + b"\n\n"
        )
        self._include_usage = include_usage

    def serialize_opening(self) -> bytes:
        """Return the first chunk, with the role."""
        return self._delta_prefix + b'{"role":"assistant","content":""}' + self._delta_suffix

    def serialize(self, event: ModelEvent) -> bytes:
        """Return the chunks for a part of the reply; a `Reply` ends the completion.

        A reasoning delta has the field that DeepSeek introduced.
        """
        if type(event) is TextDelta:
            return self._serialize_delta({"refusal" if event.is_refusal else "content": event.text})
        if type(event) is ThinkingDelta:
            return self._serialize_delta({"reasoning_content": event.text})
        if type(event) is Reply:
            return self._serialize_calls(event.message.tool_calls) + self._serialize_ending(event)
        return b""

    def _serialize_calls(self, calls: Sequence[ToolCall]) -> bytes:
        """Return the calls, each in two chunks: its id and name, then its arguments."""
        deltas: list[dict[str, Any]] = []
        for index, call in enumerate(calls):
            deltas.append({"index": index, **serialize_call(call, "")})
            deltas.append({"index": index, "function": {"arguments": call.arguments_json}})
        return b"".join([self._serialize_delta({"tool_calls": [delta]}) for delta in deltas])

    def _serialize_delta(self, delta: dict[str, Any]) -> bytes:
        return self._delta_prefix + escape_line_ends(dump_json(delta)) + self._delta_suffix

    def _serialize_ending(self, reply: Reply) -> bytes:
        """Return the finish reason, the token counts if requested, and the end marker."""
        last = b'{},"logprobs":null,"finish_reason":"%s"}]' % get_finish_reason(reply).encode()
        if not self._include_usage:
            return self._delta_prefix + last + b"}\n\n" + DONE_EVENT
        counts = self._head + b'],"usage":' + orjson.dumps(serialize_usage(reply.usage)) + b"}\n\n"
        return self._delta_prefix + last + b',"usage":null}\n\n' + counts + DONE_EVENT


def serialize_call(call: ToolCall, arguments: str) -> dict[str, Any]:
    """Return a call with these arguments, as JSON text."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def serialize_usage(usage: Usage) -> dict[str, Any]:
    """Return the tokens of a reply."""
    counts: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }
    if usage.cached_tokens:
        counts["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    if usage.reasoning_tokens:
        counts["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return counts


def _create_id() -> str:
    return f"chatcmpl-{uuid4().hex}"


def get_finish_reason(reply: Reply) -> str:
    """Return the finish reason of the API; an incomplete stream counts as too long."""
    return "length" if reply.finish == "incomplete" else reply.finish
