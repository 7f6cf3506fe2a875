"""The application on a real server on localhost."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

from starlette.types import ASGIApp

from opposable.domain.events import Reply, TextDelta
from opposable.domain.messages import assistant_message
from opposable.models.base import Model
from opposable.web.http_server import serve_in_background
from opposable.web.server import create_app


@asynccontextmanager
async def serve_models(models: Model | Mapping[str, Model], **options) -> AsyncIterator[str]:
    """Its base URL, for as long as the block lasts. A single model is called `m`, and closed at the end."""
    async with AsyncExitStack() as stack:
        if not isinstance(models, Mapping):
            models = {"m": await stack.enter_async_context(aclosing(models))}
        yield await stack.enter_async_context(serve_in_background(create_app(models, **options)))


@asynccontextmanager
async def serve_app(app: ASGIApp) -> AsyncIterator[str]:
    """The URL of an application, for as long as the block lasts."""
    async with serve_in_background(app) as url:
        yield url.removesuffix("/v1")


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
