"""Replies of the responses API as OpenAI sends them, checked with the types of its SDK."""

from typing import Any

import orjson
from aiohttp import web
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter
from tests.models.chat_server import Handler, respond_json

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def reasoning_item(encrypted: str | None = "gAAAA-secret", *summary: str) -> dict[str, Any]:
    """Reasoning: encrypted, and the texts of its summary."""
    texts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": "rs_1", "summary": texts, "encrypted_content": encrypted}


def message_item(text: str, status: str = "completed") -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": [part]}


def call_item(call_id: str, arguments: str, status: str = "completed", name: str = "add") -> dict[str, Any]:
    fields = {"call_id": call_id, "name": name, "arguments": arguments, "status": status}
    return {"type": "function_call", "id": f"fc_{call_id}", **fields}


def build_response(*items: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    """A whole response."""
    response = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": "gpt-5",
        "output": list(items),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0},
            "output_tokens": 30,
            "output_tokens_details": {"reasoning_tokens": 25},
            "total_tokens": 50,
        },
        **more,
    }
    Response.model_validate(response)
    return response


def build_events(response: dict[str, Any], *, deltas: int = 2) -> list[dict[str, Any]]:
    """The events of a response, each text in this number of deltas."""
    head = {**response, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": head}]
    for index, item in enumerate(response["output"]):
        events.append({"type": "response.output_item.added", "output_index": index, "item": _empty(item)})
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "reasoning":
            for n, part in enumerate(item["summary"]):
                empty, summary = {"type": "summary_text", "text": ""}, {**place, "summary_index": n}
                events.append({"type": "response.reasoning_summary_part.added", **summary, "part": empty})
                delta = {"type": "response.reasoning_summary_text.delta", **summary, "delta": part["text"]}
                events.append(delta)
        if item["type"] == "message":
            text, place = item["content"][0]["text"], {**place, "content_index": 0, "logprobs": []}
            events += [{"type": "response.output_text.delta", **place, "delta": d} for d in _split(text, deltas)]
        if item["type"] == "function_call":
            name = "response.function_call_arguments"
            events += [{"type": f"{name}.delta", **place, "delta": d} for d in _split(item["arguments"], deltas)]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{response['status']}", "response": response})
    return number_events(events)


def number_events(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events with their numbers; each is one of the API."""
    numbered = [{**event, "sequence_number": n} for n, event in enumerate(events)]
    for event in numbered:
        EVENT.validate_python(event)
    return numbered


def respond_response(*items: dict[str, Any], **more: Any) -> Handler:
    """A response, streamed if the request asks for it."""
    response = build_response(*items, **more)

    async def answer(request: web.Request) -> web.StreamResponse:
        is_streamed = orjson.loads(await request.read()).get("stream") is True
        return await (respond_response_events(build_events(response)) if is_streamed else respond_json(response))(
            request
        )

    return answer


def respond_response_events(events: list[dict[str, Any]]) -> Handler:
    """The events of a response, which has no end marker."""
    raw = b"".join(b"event: %s\ndata: %s\n\n" % (e["type"].encode(), orjson.dumps(e)) for e in events)

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=raw, content_type="text/event-stream")

    return answer


def _empty(item: dict[str, Any]) -> dict[str, Any]:
    """An item as it is when it is added."""
    empty = {"reasoning": {"summary": []}, "message": {"content": []}, "function_call": {"arguments": ""}}
    status = {"status": "in_progress"} if item["type"] != "reasoning" else {}
    return {**item, **empty.get(item["type"], {}), **status}


def _split(text: str, count: int) -> list[str]:
    size = max(1, -(-len(text) // count))
    return [text[at : at + size] for at in range(0, len(text), size)]
