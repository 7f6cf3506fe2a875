"""Messages of Anthropic's API: relayed to a server that has it, or made from the reply of any model."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

import orjson

from opposable.agent.request_size import estimate_prompt_tokens
from opposable.domain.events import Reply
from opposable.models.base import Model
from opposable.models.upstream import ClientRequest, Upstream, find_upstream
from opposable.web.gateway.call_signatures import CallSignatures
from opposable.web.gateway.completions import fetch_reply, stream_reply
from opposable.web.gateway.messages_request import build_thread_error, parse_messages_request
from opposable.web.gateway.messages_response import MessageEventSerializer, serialize_message
from opposable.web.gateway.parameters import report_ignored_parameters
from opposable.web.gateway.raw_relay import drop_incomplete_calls, fetch_raw, hold_calls, stream_raw
from opposable.web.gateway.request import CompletionRequest, parse_model_name
from opposable.web.gateway.response_store import ResponseStore
from opposable.web.gateway.responses import ResponseRecorder, record_stream
from opposable.web.middleware.authentication import CURRENT_CALLER
from opposable.web.openai_errors import GatewayError


async def create_message(
    model: Model, client: ClientRequest, signatures: CallSignatures, store: ResponseStore
) -> bytes:
    """Return the body of a whole message. The store has the threads of each API key.

    Raises:
        GatewayError: If the request is not valid.
        ModelError: If the model fails.
    """
    upstream = find_upstream(model, "messages")
    if upstream is not None:
        recorder = await _open_thread(upstream, client, store)
        raw = await fetch_raw(upstream, model, client)
        if recorder is not None:
            await recorder.record(raw)
        return drop_incomplete_calls(raw)
    request = _prepare(model, client, signatures)
    reply = await fetch_reply(model, request)
    signatures.save(reply.message, request.messages)
    return serialize_message(request.model, reply)


async def stream_message(
    model: Model, client: ClientRequest, signatures: CallSignatures, store: ResponseStore
) -> AsyncGenerator[bytes, None]:
    """Yield the events of a message. Raises: as `create_message`, before the first event."""
    upstream = find_upstream(model, "messages")
    if upstream is not None:
        recorder = await _open_thread(upstream, client, store)
        async with aclosing(hold_calls(record_stream(stream_raw(upstream, model, client), recorder))) as blocks:
            async for block in blocks:
                yield block
        return
    request = _prepare(model, client, signatures)
    serializer = MessageEventSerializer(request.model)
    async with aclosing(stream_reply(model, request)) as events:
        async for event in events:
            if isinstance(event, Reply):
                signatures.save(event.message, request.messages)
            if serialized := serializer.serialize(event):
                yield serialized


async def _open_thread(upstream: Upstream, client: ClientRequest, store: ResponseStore) -> ResponseRecorder | None:
    """Return the recorder of a reply in a thread of the server, None for a reply in none or without a stored key.

    Raises:
        GatewayError: 404, for a thread that is not one of this key.
    """
    thread, owner = client.body.get("thread"), CURRENT_CALLER.get().principal.key_id
    if not isinstance(thread, dict):
        return None
    if isinstance(previous_id := thread.get("previous_message_id"), str):
        try:
            await store.check_relayed(previous_id, owner, upstream.url, param="thread")
        except GatewayError as error:
            message = "There is no such thread of this API key. Send the whole conversation in a new one."
            raise build_thread_error(404, message, error_code="thread_not_found") from error
    return ResponseRecorder(store, owner, parse_model_name(client.body), upstream.url) if owner else None


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
