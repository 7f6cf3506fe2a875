"""The OpenAI-compatible routes: chat completions, models, health."""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import orjson
from fastapi import APIRouter
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from opposable.domain.events import Reply, TextDelta, ThinkingDelta
from opposable.models.base import Model
from opposable.web.gateway.completions import stream_reply
from opposable.web.gateway.openapi_docs import CHAT_COMPLETIONS_DOCS, GET_MODEL_DOCS, HEALTH_DOCS, LIST_MODELS_DOCS
from opposable.web.gateway.relay import CompletionRelay, find_relay
from opposable.web.gateway.request import parse_body, parse_json_object, parse_model_name, read_json_body
from opposable.web.gateway.response import ChunkSerializer, serialize_completion, serialize_model
from opposable.web.openai_errors import GatewayError, to_gateway_error
from opposable.web.sse import ClientDisconnected, EventStream, run_while_connected

CLIENT_CLOSED_REQUEST = Response(status_code=499)
"""Only logged: the client has disconnected."""


def create_gateway_router(models: Mapping[str, Model], max_body_bytes: int) -> APIRouter:
    """Create the routes of the gateway.

    Args:
        models: The models by the names that clients use. A model may have several names; the first one is listed.
        max_body_bytes: The largest accepted request body.
    """
    router = APIRouter()
    created = int(time.time())
    first_names: dict[int, str] = {}
    for model_name, served_model in models.items():
        first_names.setdefault(id(served_model), model_name)
    listed_names = list(first_names.values())

    def get_model_by_name(name: str) -> Model:
        model = models.get(name)
        if model is None:
            message = f"There is no model {name[:200]!r}. Available models: {', '.join(models)}."
            raise GatewayError(404, message, param="model", code="model_not_found")
        return model

    async def create_chat_completion(request: Request) -> Response:
        try:
            request_body = parse_json_object(await read_json_body(request, max_body_bytes))
            model = get_model_by_name(parse_model_name(request_body))
            if request_body.get("stream") is True:
                return EventStream(stream_completion(model, request_body), to_gateway_error)
            body = await run_while_connected(request.receive, create_completion(model, request_body))
        except (ClientDisconnect, ClientDisconnected):
            return CLIENT_CLOSED_REQUEST
        except Exception as error:  # noqa: BLE001 - every error is sent in the format of OpenAI
            return to_gateway_error(error).to_response()
        return Response(body, media_type="application/json")

    async def list_models() -> Response:
        return _json_response({"object": "list", "data": [serialize_model(name, created) for name in listed_names]})

    async def get_model(request: Request) -> Response:
        name = request.path_params["name"]
        get_model_by_name(name)
        return _json_response(serialize_model(name, created))

    async def get_health() -> Response:
        return _json_response({"status": "ok"})

    router.add_api_route(
        "/v1/chat/completions", create_chat_completion, methods=["POST"], openapi_extra=CHAT_COMPLETIONS_DOCS
    )
    router.add_api_route("/v1/models", list_models, methods=["GET"], openapi_extra=LIST_MODELS_DOCS)
    router.add_api_route("/v1/models/{name:path}", get_model, methods=["GET"], openapi_extra=GET_MODEL_DOCS)
    router.add_api_route("/healthz", get_health, methods=["GET"], openapi_extra=HEALTH_DOCS)
    return router


async def create_completion(model: Model, body: Mapping[str, Any]) -> bytes:
    """Return the body of a whole completion.

    Raises:
        GatewayError: If the request is not valid.
        ModelError: If the model fails.
    """
    upstream = find_relay(model, body)
    if upstream is not None:
        return await CompletionRelay(upstream, model, body).fetch()
    request = parse_body(body)
    async with aclosing(stream_reply(model, request)) as events:
        async for event in events:
            if type(event) is Reply:
                return serialize_completion(request.model, event)
    raise GatewayError(502, "The model returned no reply.", kind="server_error", code="model_failed")


async def stream_completion(model: Model, body: Mapping[str, Any]) -> AsyncGenerator[bytes, None]:
    """Yield a completion as server-sent events.

    The first event is sent when the model starts to reply.

    Raises:
        GatewayError: If the request is not valid.
        ModelError: If the model fails.
    """
    upstream = find_relay(model, body)
    if upstream is not None:
        async with aclosing(CompletionRelay(upstream, model, body).stream()) as blocks:
            async for block in blocks:
                yield block
        return
    request = parse_body(body)
    serializer = ChunkSerializer(request.model, request.include_usage)
    opening = serializer.serialize_opening()
    async with aclosing(stream_reply(model, request)) as events:
        async for event in events:
            if type(event) is TextDelta:
                yield opening + serializer.serialize_text(event.text)
            elif type(event) is ThinkingDelta:
                yield opening + serializer.serialize_thinking(event.text)
            elif type(event) is Reply:
                yield (
                    opening + serializer.serialize_calls(event.message.tool_calls) + serializer.serialize_ending(event)
                )
            opening = b""


def _json_response(value: object) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")
