"""An in-process client of the service's application, with keys of every scope."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from fastapi import FastAPI

from opposable.domain.specs import RateLimit
from opposable.models.base import Model
from opposable.models.scripted import ScriptedModel
from opposable.service.service import Service, open_service
from opposable.settings import Settings
from opposable.store.keys import generate_key
from opposable.web.server import create_app

SCOPES = ("chat", "tools:read", "tools:write", "admin")


class ServiceClient:
    """Sends requests to the application, by default with the server's own key."""

    def __init__(self, app: FastAPI, service: Service, client: httpx2.AsyncClient) -> None:
        self.app = app
        self.service = service
        self.client = client

    async def create_key(self, *scopes: str, rate: RateLimit | None = None, budget: int | None = None) -> str:
        """Store a new key with these scopes and return it."""
        key, stored_key = generate_key(" ".join(scopes) or "none", scopes, rate, budget)
        await self.service.store.keys.add(stored_key)
        return key

    async def __call__(self, method: str, path: str, body: Any = None, *, key: str = "sesame", **options: Any) -> Any:
        """Send `body` as JSON and return the response."""
        headers = {"authorization": f"Bearer {key}"} if key else {}
        content = {} if body is None else {"json": body}
        return await self.client.request(
            method, path, headers=headers | options.pop("headers", {}), **content, **options
        )

    async def request_json(self, method: str, path: str, body: Any = None, status: int = 200, **options: Any) -> Any:
        """Return the JSON of the response, which must have this status."""
        response = await self(method, path, body, **options)
        assert response.status_code == status, response.text
        return response.json() if response.content else None


async def wait_until_written(service: Service) -> None:
    """Wait until the recorder has written every record."""
    async with asyncio.timeout(5):
        while service.recorder.status.waiting:  # noqa: ASYNC110 - the recorder has no event for it
            await asyncio.sleep(0.02)


@asynccontextmanager
async def open_service_client(
    folder: Path,
    models: Mapping[str, Model] | None = None,
    *,
    api_key: str = "sesame",
    url: str = "",
    redis: str = "",
    max_body_bytes: int = 1_000_000,
    **settings: Any,
) -> AsyncIterator[ServiceClient]:
    """Open the application with its store in `folder`, or at `url`."""
    service_settings = Settings(
        _env_file=None, home=folder, roots=(folder,), database_url=url, redis_url=redis, **settings
    )
    async with open_service(service_settings, models or {"m": ScriptedModel("hello")}) as service:
        app = create_app(service, api_key=api_key, max_body_bytes=max_body_bytes)
        transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            yield ServiceClient(app, service, client)
