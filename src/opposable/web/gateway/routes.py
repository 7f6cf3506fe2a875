"""The OpenAI-compatible routes: chat completions, models, health."""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

import orjson
from fastapi import APIRouter
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from opposable.domain.events import Reply, TextDelta, ThinkingDelta
from opposable.models.base import Model
from opposable.web.gateway.completions import stream_reply
from opposable.web.gateway.openapi_docs import CHAT_COMPLETIONS_DOCS, GET_MODEL_DOCS, HEALTH_DOCS, LIST_MODELS_DOCS
from opposable.web.gateway.request import CompletionRequest, parse_request, read_json_body
from opposable.web.gateway.response import ChunkSerializer, serialize_completion, serialize_model
from opposable.web.openai_errors import GatewayError, to_gateway_error
from opposable.web.sse import ClientDisconnected, EventStream, run_while_connected

CLIENT_CLOSED_REQUEST = Response(status_code=499)
"""For the log alone: nobody is there to read it."""


def create_gateway_router(models: Mapping[str, Model], max_body_bytes: int) -> APIRouter:
    """The routes in front of `models`, by the names that clients call them.

    A model may have several names; the first is the one that is listed. `largest_body` is in bytes.
    """
    router = APIRouter()
    created = int(time.time())
    listed = [name for n, (name, model) in enumerate(models.items()) if model not in list(models.values())[:n]]

    def named(name: str) -> Model:
        model = models.get(name)
        if model is None:
            said = f"There is no model {name[:200]!r}; the models are: {', '.join(models)}."
            raise GatewayError(404, said, param="model", code="model_not_found")
        return model

    async def chat(request: Request) -> Response:
        try:
            asked = parse_request(await read_json_body(request, max_body_bytes))
            model = named(asked.model)
            if asked.options.stream:
                return EventStream(stream_completion(model, asked), to_gateway_error)
            raw = await run_while_connected(request.receive, create_completion(model, asked))
        except (ClientDisconnect, ClientDisconnected):
            return CLIENT_CLOSED_REQUEST
        except Exception as error:  # noqa: BLE001 - every error is told in the client's own format
            return to_gateway_error(error).to_response()
        return Response(raw, media_type="application/json")

    async def list_models() -> Response:
        return _json_response({"object": "list", "data": [serialize_model(name, created) for name in listed]})

    async def one_model(request: Request) -> Response:
        name = request.path_params["name"]
        named(name)
        return _json_response(serialize_model(name, created))

    async def health() -> Response:
        return _json_response({"status": "ok"})

    router.add_api_route("/v1/chat/completions", chat, methods=["POST"], openapi_extra=CHAT_COMPLETIONS_DOCS)
    router.add_api_route("/v1/models", list_models, methods=["GET"], openapi_extra=LIST_MODELS_DOCS)
    router.add_api_route("/v1/models/{name:path}", one_model, methods=["GET"], openapi_extra=GET_MODEL_DOCS)
    router.add_api_route("/healthz", health, methods=["GET"], openapi_extra=HEALTH_DOCS)
    return router


async def create_completion(model: Model, request: CompletionRequest) -> bytes:
    """The answer in one piece. Raises: `ModelError` kinds."""
    async with aclosing(stream_reply(model, request)) as parts:
        async for part in parts:
            if type(part) is Reply:
                return serialize_completion(request.model, part)
    raise GatewayError(502, "The model gave no reply.", kind="server_error", code="model_failed")


async def stream_completion(model: Model, request: CompletionRequest) -> AsyncGenerator[bytes, None]:
    """The answer in chunks, the first of them when the model begins. Raises: `ModelError` kinds."""
    chunks = ChunkSerializer(request.model, request.include_usage)
    opening = chunks.serialize_opening()
    async with aclosing(stream_reply(model, request)) as parts:
        async for part in parts:
            if type(part) is TextDelta:
                yield opening + chunks.serialize_text(part.text)
            elif type(part) is ThinkingDelta:
                yield opening + chunks.serialize_thinking(part.text)
            elif type(part) is Reply:
                yield opening + chunks.serialize_calls(part.message.tool_calls) + chunks.serialize_ending(part)
            opening = b""


def _json_response(value: object) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")
