"""Messages of Anthropic's API: relayed to a server that has it, or made from the reply of any model."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

import orjson

from opposable.agent.model_requests import estimate_prompt_tokens
from opposable.domain.events import Reply
from opposable.models.base import Model
from opposable.models.upstream import ClientRequest, find_upstream
from opposable.web.gateway.call_signatures import CallSignatures
from opposable.web.gateway.completions import fetch_reply, stream_reply
from opposable.web.gateway.messages_request import parse_messages_request
from opposable.web.gateway.messages_response import MessageEventSerializer, serialize_message
from opposable.web.gateway.parameters import report_ignored_parameters
from opposable.web.gateway.raw_relay import drop_incomplete_calls, fetch_raw, hold_calls, stream_raw
from opposable.web.gateway.request import CompletionRequest


async def create_message(model: Model, client: ClientRequest, signatures: CallSignatures) -> bytes:
    """Return the body of a whole message.

    Raises:
        GatewayError: If the request is not valid.
        ModelError: If the model fails.
    """
    upstream = find_upstream(model, "messages")
    if upstream is not None:
        return drop_incomplete_calls(await fetch_raw(upstream, model, client))
    request = _prepare(model, client, signatures)
    reply = await fetch_reply(model, request)
    signatures.save(reply.message)
    return serialize_message(request.model, reply)


async def stream_message(
    model: Model, client: ClientRequest, signatures: CallSignatures
) -> AsyncGenerator[bytes, None]:
    """Yield the events of a message. Raises: as `create_message`, before the first event."""
    upstream = find_upstream(model, "messages")
    if upstream is not None:
        async with aclosing(hold_calls(stream_raw(upstream, model, client))) as blocks:
            async for block in blocks:
                yield block
        return
    request = _prepare(model, client, signatures)
    serializer = MessageEventSerializer(request.model)
    async with aclosing(stream_reply(model, request)) as events:
        async for event in events:
            if isinstance(event, Reply):
                signatures.save(event.message)
            if serialized := serializer.serialize(event):
                yield serialized


def _prepare(model: Model, client: ClientRequest, signatures: CallSignatures) -> CompletionRequest:
    request = parse_messages_request(client.body)
    report_ignored_parameters(client, model, request.hints, *request.ignored)
    return replace(request, messages=signatures.restore(request.messages))


async def count_tokens(model: Model, client: ClientRequest) -> bytes:
    """Return the number of tokens of a request: of the server that has this API, else an estimate.

    Raises: as `create_message`.
    """
    upstream = find_upstream(model, "messages/count_tokens")
    if upstream is not None:
        return await fetch_raw(upstream, model, client)
    request = parse_messages_request(client.body, is_count=True)
    return orjson.dumps({"input_tokens": estimate_prompt_tokens(request.messages, request.tools)})
