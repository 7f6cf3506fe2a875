"""The service on a real server on localhost, and a client that reads its streams."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from opposable.domain.json_text import parse_json
from opposable.models.base import Model
from opposable.service.service import Service, open_service
from opposable.settings import Settings
from opposable.web.http_server import serve_in_background
from opposable.web.server import create_app


def create_settings(folder: Path, **more) -> Settings:
    return Settings(_env_file=None, home=folder, roots=(folder,), **more)


@asynccontextmanager
async def serve_service(
    folder: Path, models: Model | Mapping[str, Model], **more
) -> AsyncIterator[tuple[aiohttp.ClientSession, Service]]:
    """A session that asks the service, and the service."""
    named = models if isinstance(models, Mapping) else {"m": models}
    async with (
        open_service(create_settings(folder, **more), named) as service,
        serve_in_background(create_app(service)) as url,
        aiohttp.ClientSession(url.removesuffix("/v1")) as session,
    ):
        yield session, service


async def read_events(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, str, object]]:
    """Each event of a stream: its id, its kind, its data (the text where it is no JSON)."""
    fields: dict[str, str] = {}
    async for raw in response.content:
        line = raw.decode().rstrip("\n")
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line and fields:
            data = fields.get("data", "")
            yield fields.get("id", ""), fields.get("event", ""), data if data == "[DONE]" else parse_json(data)
            fields = {}
