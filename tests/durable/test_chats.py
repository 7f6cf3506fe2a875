"""Chats of a server with `--durable`, which a worker process executes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from tests.durable.farm import kill, start_worker
from tests.models.chat_server import ChatServer, build_completion, build_delta, chat_server, respond_events
from tests.web.api.chat_serving import create_settings

from opposable.models.scripted import ScriptedModel
from opposable.service.service import Service, open_service
from opposable.web.http_server import serve_in_background
from opposable.web.server import create_app

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def serve_durable(
    url: str, home: Path, upstream: ChatServer, *arguments: str, api_key: str = ""
) -> AsyncIterator[tuple[aiohttp.ClientSession, Service]]:
    """A session that asks a server whose chats one worker executes, and the service of the server."""
    settings = create_settings(home, database_url=url)
    models = {"m": ScriptedModel()}  # asked by no chat
    upstream.model = f"{upstream.url}#scripted"
    async with (
        open_service(settings, models, is_durable=True) as service,
        serve_in_background(create_app(service, api_key=api_key)) as base_url,
        aiohttp.ClientSession(
            base_url.removesuffix("/v1"), headers={"authorization": f"Bearer {api_key}"} if api_key else None
        ) as session,
    ):
        worker = await start_worker(url, home, upstream, *arguments)
        try:
            yield session, service
        finally:
            await kill(worker)


async def test_an_agent_answers_as_a_model(url, tmp_path):
    body = {"model": "agent/default", "messages": [{"role": "user", "content": "Hi"}]}
    streamed = respond_events(build_delta(content="It is 3."), build_delta("stop"))
    async with (
        chat_server(build_completion("It is 3."), streamed) as upstream,
        serve_durable(url, tmp_path, upstream) as (session, _),
    ):
        async with session.post("/v1/chat/completions", json=body) as response:
            assert (response.status, (await response.json())["choices"][0]["message"]["content"]) == (200, "It is 3.")
        async with session.post("/v1/chat/completions", json=body | {"stream": True}) as response:
            text = await response.text()
    assert ('"content":"It is 3."' in text, text.endswith("data: [DONE]\n\n"), "error" in text) == (True, True, False)
