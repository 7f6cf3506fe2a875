"""Messages of Anthropic's API: relayed to a server that has it, or made from the reply of any model."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import orjson

from opposable.agent.history import estimate_text_tokens, estimate_tokens
from opposable.models.base import Model
from opposable.models.upstream import find_upstream
from opposable.web.gateway.completions import fetch_reply, stream_reply
from opposable.web.gateway.messages_request import parse_messages_request
from opposable.web.gateway.messages_response import MessageEventSerializer, serialize_message
from opposable.web.gateway.raw_relay import fetch_raw, hold_tool_use, stream_raw

RELAYED_HEADERS = ("anthropic-version", "anthropic-beta")
"""Headers of the client that reach a server with this API."""


async def create_message(model: Model, body: dict[str, Any], headers: Mapping[str, str]) -> bytes:
    """Return the body of a whole message.

    Raises:
        GatewayError: If the request is not valid.
        ModelError: If the model fails.
    """
    upstream = find_upstream(model, "messages")
    if upstream is not None:
        return _drop_cut_off_calls(await fetch_raw(upstream, model, body, headers))
    request = parse_messages_request(body)
    return serialize_message(request.model, await fetch_reply(model, request))


async def stream_message(model: Model, body: dict[str, Any], headers: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
    """Yield the events of a message. Raises: as `create_message`, before the first event."""
    upstream = find_upstream(model, "messages")
    if upstream is not None:
        async with aclosing(hold_tool_use(stream_raw(upstream, model, body, headers))) as blocks:
            async for block in blocks:
                yield block
        return
    request = parse_messages_request(body)
    serializer = MessageEventSerializer(request.model)
    async with aclosing(stream_reply(model, request)) as events:
        async for event in events:
            if serialized := serializer.serialize(event):
                yield serialized


async def count_tokens(model: Model, body: dict[str, Any], headers: Mapping[str, str]) -> bytes:
    """Return the number of tokens of a request: of the server that has this API, else an estimate.

    Raises: as `create_message`.
    """
    upstream = find_upstream(model, "messages/count_tokens")
    if upstream is not None:
        return await fetch_raw(upstream, model, body, headers)
    request = parse_messages_request(body, is_count=True)
    tools = sum(
        estimate_text_tokens(tool.description) + estimate_text_tokens(orjson.dumps(tool.parameters).decode())
        for tool in request.tools
    )
    return orjson.dumps({"input_tokens": estimate_tokens(request.messages) + tools})


def _drop_cut_off_calls(raw: bytes) -> bytes:
    """Return a message without calls if its end was cut off."""
    if b'"tool_use"' not in raw or not any(reason in raw for reason in (b'"max_tokens"', b'"refusal"')):
        return raw
    message = orjson.loads(raw)
    if message.get("stop_reason") not in ("max_tokens", "refusal"):
        return raw
    message["content"] = [block for block in message["content"] if block.get("type") != "tool_use"]
    return orjson.dumps(message)
