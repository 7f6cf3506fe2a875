"""Requests about stored responses: answered here, or relayed to the server that stores the response."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from opposable.domain.json_text import dump_json
from opposable.domain.records import StoredResponse
from opposable.models.http_client import HttpMethod
from opposable.models.upstream import ClientRequest
from opposable.web.api.dependencies import get_principal
from opposable.web.gateway.parameters import set_ignored_header
from opposable.web.gateway.response_store import ResponseStore, build_missing_error
from opposable.web.gateway.responses import ResponseRecorder, find_responses_upstream, list_input_items, record_stream
from opposable.web.gateway.served_models import ServedModels
from opposable.web.openai_errors import GatewayError, bad_request_error
from opposable.web.sse_response import SseResponse, run_while_connected

_PAGE_PARAMETERS = frozenset({"after", "limit", "order"})


class StoredResponses:
    """Answers requests about the responses of an API key.

    Args:
        store: The responses.
        served: The models, whose servers store responses too.
    """

    def __init__(self, store: ResponseStore, served: ServedModels) -> None:
        self._store = store
        self._served = served

    async def answer(
        self,
        request: Request,
        client: ClientRequest,
        method: HttpMethod,
        path: str,
        to_error: Callable[[Exception], GatewayError],
    ) -> Response:
        """Return the answer to a request.

        Args:
            request: The request, with the id of the response in its path.
            client: The headers and the query of the request.
            method: The method.
            path: What follows the id in the path.
            to_error: Maps an error of a stream to the format of the API.

        Raises:
            GatewayError: If the key has no such response, or the request is not valid.
            ModelError: If the server fails.
            StoreError: If the store fails.
        """
        stored = await self._store.load(request.path_params["response_id"], get_principal(request).key_id)
        if stored.body is None:
            response = await self._relay(stored, request, client, method, path, to_error)
        else:
            content = dump_json(_answer_here(stored, method, path, request.query_params, client))
            response = Response(content, headers=client.response_headers, media_type="application/json")
        if method == "DELETE":
            await self._store.delete(stored.response_id)
        return response

    async def _relay(
        self,
        stored: StoredResponse,
        request: Request,
        client: ClientRequest,
        method: HttpMethod,
        path: str,
        to_error: Callable[[Exception], GatewayError],
    ) -> Response:
        upstream = find_responses_upstream(await self._served.find(stored.model, request), stored.url)
        if upstream is None:
            raise build_missing_error(stored.response_id, "response_id")
        recorder = ResponseRecorder(self._store, stored.owner, stored.model, stored.url)
        below = f"/{quote(stored.response_id, safe='')}{path}"
        if method == "GET" and request.query_params.get("stream") == "true":
            events = record_stream(upstream.stream(client, "GET", below), recorder)
            return SseResponse(events, to_error, headers=client.response_headers)
        content = await run_while_connected(request.receive, upstream.send(client, method, below))
        if method == "GET":
            await recorder.record(content)
        return Response(content, headers=client.response_headers, media_type="application/json")


def _answer_here(
    stored: StoredResponse, method: HttpMethod, path: str, query: QueryParams, client: ClientRequest
) -> dict[str, Any]:
    """Return the answer about a response that the gateway stores.

    Raises:
        GatewayError: 400, if a complete response cannot do that.
    """
    if path == "/cancel":
        message = f"The response {stored.response_id} is complete. Only responses in the background can be cancelled."
        raise bad_request_error("response_id", message)
    if method == "DELETE":
        return {"id": stored.response_id, "object": "response", "deleted": True}
    if query.get("stream") == "true":
        raise bad_request_error("stream", "This response is complete and cannot be streamed. Remove stream.")
    ignored = query.keys() - _PAGE_PARAMETERS if path else query.keys()
    set_ignored_header(client, sorted(ignored))
    return list_input_items(stored.items, query) if path else stored.body or {}
