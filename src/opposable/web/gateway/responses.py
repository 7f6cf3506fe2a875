"""Responses of OpenAI's API: relayed to a server that has it, or made from the reply of any model."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from opposable.domain.events import Reply
from opposable.domain.json_text import dump_json
from opposable.models.base import Model
from opposable.models.fallback import FallbackModel
from opposable.models.profile import get_profile
from opposable.models.upstream import ClientRequest, Upstream, find_upstream
from opposable.web.gateway.completions import fetch_reply, stream_reply
from opposable.web.gateway.parameters import report_ignored_parameters
from opposable.web.gateway.raw_relay import fetch_raw, read_response_id, stream_raw
from opposable.web.gateway.request import parse_model_name
from opposable.web.gateway.response_store import ResponseStore, build_missing_error
from opposable.web.gateway.responses_request import ResponseRequest, parse_response_request
from opposable.web.gateway.responses_response import ResponseSerializer
from opposable.web.openai_errors import bad_request_error


async def create_response(model: Model, client: ClientRequest, store: ResponseStore, owner: str) -> bytes:
    """Return the body of a whole response.

    Raises:
        GatewayError: If the request is not valid.
        ModelError: If the model fails.
        StoreError: If the store fails.
    """
    upstream = find_relay(model)
    if upstream is not None:
        await _check_continuation(client, upstream, store, owner)
        raw = await fetch_raw(upstream, model, client)
        await _save_relayed(raw, client, upstream, store, owner)
        return raw
    request = await _prepare(model, client, store, owner)
    serializer = ResponseSerializer(request)
    response = serializer.build_response(await fetch_reply(model, request.completion))
    await _save(request, response, store, owner)
    return dump_json(response)


async def stream_response(
    model: Model, client: ClientRequest, store: ResponseStore, owner: str
) -> AsyncGenerator[bytes, None]:
    """Yield the events of a response. Raises: as `create_response`, before the first event."""
    upstream = find_relay(model)
    if upstream is not None:
        await _check_continuation(client, upstream, store, owner)
        is_saved = False
        async with aclosing(stream_raw(upstream, model, client)) as blocks:
            async for block in blocks:
                is_saved = is_saved or await _save_relayed(block, client, upstream, store, owner)
                yield block
        return
    request = await _prepare(model, client, store, owner)
    serializer = ResponseSerializer(request)
    is_started = False
    try:
        async with aclosing(stream_reply(model, request.completion)) as events:
            async for event in events:
                serialized = serializer.serialize(event)
                if isinstance(event, Reply):
                    await _save(request, serializer.response, store, owner)
                if serialized:
                    is_started = True
                    yield serialized
    except Exception as error:
        if not is_started:
            raise
        yield serializer.serialize_error(error)


def find_relay(model: Model, url: str = "") -> Upstream | None:
    """Return the server of a natively calling model, if it has this API, at this URL if one is given."""
    if isinstance(model, FallbackModel):
        return next(filter(None, (find_relay(candidate, url) for candidate in model.candidates)), None)
    upstream = find_upstream(model, "responses")
    is_relayed = upstream is not None and get_profile(model).calling == "native" and url in ("", upstream.url)
    return upstream if is_relayed else None


async def _prepare(model: Model, client: ClientRequest, store: ResponseStore, owner: str) -> ResponseRequest:
    """Return the request, with the items of the response that it continues."""
    request = parse_response_request(client.body)
    if request.previous_response_id:
        stored = await store.load(request.previous_response_id, owner, param="previous_response_id")
        if stored.body is None:
            raise build_missing_error(stored.response_id, "previous_response_id")
        request = parse_response_request(client.body, (*stored.items, *stored.body["output"]))
    report_ignored_parameters(client, model, request.completion.hints, *request.completion.ignored)
    return request


async def _check_continuation(client: ClientRequest, upstream: Upstream, store: ResponseStore, owner: str) -> None:
    """Check that the key may continue the previous response of a relayed request."""
    previous_id = client.body.get("previous_response_id")
    if isinstance(previous_id, str) and previous_id:
        await store.check_relayed(previous_id, owner, upstream.url)


async def _save_relayed(
    raw: bytes, client: ClientRequest, upstream: Upstream, store: ResponseStore, owner: str
) -> bool:
    """Store which key created a response that the server stores; return whether `raw` has its id."""
    if client.body.get("store") is False:
        return True
    response_id = read_response_id(raw)
    if response_id:
        await store.save(response_id, owner, parse_model_name(client.body), url=upstream.url)
    return bool(response_id)


async def _save(request: ResponseRequest, response: dict[str, Any], store: ResponseStore, owner: str) -> None:
    if request.is_stored:
        await store.save(response["id"], owner, request.completion.model, items=request.items, body=response)


def list_input_items(items: Sequence[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the page of items that a query asks for.

    Raises:
        GatewayError: 400, with the parameter that is not valid.
    """
    if query.get("order", "desc") not in ("asc", "desc"):
        raise bad_request_error("order", "order must be asc or desc.")
    limit = query.get("limit", "20")
    if not limit.isdecimal() or not 1 <= int(limit) <= 100:
        raise bad_request_error("limit", "limit must be a number from 1 to 100.")
    ordered = list(items) if query.get("order") == "asc" else list(reversed(items))
    if after := query.get("after"):
        ids = [item["id"] for item in ordered]
        if after not in ids:
            raise bad_request_error("after", f"There is no item {after[:100]!r} in this response.")
        ordered = ordered[ids.index(after) + 1 :]
    page = ordered[: int(limit)]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(page) < len(ordered),
    }
