"""Fallbacks of the gateway, model allow lists of keys, and parts of a service."""

import aiohttp
import orjson
import pytest
from tests.models.chat_server import build_completion, build_delta, chat_server, respond_events, respond_json
from tests.web.api.chat_serving import create_settings
from tests.web.gateway.test_relay import connect, post
from tests.web.serving import serve_app, serve_models

from opposable.models.fallback import FallbackModel
from opposable.models.scripted import ScriptedModel
from opposable.service.service import open_service
from opposable.store.keys import generate_key
from opposable.web.server import create_app

pytestmark = pytest.mark.anyio

HI = [{"role": "user", "content": "hi"}]
AWAY = respond_json({"error": {"message": "away"}}, 503)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_is_relayed_to_the_fallback(stream):
    reply = respond_events(build_delta(content="hi"), build_delta("stop")) if stream else build_completion("hi")
    async with chat_server(AWAY) as first, chat_server(reply) as second:
        model = FallbackModel("m", [connect(first), connect(second)])
        async with serve_models(model) as url:
            status, raw, _ = await post(url, {"messages": HI, "stream": stream, "made_up": 1})
    assert (status, b"hi" in raw) == (200, True)
    assert second.bodies[0]["made_up"] == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("chat/completions", {"messages": HI}),
        ("messages", {"messages": HI, "max_tokens": 9}),
        ("responses", {"input": "a"}),
    ],
)
async def test_a_fallback_may_have_another_api(path, body, stream):
    async with chat_server(AWAY) as first:
        model = FallbackModel("m", [connect(first), ScriptedModel("hi")])
        async with serve_models(model) as url:
            status, raw, _ = await post(url, {**body, "stream": stream}, path)
    assert (status, b"hi" in raw) == (200, True)


async def test_a_rejected_request_has_no_fallback():
    async with chat_server(respond_json({"error": {"message": "No."}}, 400)) as first:
        second = ScriptedModel("hi")
        async with serve_models(FallbackModel("m", [connect(first), second])) as url:
            assert (await post(url, {"messages": HI}))[0] == 400
    assert second.requests == []


async def test_a_key_may_use_only_its_models(tmp_path):
    models = {"fast": ScriptedModel("hi"), "slow": ScriptedModel("hi")}
    models["alias"] = models["fast"]
    key, record = generate_key("front end", ("chat",))
    other_key, other = generate_key("other", ("chat",))
    async with open_service(create_settings(tmp_path), models) as service:
        await service.store.keys.add(record)
        await service.store.keys.add(other)
        app = create_app(service, allowed_models={"front end": ["fast"]})
        async with serve_app(app) as url, aiohttp.ClientSession(url) as session:

            async def ask(key, model):
                headers = {"authorization": f"Bearer {key}"}
                body = {"model": model, "messages": HI}
                async with session.post("/v1/chat/completions", json=body, headers=headers) as response:
                    return response.status

            assert [await ask(key, name) for name in ("fast", "alias", "slow", "agent/default")] == [200, 200, 404, 404]
            assert [await ask(other_key, name) for name in ("slow", "agent/default")] == [200, 200]
            async with session.get("/v1/models", headers={"authorization": f"Bearer {key}"}) as response:
                assert [entry["id"] for entry in (await response.json())["data"]] == ["fast"]


PARTS = {
    "gateway": ({"/v1/models": 200, "/api/tools": 404, "/skills": 404}),
    "agents": ({"/v1/models": 404, "/api/tools": 200, "/skills": 404}),
    "skills": ({"/v1/models": 404, "/api/tools": 404, "/skills": 200}),
}


@pytest.mark.parametrize(("only", "expected"), PARTS.items())
async def test_one_part_is_served_alone(tmp_path, only, expected):
    async with (
        open_service(create_settings(tmp_path), {"m": ScriptedModel("hi")}) as service,
        serve_app(create_app(service, only=only)) as url,
        aiohttp.ClientSession(url) as session,
    ):
        for path, status in {**expected, "/healthz": 200, "/readyz": 200, "/api/keys": 200}.items():
            async with session.get(path) as response:
                assert response.status == status, path
                orjson.loads(await response.read())
