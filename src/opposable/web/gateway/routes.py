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
from opposable.web.gateway.completions import answer
from opposable.web.gateway.openapi_docs import CHAT, HEALTH, MODEL, MODELS
from opposable.web.gateway.request import ChatRequest, read_request
from opposable.web.gateway.response import Chunks, completion, model_entry
from opposable.web.middleware.authentication import body_of
from opposable.web.openai_errors import WireError, translated
from opposable.web.sse import EventStream, Gone, while_there

CLIENT_LEFT = Response(status_code=499)
"""For the log alone: nobody is there to read it."""


def gateway(models: Mapping[str, Model], largest_body: int) -> APIRouter:
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
            raise WireError(404, said, param="model", code="model_not_found")
        return model

    async def chat(request: Request) -> Response:
        try:
            asked = read_request(await body_of(request, largest_body))
            model = named(asked.model)
            if asked.options.stream:
                return EventStream(events(model, asked), translated)
            raw = await while_there(request.receive, whole(model, asked))
        except (ClientDisconnect, Gone):
            return CLIENT_LEFT
        except Exception as error:  # noqa: BLE001 - every error is told in the client's own format
            return translated(error).response()
        return Response(raw, media_type="application/json")

    async def list_models() -> Response:
        return _json({"object": "list", "data": [model_entry(name, created) for name in listed]})

    async def one_model(request: Request) -> Response:
        name = request.path_params["name"]
        named(name)
        return _json(model_entry(name, created))

    async def health() -> Response:
        return _json({"status": "ok"})

    router.add_api_route("/v1/chat/completions", chat, methods=["POST"], openapi_extra=CHAT)
    router.add_api_route("/v1/models", list_models, methods=["GET"], openapi_extra=MODELS)
    router.add_api_route("/v1/models/{name:path}", one_model, methods=["GET"], openapi_extra=MODEL)
    router.add_api_route("/healthz", health, methods=["GET"], openapi_extra=HEALTH)
    return router


async def whole(model: Model, request: ChatRequest) -> bytes:
    """The answer in one piece. Raises: `ModelError` kinds."""
    async with aclosing(answer(model, request)) as parts:
        async for part in parts:
            if type(part) is Reply:
                return completion(request.model, part)
    raise WireError(502, "The model gave no reply.", kind="server_error", code="model_failed")


async def events(model: Model, request: ChatRequest) -> AsyncGenerator[bytes, None]:
    """The answer in chunks, the first of them when the model begins. Raises: `ModelError` kinds."""
    chunks = Chunks(request.model, request.include_usage)
    opening = chunks.opening()
    async with aclosing(answer(model, request)) as parts:
        async for part in parts:
            if type(part) is TextDelta:
                yield opening + chunks.text(part.text)
            elif type(part) is ThinkingDelta:
                yield opening + chunks.thinking(part.text)
            elif type(part) is Reply:
                yield opening + chunks.calls(part.message.tool_calls) + chunks.ending(part)
            opening = b""


def _json(value: object) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")
