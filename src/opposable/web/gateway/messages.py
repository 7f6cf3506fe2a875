"""Messages of Anthropic's API: relayed to a server that has it, or made from the reply of any model."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import orjson

from opposable.agent.history import estimate_text_tokens, estimate_tokens
from opposable.models.base import Model
from opposable.models.upstream import ClientRequest, find_upstream
from opposable.web.gateway.completions import fetch_reply, stream_reply
from opposable.web.gateway.messages_request import parse_messages_request
from opposable.web.gateway.messages_response import MessageEventSerializer, serialize_message
from opposable.web.gateway.parameters import report_ignored_parameters
from opposable.web.gateway.raw_relay import drop_cut_off_tool_use, fetch_raw, hold_tool_use, stream_raw
from opposable.web.gateway.request import CompletionRequest


async def create_message(model: Model, client: ClientRequest) -> bytes:
    """Return the body of a whole message.

    Raises:
        GatewayError: If the request is not valid.
        ModelError: If the model fails.
    """
    upstream = find_upstream(model, "messages")
    if upstream is not None:
        return drop_cut_off_tool_use(await fetch_raw(upstream, model, client))
    request = _prepare(model, client)
    return serialize_message(request.model, await fetch_reply(model, request))


async def stream_message(model: Model, client: ClientRequest) -> AsyncGenerator[bytes, None]:
    """Yield the events of a message. Raises: as `create_message`, before the first event."""
    upstream = find_upstream(model, "messages")
    if upstream is not None:
        async with aclosing(hold_tool_use(stream_raw(upstream, model, client))) as blocks:
            async for block in blocks:
                yield block
        return
    request = _prepare(model, client)
    serializer = MessageEventSerializer(request.model)
    async with aclosing(stream_reply(model, request)) as events:
        async for event in events:
            if serialized := serializer.serialize(event):
                yield serialized


def _prepare(model: Model, client: ClientRequest) -> CompletionRequest:
    request = parse_messages_request(client.body)
    report_ignored_parameters(client, model, request.hints, *request.ignored)
    return request


async def count_tokens(model: Model, client: ClientRequest) -> bytes:
    """Return the number of tokens of a request: of the server that has this API, else an estimate.

    Raises: as `create_message`.
    """
    upstream = find_upstream(model, "messages/count_tokens")
    if upstream is not None:
        return await fetch_raw(upstream, model, client)
    request = parse_messages_request(client.body, is_count=True)
    tools = sum(
        estimate_text_tokens(tool.description) + estimate_text_tokens(orjson.dumps(tool.parameters).decode())
        for tool in request.tools
    )
    return orjson.dumps({"input_tokens": estimate_tokens(request.messages) + tools})
