"""Requests of other APIs relayed unchanged to a server that has them."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from opposable.domain.json_text import dump_json
from opposable.models.base import Model
from opposable.models.upstream import ClientRequest, Upstream
from opposable.web.gateway.call_rewriting import parse_frame, parse_object
from opposable.web.gateway.messages_response import format_event
from opposable.web.gateway.relay_meter import RelayMeter

_CUT_OFF_REASONS = ("max_tokens", "refusal", "model_context_window_exceeded", None)
"""Stop reasons of Anthropic after which a call may be incomplete."""


async def fetch_raw(upstream: Upstream, model: Model, request: ClientRequest) -> bytes:
    """Return the unchanged response of the server, and record its tokens.

    Raises:
        ModelError: If the server fails, or does not have the API.
    """
    with RelayMeter(model, request.body) as meter:
        raw = await upstream.send(meter.bound_by_budget(request, upstream))
        _read_usage(parse_object(raw), meter)
        return raw


async def stream_raw(upstream: Upstream, model: Model, request: ClientRequest) -> AsyncGenerator[bytes, None]:
    """Yield the unchanged events of the server, and record their tokens.

    Raises: as `fetch_raw`.
    """
    with RelayMeter(model, request.body) as meter:
        async with aclosing(upstream.stream(meter.bound_by_budget(request, upstream))) as blocks:
            async for block in blocks:
                meter.count_events(block)
                if b'"usage"' in block:
                    for frame in block.split(b"\n\n"):
                        _read_usage(parse_frame(frame), meter)
                yield block


def read_ids(raw: bytes) -> list[str]:
    """Return the ids of a response and its items in a body, a list of items, or events."""
    ids: list[str] = []
    is_stream = raw.startswith((b"data:", b"event:", b":"))
    for data in map(parse_frame, raw.split(b"\n\n")) if is_stream else [parse_object(raw)]:
        response = data.get("response", data)
        holders = [response, data.get("item")]
        for items in (response.get("output") if isinstance(response, dict) else None, data.get("data")):
            holders += items if isinstance(items, list) else ()
        ids += [one["id"] for one in holders if isinstance(one, dict) and isinstance(one.get("id"), str)]
    return ids


def drop_cut_off_tool_use(raw: bytes) -> bytes:
    """Return a message without calls if its end was cut off."""
    message = parse_object(raw) if b'"tool_use"' in raw else {}
    if message.get("stop_reason", "tool_use") not in _CUT_OFF_REASONS:
        return raw
    message["content"] = [block for block in message["content"] if block.get("type") != "tool_use"]
    return dump_json(message)


async def hold_tool_use(blocks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yield the events of a message; its calls are held, and dropped if the reply was cut off."""
    held: list[bytes] = []
    stop_reason: str | None = None
    async with aclosing(blocks):
        async for block in blocks:
            if not held and b"tool_use" not in block:
                yield block
                continue
            for frame in filter(None, block.split(b"\n\n")):
                data = parse_frame(frame)
                is_call = data.get("content_block", {}).get("type") == "tool_use"
                if data.get("type") == "message_delta":
                    stop_reason = (data.get("delta") or {}).get("stop_reason")
                if held or is_call:
                    held.append(frame)
                else:
                    yield frame + b"\n\n"
    is_cut_off = stop_reason in _CUT_OFF_REASONS
    call_indexes: set[Any] = set()
    for frame in held:
        data = parse_frame(frame)
        if data.get("content_block", {}).get("type") == "tool_use":
            call_indexes.add(data.get("index"))
        if not is_cut_off or "index" not in data:
            yield frame + b"\n\n"
        elif data["index"] not in call_indexes:  # clients expect the indexes of blocks without gaps
            yield format_event(data.pop("type"), **{**data, "index": data["index"] - len(call_indexes)})


def _read_usage(data: dict[str, Any], meter: RelayMeter) -> None:
    """Note the usage in a response or event."""
    for holder in (data, data.get("response"), data.get("message")):
        usage = holder.get("usage") if isinstance(holder, dict) else None
        if isinstance(usage, dict):
            meter.read_usage(usage)
