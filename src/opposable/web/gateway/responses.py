"""Responses of OpenAI's API: relayed to a server that has it, or made from the reply of any model."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

from opposable.agent.request_size import estimate_prompt_tokens
from opposable.domain.events import Reply
from opposable.domain.json_text import dump_json
from opposable.models.base import Model
from opposable.models.fallback import FallbackModel
from opposable.models.profile import get_profile
from opposable.models.upstream import ClientRequest, Upstream, find_upstream
from opposable.web.gateway.call_signatures import CallSignatures
from opposable.web.gateway.completions import fetch_reply, stream_reply
from opposable.web.gateway.parameters import report_ignored_parameters
from opposable.web.gateway.raw_relay import drop_incomplete_calls, fetch_raw, hold_calls, read_ids, stream_raw
from opposable.web.gateway.request import parse_model_name
from opposable.web.gateway.response_store import ResponseStore, build_missing_error
from opposable.web.gateway.responses_request import ResponseRequest, parse_response_request
from opposable.web.gateway.responses_response import ResponseSerializer
from opposable.web.openai_errors import bad_request_error

_REFERENCE_FIELDS = frozenset({"type", "id", "status", "summary"})
"""The fields of an item that the server completes from its id."""


class ResponsesApi:
    """The responses of one API key.

    Args:
        store: Stores the responses.
        owner: The id of the API key, "" for none.
        signatures: What only the servers of earlier replies understand.
    """

    def __init__(self, store: ResponseStore, owner: str, signatures: CallSignatures) -> None:
        self._store = store
        self._owner = owner
        self._signatures = signatures

    async def create(self, model: Model, client: ClientRequest) -> bytes:
        """Return the body of a whole response.

        Raises:
            GatewayError: If the request is not valid.
            ModelError: If the model fails.
            StoreError: If the store fails.
        """
        upstream = find_responses_upstream(model)
        if upstream is not None:
            return drop_incomplete_calls(await self._fetch_relayed(upstream, model, client))
        request = await self._prepare(model, client)
        serializer = ResponseSerializer(request)
        reply = await fetch_reply(model, request.completion)
        self._signatures.save(reply.message, request.completion.messages)
        response = serializer.build_response(reply)
        await self._save(request, response)
        return dump_json(response)

    async def stream(self, model: Model, client: ClientRequest) -> AsyncGenerator[bytes, None]:
        """Yield the events of a response. Raises: as `create`, before the first event."""
        upstream = find_responses_upstream(model)
        if upstream is not None:
            await self._check_references(upstream, client)
            recorder = self._create_recorder(upstream, client)
            async with aclosing(hold_calls(record_stream(stream_raw(upstream, model, client), recorder))) as blocks:
                async for block in blocks:
                    yield block
            return
        request = await self._prepare(model, client)
        serializer = ResponseSerializer(request)
        is_started = False
        try:
            async with aclosing(stream_reply(model, request.completion)) as events:
                async for event in events:
                    serialized = serializer.serialize(event)
                    if isinstance(event, Reply):
                        self._signatures.save(event.message, request.completion.messages)
                        await self._save(request, serializer.response)
                    if serialized:
                        is_started = True
                        yield serialized
        except Exception as error:
            if not is_started:
                raise
            yield serializer.serialize_error(error)

    async def compact(self, model: Model, client: ClientRequest) -> bytes:
        """Return a conversation as the server of a model compacts it.

        Raises: as `create`; `GatewayError` 400 for a model without a server that has the API.
        """
        upstream = find_responses_upstream(model)
        if upstream is None:
            message = (
                f"The model {model.name} cannot compact a conversation: its server has no responses API. Send it whole."
            )
            raise bad_request_error("model", message, "unsupported_api")
        return await self._fetch_relayed(upstream, model, client, "/compact")

    async def count_input_tokens(self, model: Model, client: ClientRequest) -> bytes:
        """Return the number of input tokens: of the server that has this API, else an estimate.

        Raises: as `create`.
        """
        upstream = find_responses_upstream(model)
        if upstream is not None:
            return await self._fetch_relayed(upstream, model, client, "/input_tokens")
        completion = (await self._prepare(model, client)).completion
        tokens = estimate_prompt_tokens(completion.messages, completion.tools)
        return dump_json({"object": "response.input_tokens", "input_tokens": tokens})

    async def _prepare(self, model: Model, client: ClientRequest) -> ResponseRequest:
        """Return the request, with the items of the response that it continues and those that it refers to."""
        body = await self._resolve_references(client.body)
        request = parse_response_request(body)
        if request.previous_response_id:
            stored = await self._store.load(request.previous_response_id, self._owner, param="previous_response_id")
            if stored.body is None:
                raise build_missing_error(stored.response_id, "previous_response_id")
            request = parse_response_request(body, (*stored.items, *stored.body["output"]))
        completion = request.completion
        report_ignored_parameters(client, model, completion.hints, *completion.ignored)
        messages = self._signatures.restore(completion.messages)
        return replace(request, completion=replace(completion, messages=messages))

    async def _resolve_references(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body with the stored items in place of the references to them."""
        items = body.get("input")
        if not isinstance(items, list) or not any(map(_is_reference, items)):
            return body
        resolved = [
            await self._store.load_item(item["id"], self._owner, param=f"input[{index}]")
            if _is_reference(item)
            else item
            for index, item in enumerate(items)
        ]
        return {**body, "input": resolved}

    async def _save(self, request: ResponseRequest, response: dict[str, Any]) -> None:
        if request.is_stored:
            model, items = request.completion.model, request.items
            await self._store.save(response["id"], self._owner, model, items=items, body=response)

    async def _fetch_relayed(self, upstream: Upstream, model: Model, client: ClientRequest, path: str = "") -> bytes:
        """Return the response of the server to a request to the API, or to a path below it."""
        await self._check_references(upstream, client)
        target = replace(upstream, url=f"{upstream.url}{path}", defaults={}, max_tokens_key="") if path else upstream
        raw = await fetch_raw(target, model, client)
        recorder = self._create_recorder(upstream, client)
        if recorder is not None:
            await recorder.record(raw)
        return raw

    def _create_recorder(self, upstream: Upstream, client: ClientRequest) -> "ResponseRecorder | None":
        """Return the recorder of a new response, None if its server does not store it."""
        if client.body.get("store") is False:
            return None
        return ResponseRecorder(self._store, self._owner, parse_model_name(client.body), upstream.url)

    async def _check_references(self, upstream: Upstream, client: ClientRequest) -> None:
        """Check that the key may use the previous response, the conversation and the items of a relayed request."""
        check = partial(self._store.check_relayed, owner=self._owner, url=upstream.url)
        previous_id = client.body.get("previous_response_id")
        if isinstance(previous_id, str) and previous_id:
            await check(previous_id, param="previous_response_id")
        conversation = client.body.get("conversation")
        conversation_id = conversation.get("id") if isinstance(conversation, dict) else conversation
        if isinstance(conversation_id, str):
            # It may have been created elsewhere.
            await check(conversation_id, param="conversation", allows_unknown=True)
        items = client.body.get("input")
        for index, item in enumerate(items if isinstance(items, list) else ()):
            if not isinstance(item, dict) or not isinstance(item.get("id"), str):
                continue
            is_reference = _is_reference(item)
            if is_reference or not any(value for key, value in item.items() if key not in _REFERENCE_FIELDS):
                # Reasoning may come from another server.
                await check(item["id"], param=f"input[{index}]", allows_unknown=not is_reference)


def find_responses_upstream(model: Model, url: str = "") -> Upstream | None:
    """Return the server of a natively calling model, if it has this API, at this URL if one is given."""
    if isinstance(model, FallbackModel):
        return next(filter(None, (find_responses_upstream(candidate, url) for candidate in model.candidates)), None)
    upstream = find_upstream(model, "responses")
    is_native = get_profile(model).calling in ("native", "auto")
    return upstream if is_native and upstream is not None and url in ("", upstream.url) else None


def _is_reference(item: Any) -> bool:
    """Return whether an item of an input is a reference to a stored one."""
    is_named = isinstance(item, dict) and isinstance(item.get("id"), str)
    return is_named and item.get("type") in (None, "item_reference") and not item.get("role")


class ResponseRecorder:
    """Records which key created a response that the server of a model stores, and its items.

    Args:
        store: The responses.
        owner: The id of the API key, "" for none: then the items need no record.
        model: The name of the model in the request.
        url: The URL of the API.
    """

    def __init__(self, store: ResponseStore, owner: str, model: str, url: str) -> None:
        self._store = store
        self._owner = owner
        self._model = model
        self._url = url
        self._ids: set[str] = set()

    async def record(self, raw: bytes) -> None:
        """Record the ids in a body, or in events."""
        if self._ids and (not self._owner or b"response.output_item.done" not in raw):
            return
        ids = [one for one in dict.fromkeys(read_ids(raw)) if one not in self._ids]
        if ids:
            self._ids.update(ids)
            await self._store.save_relayed(ids if self._owner else ids[:1], self._owner, self._model, self._url)


async def record_stream(
    blocks: AsyncGenerator[bytes, None], recorder: ResponseRecorder | None
) -> AsyncGenerator[bytes, None]:
    """Yield the events of a response, and record its ids."""
    async with aclosing(blocks):
        async for block in blocks:
            if recorder is not None:
                await recorder.record(block)
            yield block


def list_input_items(items: Sequence[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the page of items that a query asks for.

    Raises:
        GatewayError: 400, with the parameter that is not valid.
    """
    if query.get("order", "desc") not in ("asc", "desc"):
        raise bad_request_error("order", "order must be asc or desc.")
    limit = query.get("limit", "20")
    if not re.fullmatch(r"[1-9][0-9]?|100", limit):
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
