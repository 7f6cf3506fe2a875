"""The service behind a real server on loopback, and a client that reads its streams."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
import uvicorn

from opposable.models.base import Model
from opposable.service.service import Service, open_service
from opposable.settings import Settings
from opposable.web.server import create_app


def settings(folder: Path, **more) -> Settings:
    return Settings(_env_file=None, home=folder, roots=(folder,), **more)


@asynccontextmanager
async def listening(app) -> AsyncIterator[str]:
    config = uvicorn.Config(app, log_level="warning", access_log=False, ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    taken = socket.create_server(("127.0.0.1", 0))
    taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    task = asyncio.create_task(server.serve([taken]))
    try:
        while not server.started:  # noqa: ASYNC110 - uvicorn tells it in no other way
            await asyncio.sleep(0.005)
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def serving(
    folder: Path, models: Model | Mapping[str, Model], *, owner: str = "", **more
) -> AsyncIterator[tuple[aiohttp.ClientSession, Service]]:
    """A session that asks the service, and the service."""
    named = models if isinstance(models, Mapping) else {"m": models}
    async with (
        open_service(settings(folder, **more), named) as service,
        listening(create_app(service)) as url,
        aiohttp.ClientSession(url) as session,
    ):
        yield session, service


async def events_of(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, str, object]]:
    """Each event of a stream: its id, its kind, its data (the text where it is no JSON)."""
    fields: dict[str, str] = {}
    async for raw in response.content:
        line = raw.decode().rstrip("\n")
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line and fields:
            data = fields.get("data", "")
            yield fields.get("id", ""), fields.get("event", ""), data if data == "[DONE]" else orjson.loads(data)
            fields = {}
