"""The service's application asked in-process, with keys of every scope."""

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
    """Asks the application; `key` is borne where it is given, else the shared one."""

    def __init__(self, app: FastAPI, service: Service, client: httpx2.AsyncClient) -> None:
        self.app = app
        self.service = service
        self.client = client
        self.keys: dict[str, str] = {}

    async def create_key(self, *scopes: str, rate: RateLimit | None = None, budget: int | None = None) -> str:
        """A new key with these scopes."""
        key, kept = generate_key(" ".join(scopes) or "none", scopes, rate, budget)
        await self.service.store.keys.add(kept)
        return key

    async def __call__(self, method: str, path: str, body: Any = None, *, key: str = "sesame", **more: Any) -> Any:
        """The answer; `body` is sent as JSON."""
        headers = {"authorization": f"Bearer {key}"} if key else {}
        given = {} if body is None else {"json": body}
        return await self.client.request(method, path, headers=headers | more.pop("headers", {}), **given, **more)

    async def request_json(self, method: str, path: str, body: Any = None, status: int = 200, **more: Any) -> Any:
        """The JSON of an answer that has this status."""
        answer = await self(method, path, body, **more)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None


@asynccontextmanager
async def open_service_client(
    folder: Path,
    models: Mapping[str, Model] | None = None,
    *,
    api_key: str = "sesame",
    url: str = "",
    redis: str = "",
    largest_body: int = 1_000_000,
    **settings: Any,
) -> AsyncIterator[ServiceClient]:
    """The application over a store in `folder`, or at `url`."""
    given = Settings(_env_file=None, home=folder, roots=(folder,), database_url=url, redis_url=redis, **settings)
    async with open_service(given, models or {"m": ScriptedModel("hello")}) as service:
        app = create_app(service, api_key=api_key, max_body_bytes=largest_body)
        transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            yield ServiceClient(app, service, client)
