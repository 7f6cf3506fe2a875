"""The routes of the gateway: chat completions, messages, responses, embeddings, completions, models, health."""

from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import partial
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import request_response

from opposable.models.base import Model
from opposable.models.http_client import HttpMethod
from opposable.models.upstream import ApiPath, ClientRequest, find_upstream
from opposable.service.service import Service
from opposable.web.api.dependencies import ApiRouter, get_principal
from opposable.web.api.serializers import json_response
from opposable.web.gateway import openapi_docs as docs
from opposable.web.gateway.call_signatures import CallSignatures
from opposable.web.gateway.chat_completions import create_completion, stream_completion
from opposable.web.gateway.fallbacks import Fetch, Stream, fetch_first, stream_first
from opposable.web.gateway.messages import count_tokens, create_message, stream_message
from opposable.web.gateway.messages_response import format_error_event
from opposable.web.gateway.raw_relay import fetch_raw, stream_raw
from opposable.web.gateway.request import parse_json_object, parse_model_name, read_json_body
from opposable.web.gateway.response_store import ResponseStore
from opposable.web.gateway.responses import ResponsesApi
from opposable.web.gateway.served_models import ServedModels
from opposable.web.gateway.stored_responses import StoredResponses
from opposable.web.openai_errors import GatewayError, bad_request_error, to_gateway_error, to_messages_error
from opposable.web.sse_response import CLIENT_CLOSED_REQUEST, ClientDisconnected, SseResponse, run_while_connected

RELAYED_HEADERS = frozenset({"openai-beta", "idempotency-key", "x-client-request-id"})
"""Headers of the client that reach a server with the same API, like all of Anthropic's but a key."""

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
ToError = Callable[[Exception], GatewayError]


class DirectRoute(APIRoute):
    """A documented route whose handler takes the request as it is, without the dependency injection of FastAPI."""

    def __init__(self, path: str, endpoint: Handler, *, methods: list[str], **options: Any) -> None:
        super().__init__(
            path, endpoint, methods=methods, generate_unique_id_function=lambda route: route.name, **options
        )
        self.app = request_response(endpoint)


def create_gateway_routes(
    models: Mapping[str, Model],
    max_body_bytes: int,
    service: Service | None = None,
    allowed_models: Mapping[str, Collection[str]] | None = None,
) -> list[DirectRoute]:
    """Create the routes of the gateway.

    Args:
        models: The models by the names that clients use. A model may have several names; the first one is listed.
        max_body_bytes: The largest accepted request body.
        service: The service whose agents are models too, and which stores responses; None for models alone.
        allowed_models: The models that an API key may use, by the name of the key. Other keys may use all.
    """
    served = ServedModels(models, service, allowed_models or {})
    responses = ResponseStore(service.store.responses if service is not None else None)
    stored_responses = StoredResponses(responses, served)
    signatures = CallSignatures()

    async def answer(
        request: Request, fetch: Fetch, stream: Stream | None, to_error: ToError, **options: Any
    ) -> Response:
        """Answer a request, streamed with these options if it asks for that; errors have the format of the API."""
        client = _build_client_request(request)
        to_client_error = partial(_to_client_error, client, to_error)
        try:
            client.body.update(parse_json_object(await read_json_body(request, max_body_bytes)))
            model = await served.find(parse_model_name(client.body), request)
            if stream is not None and client.body.get("stream") is True:
                events = stream_first(model, client, stream)
                return SseResponse(events, to_client_error, headers=client.response_headers, **options)
            content = await run_while_connected(request.receive, fetch_first(model, client, fetch))
        except (ClientDisconnect, ClientDisconnected):
            return CLIENT_CLOSED_REQUEST
        except Exception as error:  # noqa: BLE001 - every error is sent in the format of the API
            return to_client_error(error).to_response()
        return Response(content, headers=client.response_headers, media_type="application/json")

    async def create_chat_completion(request: Request) -> Response:
        fetch = partial(create_completion, signatures=signatures)
        stream = partial(stream_completion, signatures=signatures)
        return await answer(request, fetch, stream, to_gateway_error)

    async def create_anthropic_message(request: Request) -> Response:
        fetch = partial(create_message, signatures=signatures, store=responses)
        stream = partial(stream_message, signatures=signatures, store=responses)
        return await answer(request, fetch, stream, to_messages_error, format_error=format_error_event)

    async def count_message_tokens(request: Request) -> Response:
        return await answer(request, count_tokens, None, to_messages_error)

    def get_responses_api(request: Request) -> ResponsesApi:
        return ResponsesApi(responses, get_principal(request).key_id, signatures)

    async def create_openai_response(request: Request) -> Response:
        api = get_responses_api(request)
        return await answer(request, api.create, api.stream, to_gateway_error)

    async def count_response_tokens(request: Request) -> Response:
        return await answer(request, get_responses_api(request).count_input_tokens, None, to_gateway_error)

    async def compact_openai_response(request: Request) -> Response:
        return await answer(request, get_responses_api(request).compact, None, to_gateway_error)

    async def answer_stored(request: Request, method: HttpMethod, path: str = "") -> Response:
        client = _build_client_request(request)
        to_client_error = partial(_to_client_error, client, to_gateway_error)
        try:
            return await stored_responses.answer(request, client, method, path, to_client_error)
        except ClientDisconnected:
            return CLIENT_CLOSED_REQUEST
        except Exception as error:  # noqa: BLE001 - every error is sent in the format of the API
            return to_client_error(error).to_response()

    async def get_response(request: Request) -> Response:
        return await answer_stored(request, "GET")

    async def delete_response(request: Request) -> Response:
        return await answer_stored(request, "DELETE")

    async def list_input_items(request: Request) -> Response:
        return await answer_stored(request, "GET", "/input_items")

    async def cancel_response(request: Request) -> Response:
        return await answer_stored(request, "POST", "/cancel")

    async def create_embeddings(request: Request) -> Response:
        return await answer(request, partial(_relay, "embeddings"), None, to_gateway_error)

    async def create_text_completion(request: Request) -> Response:
        stream: Stream = lambda model, client: stream_raw(_require_api(model, "completions"), model, client)  # noqa: E731
        return await answer(request, partial(_relay, "completions"), stream, to_gateway_error)

    async def list_models(request: Request) -> Response:
        entries = await served.list(request)
        ends = {"first_id": entries[0]["id"], "last_id": entries[-1]["id"]} if entries else {}
        return json_response({"object": "list", "data": entries, "has_more": False, **ends})

    async def get_model(request: Request) -> Response:
        name = request.path_params["name"]
        await served.find(name, request)
        return json_response(served.serialize(name))

    routes: list[tuple[str, str, Handler, dict[str, Any]]] = [
        ("POST", "/v1/chat/completions", create_chat_completion, docs.CHAT_COMPLETIONS_DOCS),
        ("POST", "/v1/messages", create_anthropic_message, docs.MESSAGES_DOCS),
        ("POST", "/v1/messages/count_tokens", count_message_tokens, docs.COUNT_TOKENS_DOCS),
        ("POST", "/v1/responses", create_openai_response, docs.RESPONSES_DOCS),
        ("POST", "/v1/responses/input_tokens", count_response_tokens, docs.INPUT_TOKENS_DOCS),
        ("POST", "/v1/responses/compact", compact_openai_response, docs.COMPACT_DOCS),
        ("GET", "/v1/responses/{response_id}", get_response, docs.GET_RESPONSE_DOCS),
        ("DELETE", "/v1/responses/{response_id}", delete_response, docs.DELETE_RESPONSE_DOCS),
        ("GET", "/v1/responses/{response_id}/input_items", list_input_items, docs.INPUT_ITEMS_DOCS),
        ("POST", "/v1/responses/{response_id}/cancel", cancel_response, docs.CANCEL_RESPONSE_DOCS),
        ("POST", "/v1/embeddings", create_embeddings, docs.EMBEDDINGS_DOCS),
        ("POST", "/v1/completions", create_text_completion, docs.COMPLETIONS_DOCS),
        ("GET", "/v1/models", list_models, docs.LIST_MODELS_DOCS),
        ("GET", "/v1/models/{name:path}", get_model, docs.GET_MODEL_DOCS),
    ]
    return [
        DirectRoute(path, handler, methods=[method], openapi_extra=openapi_extra, name=handler.__name__)
        for method, path, handler, openapi_extra in routes
    ]


HEALTH_ROUTER = ApiRouter()
"""The route of the liveness check."""


@HEALTH_ROUTER.head("/healthz", include_in_schema=False)
@HEALTH_ROUTER.get("/healthz", openapi_extra=docs.HEALTH_DOCS)
async def get_health() -> Response:
    """Return that the server runs."""
    return json_response({"status": "ok"})


def _to_client_error(client: ClientRequest, to_error: ToError, error: Exception) -> GatewayError:
    """Return the error in the format of the API, with the headers of the model's server."""
    converted = to_error(error)
    converted.headers = {**client.response_headers, **(converted.headers or {})}
    return converted


async def _relay(path: ApiPath, model: Model, client: ClientRequest) -> bytes:
    return await fetch_raw(_require_api(model, path), model, client)


def _require_api(model: Model, path: ApiPath) -> Any:
    """Return the API of the model's server.

    Raises:
        GatewayError: 400, if the model has no server with this API.
    """
    upstream = find_upstream(model, path)
    if upstream is None:
        raise bad_request_error("model", f"The model {model.name} does not support {path}.", "unsupported_api")
    return upstream


def _build_client_request(request: Request) -> ClientRequest:
    """Return the headers and the query of a request, without its body."""
    headers = {
        name: value
        for name, value in request.headers.items()
        if name in RELAYED_HEADERS or (name.startswith("anthropic-") and not name.endswith("-key"))
    }
    return ClientRequest({}, headers, request.scope["query_string"].decode("latin-1"))
