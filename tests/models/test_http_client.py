"""Errors of requests to model servers."""

import asyncio

import pytest
from aiohttp import web
from tests.models.chat_server import chat_server, respond_json, respond_text

from opposable.domain.errors import ModelError, ModelNotFound, ModelRefusedKey
from opposable.domain.messages import user_message
from opposable.models import http_client
from opposable.models.base import ModelOptions
from opposable.models.factory import create_model
from opposable.models.http_client import Endpoint, RetryPolicy
from opposable.models.upstream import ClientRequest, find_upstream

pytestmark = pytest.mark.anyio


async def test_a_missing_path_is_named_as_requested_and_only_the_own_path_gets_a_hint():
    async with chat_server(respond_text("", status=404), respond_text("", status=404)) as server:
        endpoint = Endpoint(f"{server.url}/chat/completions", {}, "", RetryPolicy(), "The base URL ends in /v1.")
        try:
            with pytest.raises(ModelNotFound) as own:
                await endpoint.post(b"{}")
            with pytest.raises(ModelNotFound) as relayed:
                async with endpoint.relay("POST", f"{server.url}/embeddings", b"{}", {}, {}):
                    pass
        finally:
            await endpoint.aclose()
    assert str(own.value) == f"There is nothing at {endpoint.url} (HTTP 404). The base URL ends in /v1."
    assert str(relayed.value) == f"There is nothing at {server.url}/embeddings (HTTP 404)."


async def test_a_key_from_a_file_is_sent_without_its_line_break(monkeypatch):
    monkeypatch.setenv("OPPOSABLE_API_KEY", "sesame\n")
    async with chat_server(respond_text("sesame is wrong", status=401)) as server:
        model = create_model(f"{server.url}#m")
        with pytest.raises(ModelRefusedKey) as caught:
            async for _ in model.stream([user_message("hi")]):
                pass
        await model.aclose()
        assert server.headers[0]["Authorization"] == "Bearer sesame"
        assert "sesame" not in str(caught.value)


async def test_an_endpoint_can_be_used_in_one_event_loop_after_another():
    async with chat_server(respond_json({"n": 1}, headers={"Connection": "close"})) as server:
        endpoint = Endpoint(f"{server.url}/chat/completions", {}, "", RetryPolicy(), "")

        async def post() -> dict[str, int]:
            try:
                return await endpoint.post(b"{}")
            finally:
                sessions.append(endpoint._get_session())

        sessions = []
        for _ in range(2):
            assert await asyncio.to_thread(asyncio.run, post()) == {"n": 1}
        assert sessions[0] is not sessions[1]
        for session in sessions:
            session.detach()


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("unit", ["x" * 1000, ": comment\n" * 100])
async def test_a_response_that_never_ends_is_an_error(monkeypatch, content_type, status, unit):
    async def never_end(request):
        response = web.StreamResponse(status=status, headers={"content-type": content_type})
        response.enable_compression()
        await response.prepare(request)
        while True:
            await response.write(unit.encode())
            await asyncio.sleep(0)

    monkeypatch.setattr(http_client, "MAX_RESPONSE_BYTES", 10_000_000)
    async with chat_server(never_end) as server:
        model = create_model(f"{server.url}#m")
        upstream = find_upstream(model, "chat/completions")
        for options in (ModelOptions(), ModelOptions(stream=False)):
            with pytest.raises(ModelError, match="is too long"):
                async for _ in model.stream([user_message("hi")], options=options):
                    pass
        with pytest.raises(ModelError, match="is too long"):
            await upstream.send(ClientRequest({"messages": []}))
        with pytest.raises(ModelError, match="is too long"):
            async for _ in upstream.stream(ClientRequest({"messages": []})):
                pass
        await model.aclose()
