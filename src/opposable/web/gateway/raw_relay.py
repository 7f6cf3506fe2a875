"""Requests of other APIs relayed unchanged to a server that has them."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from opposable.domain.json_text import dump_json
from opposable.models.base import Model
from opposable.models.upstream import ClientRequest, Upstream
from opposable.web.gateway.call_rewriting import parse_frame, parse_object
from opposable.web.gateway.messages_response import format_event
from opposable.web.gateway.relay_meter import RelayMeter

_CUT_OFF = ("max_tokens", "refusal", "model_context_window_exceeded", None, "incomplete", "failed", "cancelled")
"""Stop reasons of Anthropic and states of responses after which a call may be incomplete."""

_LAST_EVENTS = ("message_stop", "response.completed", "response.incomplete", "response.failed")

_CALL_TYPES = frozenset(
    {"tool_use", "function_call", "custom_tool_call", "computer_call"}
    | {"shell_call", "local_shell_call", "apply_patch_call"}
)
"""The types of calls that the client runs, in messages and responses."""


async def fetch_raw(upstream: Upstream, model: Model, request: ClientRequest) -> bytes:
    """Return the unchanged response of the server, and record its tokens.

    Raises:
        ModelError: If the server fails, or does not have the API.
    """
    with RelayMeter(model, request.body) as meter:
        raw = await upstream.send(meter.limit_to_budget(request, upstream))
        response = parse_object(raw)
        if not response:
            raise upstream.endpoint.build_not_json_error(raw)
        _read_usage(response, meter)
        return raw


async def stream_raw(upstream: Upstream, model: Model, request: ClientRequest) -> AsyncGenerator[bytes, None]:
    """Yield the unchanged events of the server, and record their tokens.

    Raises: as `fetch_raw`.
    """
    with RelayMeter(model, request.body) as meter:
        async with aclosing(upstream.stream(meter.limit_to_budget(request, upstream))) as blocks:
            async for block in blocks:
                meter.count_events(block)
                if b'"usage"' in block:
                    for frame in block.split(b"\n\n"):
                        _read_usage(parse_frame(frame), meter)
                yield block


def read_ids(raw: bytes) -> list[str]:
    """Return the ids of a response or message, its conversation and its items in a body, a list of items, or events."""
    ids: list[str] = []
    is_stream = raw.startswith((b"data:", b"event:", b":"))
    for data in map(parse_frame, raw.split(b"\n\n")) if is_stream else [parse_object(raw)]:
        response = data.get("response", data)
        fields = response if isinstance(response, dict) else {}
        holders = [response, data.get("item"), data.get("message"), fields.get("conversation")]
        for items in (fields.get("output"), data.get("data")):
            holders += items if isinstance(items, list) else ()
        ids += [one["id"] for one in holders if isinstance(one, dict) and isinstance(one.get("id"), str)]
    return ids


def drop_incomplete_calls(raw: bytes) -> bytes:
    """Return a message or response without calls if its end was cut off."""
    reply = parse_object(raw) if _may_have_calls(raw) else {}
    key = "output" if "output" in reply else "content"
    state = reply.get("status", "completed") if key == "output" else reply.get("stop_reason", "tool_use")
    return dump_json(reply) if state in _CUT_OFF and _drop_calls(reply, key) else raw


async def hold_calls(blocks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yield the events of a message or response; its calls are held, and dropped if the reply was cut off."""
    held: list[bytes] = []
    is_whole = is_ended = False
    async with aclosing(blocks):
        async for block in blocks:
            if is_ended or (not held and not _may_have_calls(block)):
                yield block
                continue
            for frame in filter(None, block.split(b"\n\n")):
                data = parse_frame(frame)
                if data.get("type") == "message_delta":
                    is_whole = (data.get("delta") or {}).get("stop_reason") not in _CUT_OFF
                is_whole = is_whole or data.get("type") == "response.completed"
                is_ended = is_ended or data.get("type") in _LAST_EVENTS
                if held or _is_call(data.get("content_block") or data.get("item")):
                    held.append(frame)
                else:
                    yield frame + b"\n\n"
            if is_ended:  # the server may close the connection later
                for event in _release(held, is_whole=is_whole):
                    yield event
                held.clear()
    for event in _release(held, is_whole=is_whole):
        yield event


def _release(held: Sequence[bytes], *, is_whole: bool) -> Iterator[bytes]:
    """Yield held events, without the calls of a reply that was cut off."""
    call_indexes: set[int] = set()
    for frame in held:
        data = parse_frame(frame)
        key = "output_index" if "output_index" in data else "index"
        if key in data and _is_call(data.get("content_block") or data.get("item")):
            call_indexes.add(data[key])
        is_changed = not is_whole and _drop_calls(data.get("response") or {}, "output")
        if is_whole or (key not in data and not is_changed):
            yield frame + b"\n\n"
        elif data.get(key) not in call_indexes:  # clients expect the indexes of blocks without gaps
            moved = {key: data[key] - sum(index < data[key] for index in call_indexes)} if key in data else {}
            yield format_event(data.pop("type"), **{**data, **moved})


def _may_have_calls(raw: bytes) -> bool:
    return b"tool_use" in raw or b'_call"' in raw


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in _CALL_TYPES


def _drop_calls(reply: dict[str, Any], key: str) -> bool:
    """Drop the calls from the items of a reply; return whether there were any."""
    items = reply.get(key) or []
    reply[key] = [item for item in items if not _is_call(item)]
    return len(reply[key]) < len(items)


def _read_usage(data: dict[str, Any], meter: RelayMeter) -> None:
    """Note the usage in a response or event."""
    for holder in (data, data.get("response"), data.get("message")):
        if isinstance(holder, dict):
            meter.read_usage(holder.get("usage"))
