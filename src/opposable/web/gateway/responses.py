"""Responses of OpenAI's API: relayed to a server that has it, or made from the reply of any model."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from opposable.domain.events import ModelEvent, Reply
from opposable.domain.json_text import dump_json
from opposable.domain.messages import Message
from opposable.models.base import Model
from opposable.models.profile import get_profile
from opposable.models.upstream import ClientRequest, Upstream, find_upstream
from opposable.web.gateway.completions import fetch_reply, stream_reply
from opposable.web.gateway.parameters import report_ignored_parameters
from opposable.web.gateway.raw_relay import fetch_raw, stream_raw
from opposable.web.gateway.response_store import ResponseStore
from opposable.web.gateway.responses_request import ResponseRequest, parse_response_request
from opposable.web.gateway.responses_response import ResponseSerializer


async def create_response(model: Model, client: ClientRequest, store: ResponseStore, owner: str) -> bytes:
    """Return the body of a whole response.

    Raises:
        GatewayError: If the request is not valid.
        ModelError: If the model fails.
        StoreError: If the store fails.
    """
    upstream = _find_relay(model)
    if upstream is not None:
        return await fetch_raw(upstream, model, client)
    request = await _prepare(model, client, store, owner)
    serializer = ResponseSerializer(request)
    reply = await fetch_reply(model, request.completion)
    await _save(request, serializer.response_id, reply.message, store, owner)
    return dump_json(serializer.build_response(reply))


async def stream_response(
    model: Model, client: ClientRequest, store: ResponseStore, owner: str
) -> AsyncGenerator[bytes, None]:
    """Yield the events of a response. Raises: as `create_response`, before the first event."""
    upstream = _find_relay(model)
    if upstream is not None:
        async with aclosing(stream_raw(upstream, model, client)) as blocks:
            async for block in blocks:
                yield block
        return
    request = await _prepare(model, client, store, owner)
    serializer = ResponseSerializer(request)
    is_started = False
    try:
        async with aclosing(stream_reply(model, request.completion)) as events:
            async for event in events:
                await _save_reply(event, request, serializer.response_id, store, owner)
                if serialized := serializer.serialize(event):
                    is_started = True
                    yield serialized
    except Exception as error:
        if not is_started:
            raise
        yield serializer.serialize_error(error)


def _find_relay(model: Model) -> Upstream | None:
    """Return the server of a natively calling model, if it has this API."""
    upstream = find_upstream(model, "responses")
    return upstream if upstream is not None and get_profile(model).calling == "native" else None


async def _prepare(model: Model, client: ClientRequest, store: ResponseStore, owner: str) -> ResponseRequest:
    """Return the request, with the messages of the response that it continues."""
    request = parse_response_request(client.body)
    report_ignored_parameters(client, model, request.completion.hints, *request.completion.ignored)
    if not request.previous_response_id:
        return request
    return request.with_history(await store.load(request.previous_response_id, owner))


async def _save_reply(
    event: ModelEvent, request: ResponseRequest, response_id: str, store: ResponseStore, owner: str
) -> None:
    if isinstance(event, Reply):
        await _save(request, response_id, event.message, store, owner)


async def _save(request: ResponseRequest, response_id: str, reply: Message, store: ResponseStore, owner: str) -> None:
    """Store the messages up to the reply, without the instructions, which hold for one request."""
    if not request.is_stored:
        return
    messages = request.completion.messages[1 if request.body.get("instructions") else 0 :]
    await store.save(response_id, owner, [*messages, reply])
