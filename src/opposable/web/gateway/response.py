"""Replies written as chat completions: whole, and in chunks. Bytes by hand, since a chunk is made for every token."""

import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import orjson

from opposable.domain.events import Reply
from opposable.domain.tools import ToolCall
from opposable.domain.usage import Usage
from opposable.models.http_client import to_json

DONE = b"data: [DONE]\n\n"


def completion(model: str, reply: Reply) -> bytes:
    """A whole completion."""
    said = reply.message
    message: dict[str, Any] = {"role": "assistant", "content": said.content, "refusal": None}
    if said.thinking:
        message["reasoning_content"] = said.thinking
    if said.tool_calls:
        message["content"] = said.content or None
        message["tool_calls"] = [_call(call, call.arguments) for call in said.tool_calls]
    return to_json(
        {
            "id": _new_id(),
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}],
            "usage": _usage(reply.usage),
        }
    )


class Chunks:
    """The chunks of one streamed completion, as events ready to be sent. `usage` adds the one with token counts."""

    __slots__ = ("_after", "_before", "_head", "_usage")

    def __init__(self, model: str, usage: bool) -> None:
        head = {"id": _new_id(), "object": "chat.completion.chunk", "created": int(time.time()), "model": model}
        self._head = b"data: " + to_json(head)[:-1] + b',"choices":['
        self._before = self._head + b'{"index":0,"delta":'
        self._after = b',"logprobs":null,"finish_reason":null}]' + (b',"usage":null}' if usage else b"}") + b"\n\n"
        self._usage = usage

    def opening(self) -> bytes:
        """The first chunk: who speaks."""
        return self._before + b'{"role":"assistant","content":""}' + self._after

    def text(self, text: str) -> bytes:
        """A piece of text."""
        return self._before + b'{"content":' + to_json(text) + b"}" + self._after

    def thinking(self, text: str) -> bytes:
        """A piece of reasoning, in the field that DeepSeek gave it."""
        return self._before + b'{"reasoning_content":' + to_json(text) + b"}" + self._after

    def calls(self, calls: Sequence[ToolCall]) -> bytes:
        """The calls, each in two chunks: its id and name, then its arguments."""
        deltas: list[dict[str, Any]] = []
        for index, call in enumerate(calls):
            deltas.append({"index": index, **_call(call, "")})
            deltas.append({"index": index, "function": {"arguments": call.arguments}})
        return b"".join([self._before + to_json({"tool_calls": [delta]}) + self._after for delta in deltas])

    def ending(self, reply: Reply) -> bytes:
        """The last chunks: why the model stopped, token counts if they were asked for, and the end."""
        last = b'{},"logprobs":null,"finish_reason":"%s"}]' % reply.finish.encode()
        if not self._usage:
            return self._before + last + b"}\n\n" + DONE
        counts = self._head + b'],"usage":' + orjson.dumps(_usage(reply.usage)) + b"}\n\n"
        return self._before + last + b',"usage":null}\n\n' + counts + DONE


def model_entry(name: str, created: int) -> dict[str, Any]:
    """A model as the list of models has it."""
    return {"id": name, "object": "model", "created": created, "owned_by": "opposable"}


def _call(call: ToolCall, arguments: str) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }


def _new_id() -> str:
    return f"chatcmpl-{uuid4().hex}"
