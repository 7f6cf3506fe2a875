"""Chat completions: relayed to a server, or made from the reply of any model."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from opposable.domain.events import Reply
from opposable.models.base import Model
from opposable.models.upstream import ClientRequest
from opposable.web.gateway.call_signatures import CallSignatures
from opposable.web.gateway.completions import fetch_reply, stream_reply
from opposable.web.gateway.parameters import report_ignored_parameters
from opposable.web.gateway.relay import CompletionRelay, find_relay
from opposable.web.gateway.request import CompletionRequest, parse_body
from opposable.web.gateway.response import ChunkSerializer, serialize_completion


async def create_completion(model: Model, client: ClientRequest, signatures: CallSignatures) -> bytes:
    """Return the body of a whole completion.

    Raises:
        GatewayError: If the request is not valid.
        ModelError: If the model fails.
    """
    upstream = find_relay(model, client.body)
    if upstream is not None:
        return await CompletionRelay(upstream, model, client).fetch()
    request = _prepare(model, client, signatures)
    reply = await fetch_reply(model, request)
    signatures.save(reply.message, request.messages)
    return serialize_completion(request.model, reply)


def _prepare(model: Model, client: ClientRequest, signatures: CallSignatures) -> CompletionRequest:
    request = parse_body(client.body)
    report_ignored_parameters(client, model, request.hints)
    return replace(request, messages=signatures.restore(request.messages))


async def stream_completion(
    model: Model, client: ClientRequest, signatures: CallSignatures
) -> AsyncGenerator[bytes, None]:
    """Yield a completion as server-sent events.

    The first event is sent when the model starts to reply.

    Raises:
        GatewayError: If the request is not valid.
        ModelError: If the model fails.
    """
    upstream = find_relay(model, client.body)
    if upstream is not None:
        async with aclosing(CompletionRelay(upstream, model, client).stream()) as blocks:
            async for block in blocks:
                yield block
        return
    request = _prepare(model, client, signatures)
    serializer = ChunkSerializer(request.model, request.include_usage)
    opening = serializer.serialize_opening()
    async with aclosing(stream_reply(model, request)) as events:
        async for event in events:
            if isinstance(event, Reply):
                signatures.save(event.message, request.messages)
            if chunks := serializer.serialize(event):
                yield opening + chunks
                opening = b""
