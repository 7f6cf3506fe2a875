"""Requests of other APIs relayed unchanged to a server that has them."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import orjson

from opposable.domain.errors import ModelNotFound
from opposable.models.base import Model
from opposable.models.upstream import Upstream
from opposable.web.gateway.relay_meter import RelayMeter
from opposable.web.openai_errors import GatewayError

_CUT_OFF_REASONS = ("max_tokens", "refusal", "model_context_window_exceeded", None)
"""Stop reasons of Anthropic after which a call may be incomplete."""


async def fetch_raw(
    upstream: Upstream, model: Model, body: dict[str, Any], headers: Mapping[str, str] | None = None
) -> bytes:
    """Return the unchanged response of the server, and record its tokens.

    Raises:
        GatewayError: 404, if the server does not have the API.
        ModelError: If the server fails.
    """
    with RelayMeter(model, body) as meter:
        try:
            raw = await upstream.post(meter.bound_by_budget(body, upstream), headers)
        except ModelNotFound as error:
            raise _not_found_error(error) from error
        _read_usage(raw, meter)
        return raw


async def stream_raw(
    upstream: Upstream, model: Model, body: dict[str, Any], headers: Mapping[str, str] | None = None
) -> AsyncGenerator[bytes, None]:
    """Yield the unchanged events of the server, and record their tokens.

    Raises: as `fetch_raw`.
    """
    with RelayMeter(model, body) as meter:
        try:
            async with aclosing(upstream.stream(meter.bound_by_budget(body, upstream), headers)) as blocks:
                async for block in blocks:
                    meter.count_events(block)
                    if b'"usage"' in block:
                        for frame in block.split(b"\n\n"):
                            _read_usage(frame.rpartition(b"data:")[2], meter)
                    yield block
        except ModelNotFound as error:
            raise _not_found_error(error) from error


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
                data = _parse(frame.rpartition(b"data:")[2])
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
        data = _parse(frame.rpartition(b"data:")[2])
        if data.get("content_block", {}).get("type") == "tool_use":
            call_indexes.add(data.get("index"))
        if not (is_cut_off and "index" in data and data["index"] in call_indexes):
            yield frame + b"\n\n"


def _read_usage(raw: bytes, meter: RelayMeter) -> None:
    """Note the usage in a response or event."""
    data = _parse(raw)
    for holder in (data, data.get("response"), data.get("message")):
        usage = holder.get("usage") if isinstance(holder, dict) else None
        if isinstance(usage, dict):
            meter.read_usage(usage)


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return {}
    return data if isinstance(data, dict) else {}


def _not_found_error(error: ModelNotFound) -> GatewayError:
    return GatewayError(404, str(error), param="model", code="api_not_found")
