"""Who is let in, and how much they may send."""

import asyncio

import aiohttp
import pytest
from tests.web.serving import serve_models

from opposable.domain.errors import BadInput
from opposable.domain.rate_limits import InProcessRateLimiter
from opposable.models.scripted import ScriptedModel
from opposable.store.keys import generate_key
from opposable.web.middleware.authentication import ApiKeyCache, is_loopback
from opposable.web.middleware.request_limits import TokenUsageRecorder
from opposable.web.server import get_model_names, require_key_unless_loopback

pytestmark = pytest.mark.anyio

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


async def send_request(url, path="/chat/completions", body=BODY, **given):
    async with aiohttp.ClientSession() as session:
        method = "POST" if body is not None else "GET"
        how = {"data": body} if isinstance(body, bytes) else {"json": body}
        async with session.request(method, url + path, **how, **given) as response:
            body = await response.json()
            return response.status, body.get("error", {}).get("code"), dict(response.headers)


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic sesame"}, 401),
        ({"Authorization": "Bearer schlüssel"}, 401),
        ({"Authorization": "Bearer sesame"}, 200),
        ({"authorization": "bearer sesame"}, 200),
    ],
)
async def test_every_request_must_carry_the_server_key(given, status):
    async with serve_models(ScriptedModel("hi"), api_key="sesame") as url:
        got, code, headers = await send_request(url, headers=given)
        assert (got, code) == (status, None if status == 200 else "invalid_api_key")
        assert ("www-authenticate" in {name.lower() for name in headers}) == (status == 401)
        assert (await send_request(url, "/models", None, headers=given))[0] == status
        assert (await send_request(url.removesuffix("/v1"), "/healthz", None, headers=given))[0] == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:1", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
    ],
)
async def test_without_a_key_only_requests_to_localhost_are_accepted(host, status):
    async with serve_models(ScriptedModel("hi")) as url:
        assert (await send_request(url, headers={"Host": host}))[0] == status


async def test_the_form_of_a_web_page_is_not_accepted_as_json():
    async with serve_models(ScriptedModel("hi")) as url:
        assert (await send_request(url, body=b"{}", headers={"Content-Type": "text/plain"}))[:2] == (
            400,
            "invalid_content_type",
        )


@pytest.mark.parametrize("chunked", [None, True], ids=["declared length", "chunked"])
async def test_a_body_that_is_too_large_is_rejected(chunked):
    big = BODY | {"messages": [{"role": "user", "content": "x" * 3000}]}
    async with serve_models(ScriptedModel("hi"), max_body_bytes=2000) as url:
        assert (await send_request(url, body=big, chunked=chunked))[:2] == (413, "request_too_large")
        assert (await send_request(url, body=BODY, chunked=chunked))[0] == 200


async def test_not_found_errors_have_the_same_form():
    async with serve_models(ScriptedModel("hi")) as url:
        assert (await send_request(url, "/nothing"))[:2] == (404, None)
        assert (await send_request(url, "/chat/completions", None))[:2] == (405, None)


async def test_the_routes_are_documented():
    async with serve_models(ScriptedModel("hi")) as url, aiohttp.ClientSession() as session:
        response = await session.get(url.removesuffix("/v1") + "/openapi.json")
        paths = (await response.json())["paths"]
    assert set(paths) == {
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/embeddings",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1/models",
        "/v1/models/{name}",
        "/v1/responses",
        "/v1/responses/compact",
        "/v1/responses/input_tokens",
        "/v1/responses/{response_id}",
        "/v1/responses/{response_id}/cancel",
        "/v1/responses/{response_id}/input_items",
        "/healthz",
    }
    assert set(paths["/v1/chat/completions"]["post"]["responses"]) == {
        *("200", "400", "401", "404", "413", "429", "502", "503", "5XX"),
    }


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("example.com", False),
    ],
)
def test_other_hosts_are_served_only_with_a_key(host, loopback):
    assert is_loopback(host) == loopback
    require_key_unless_loopback(host, "sesame")
    if loopback:
        require_key_unless_loopback(host, "")
    else:
        with pytest.raises(BadInput, match="needs an API key"):
            require_key_unless_loopback(host, "")


@pytest.mark.parametrize(
    ("asked_for", "names"),
    [("local", ["local", "qwen"]), ("openai:qwen", ["openai:qwen", "qwen"]), ("http://h/v1#qwen", ["qwen"])],
)
def test_a_model_has_its_requested_and_its_own_name(asked_for, names):
    assert get_model_names(asked_for, ScriptedModel("hi", name="qwen")) == names


class SlowKeys:
    """The keys of a store that answers late, and how often they were read."""

    def __init__(self, *keys):
        self.keys = {key.sha256: key for key in keys}
        self.reads = 0

    async def get_by_hash(self, sha256):
        self.reads += 1
        await asyncio.sleep(0.01)
        return self.keys.get(sha256)


async def test_concurrent_requests_read_their_key_once():
    (one, first), (other, second) = (generate_key(name, ("chat",)) for name in ("one", "other"))
    keys = SlowKeys(first, second)
    now = 0.0
    cache = ApiKeyCache(keys, InProcessRateLimiter(), TokenUsageRecorder(keys), lambda: now)
    for reads in (3, 6):  # the cached keys expire in between
        found = await asyncio.gather(*(cache.find(key) for key in (one, other, "opp_unknown") for _ in range(20)))
        ids = [each and each.principal.key_id for each in found]
        assert (ids, keys.reads) == ([first.key_id] * 20 + [second.key_id] * 20 + [None] * 20, reads)
        now += 60
