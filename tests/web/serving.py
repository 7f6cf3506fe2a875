"""The application on a real server on localhost."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import uvicorn
from starlette.types import ASGIApp

from opposable.domain.events import Reply, TextDelta
from opposable.domain.messages import assistant_message
from opposable.models.base import Model
from opposable.web.server import create_app


@asynccontextmanager
async def serve_models(models: Model | Mapping[str, Model], **options) -> AsyncIterator[str]:
    """Its base URL, for as long as the block lasts. A single model is called `m`, and closed at the end."""
    async with AsyncExitStack() as stack:
        if not isinstance(models, Mapping):
            models = {"m": await stack.enter_async_context(aclosing(models))}
        yield f"{await stack.enter_async_context(serve_app(create_app(models, **options)))}/v1"


@asynccontextmanager
async def serve_app(app: ASGIApp, log_level: str = "warning") -> AsyncIterator[str]:
    """The URL of an application, for as long as the block lasts."""
    config = uvicorn.Config(app, log_level=log_level, access_log=False, ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    task = asyncio.create_task(server.serve([listening]))
    try:
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.005)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


class SlowModel:
    """Writes `a` every `pause` seconds, and has events for the start and the end of its stream."""

    name = "slow"

    def __init__(self, pause, pieces=1000):
        self.pause = pause
        self.pieces = pieces
        self.begun = asyncio.Event()
        self.closed = asyncio.Event()

    async def stream(self, messages, tools=(), options=None):
        self.begun.set()
        try:
            for _ in range(self.pieces):
                await asyncio.sleep(self.pause)
                if options.stream:
                    yield TextDelta("a")
            yield Reply(assistant_message("a" * self.pieces))
        finally:
            self.closed.set()

    async def aclose(self):
        pass
