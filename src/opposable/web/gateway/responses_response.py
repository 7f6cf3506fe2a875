"""Serialization of replies for OpenAI's responses API, whole and as events."""

import time
from typing import Any
from uuid import uuid4

from opposable.domain.events import CUT_OFF, ModelEvent, Reply, TextDelta, ThinkingDelta
from opposable.domain.tools import ToolCall
from opposable.domain.usage import Usage
from opposable.web.gateway.messages_response import format_event
from opposable.web.gateway.responses_request import ResponseRequest
from opposable.web.openai_errors import to_gateway_error

_REPEATED_SETTINGS: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
"""The settings of a request that its response repeats, with their defaults."""


class ResponseSerializer:
    """Builds one response, its items and its events.

    Args:
        request: The request.

    Attributes:
        response_id: The id of the response.
        response: The whole response, once it is complete.
    """

    def __init__(self, request: ResponseRequest) -> None:
        self.response_id = f"resp_{uuid4().hex}"
        self.response: dict[str, Any] = {}
        self._request = request
        self._created_at = int(time.time())
        self._sequence_number = -1
        self._output: list[dict[str, Any]] = []
        self._open_kind = ""
        self._text: list[str] = []
        self._item_id = ""
        self._item_count = 0

    def build_response(self, reply: Reply) -> dict[str, Any]:
        """Return the whole response."""
        if not self._output:
            self._output = self._build_items(reply)
        is_cut_off = reply.finish in CUT_OFF
        response = self._build_head("incomplete" if is_cut_off else "completed")
        if is_cut_off:
            reason = "content_filter" if reply.finish == "content_filter" else "max_output_tokens"
            response["incomplete_details"] = {"reason": reason}
        self.response = {**response, "output": self._output, "usage": _serialize_usage(reply.usage)}
        return self.response

    def serialize(self, event: ModelEvent) -> bytes:
        """Return the events for a part of the reply; a `Reply` ends the response."""
        opening = b""
        if self._sequence_number < 0:
            head = {**self._build_head("in_progress"), "output": [], "usage": None}
            opening = self._event("response.created", response=head)
            opening += self._event("response.in_progress", response=head)
        if isinstance(event, TextDelta | ThinkingDelta):
            opening += self._switch(_get_kind(event))
            self._text.append(event.text)
            return opening + self._text_event("delta", delta=event.text)
        return opening + self._serialize_ending(event) if isinstance(event, Reply) else opening

    def serialize_error(self, error: Exception) -> bytes:
        """Return the last event of a stream that failed."""
        detail = to_gateway_error(error).body["error"]
        response = self._build_head("failed")
        response["error"] = {"code": str(detail.get("code") or "server_error"), "message": detail["message"]}
        return self._event("response.failed", response={**response, "output": self._output, "usage": None})

    def _serialize_ending(self, reply: Reply) -> bytes:
        events = [self._switch("")]
        for call in reply.message.tool_calls:
            item = self._build_call(call)
            index = len(self._output)
            is_custom = item["type"] == "custom_tool_call"
            field = "input" if is_custom else "arguments"
            name = "response.custom_tool_call_input" if is_custom else "response.function_call_arguments"
            place = {"item_id": item["id"], "output_index": index}
            opened = {**item, field: "", "status": "in_progress"}
            events.append(self._event("response.output_item.added", output_index=index, item=opened))
            events.append(self._event(f"{name}.delta", **place, delta=item[field]))
            events.append(self._event(f"{name}.done", **place, **{field: item[field]}))
            events.append(self._event("response.output_item.done", output_index=index, item=item))
            self._output.append(item)
        kind = "response.incomplete" if reply.finish in CUT_OFF else "response.completed"
        events.append(self._event(kind, response=self.build_response(reply)))
        return b"".join(events)

    def _switch(self, kind: str) -> bytes:
        """Return the events that end the open item, if it is of another kind, and open a new one."""
        if kind == self._open_kind:
            return b""
        closing = self._close_item() if self._open_kind else b""
        self._open_kind, self._text = kind, []
        if not kind:
            return closing
        self._item_id = self._create_item_id("rs" if kind == "reasoning" else "msg")
        item = self._build_item("")
        item |= {"status": "in_progress", "summary" if kind == "reasoning" else "content": []}
        opened = self._event("response.output_item.added", output_index=len(self._output), item=item)
        return closing + opened + self._part_event("added", "")

    def _close_item(self) -> bytes:
        """Return the events that end the open item, and add it to the output."""
        text = "".join(self._text)
        done = self._text_event("done", **{"refusal" if self._open_kind == "refusal" else "text": text})
        part = self._part_event("done", text)
        item = self._build_item(text)
        ended = self._event("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        return done + part + ended

    def _part_event(self, action: str, text: str) -> bytes:
        if self._open_kind == "reasoning":
            return self._event(f"response.reasoning_summary_part.{action}", **self._place, part=_build_summary(text))
        part = _build_text(text, is_refusal=self._open_kind == "refusal")
        return self._event(f"response.content_part.{action}", **self._place, part=part)

    def _text_event(self, action: str, **fields: str) -> bytes:
        if self._open_kind == "message":
            return self._event(f"response.output_text.{action}", **self._place, **fields, logprobs=[])
        name = "refusal" if self._open_kind == "refusal" else "reasoning_summary_text"
        return self._event(f"response.{name}.{action}", **self._place, **fields)

    @property
    def _place(self) -> dict[str, Any]:
        index = "summary_index" if self._open_kind == "reasoning" else "content_index"
        return {"item_id": self._item_id, "output_index": len(self._output), index: 0}

    def _build_item(self, text: str) -> dict[str, Any]:
        """Return the open item with this text."""
        if self._open_kind == "reasoning":
            return _build_reasoning(self._item_id, text)
        return _build_message(self._item_id, text, is_refusal=self._open_kind == "refusal")

    def _build_items(self, reply: Reply) -> list[dict[str, Any]]:
        """Return the items of a whole reply."""
        items: list[dict[str, Any]] = []
        if reply.message.thinking:
            items.append(_build_reasoning(self._create_item_id("rs"), reply.message.thinking))
        if reply.message.content:
            is_refusal = reply.message.is_refusal
            items.append(_build_message(self._create_item_id("msg"), reply.message.content, is_refusal=is_refusal))
        return items + [self._build_call(call) for call in reply.message.tool_calls]

    def _build_call(self, call: ToolCall) -> dict[str, Any]:
        namespace, name = self._request.namespaces.get(call.name, ("", call.name))
        item = {"id": self._create_item_id("fc"), "call_id": call.id, "name": name, "status": "completed"}
        if namespace:
            item["namespace"] = namespace
        if call.name in self._request.custom_tools:
            text = call.arguments.get("input")
            return {**item, "type": "custom_tool_call", "input": text if isinstance(text, str) else call.arguments_json}
        return {**item, "type": "function_call", "arguments": call.arguments_json}

    def _create_item_id(self, prefix: str) -> str:
        """Return the id of the next item, from which `ResponseStore.load_item` finds its response."""
        self._item_count += 1
        return f"{prefix}_{self.response_id.removeprefix('resp_')}_{self._item_count}"

    def _build_head(self, status: str) -> dict[str, Any]:
        body = self._request.body
        settings = {
            name: default if body.get(name) is None else body[name] for name, default in _REPEATED_SETTINGS.items()
        }
        return {
            "id": self.response_id,
            "object": "response",
            "created_at": self._created_at,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "model": self._request.completion.model,
            **settings,
        }

    def _event(self, kind: str, **fields: Any) -> bytes:
        self._sequence_number += 1
        return format_event(kind, sequence_number=self._sequence_number, **fields)


def _get_kind(delta: TextDelta | ThinkingDelta) -> str:
    """Return the kind of the item that a delta belongs to: a message, a message that is a refusal, or reasoning."""
    if isinstance(delta, ThinkingDelta):
        return "reasoning"
    return "refusal" if delta.is_refusal else "message"


def _build_text(text: str, *, is_refusal: bool) -> dict[str, Any]:
    if is_refusal:
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _build_message(item_id: str, text: str, *, is_refusal: bool) -> dict[str, Any]:
    return {
        "id": item_id,
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [_build_text(text, is_refusal=is_refusal)],
    }


def _build_summary(text: str) -> dict[str, Any]:
    return {"type": "summary_text", "text": text}


def _build_reasoning(item_id: str, text: str) -> dict[str, Any]:
    return {"id": item_id, "type": "reasoning", "summary": [_build_summary(text)]}


def _serialize_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }
