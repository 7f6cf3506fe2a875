"""Stored keys: what they open, for how long, how often, and for how many tokens."""

import asyncio

import pytest
from tests.servers import valkey_server, valkey_url  # noqa: F401 - fixtures
from tests.web.api.asking import open_service_client

from opposable.domain.errors import StoreUnavailable
from opposable.domain.events import Reply
from opposable.domain.messages import assistant_message
from opposable.domain.rate_limits import InProcessRateLimiter
from opposable.domain.specs import RateLimit
from opposable.domain.usage import Usage
from opposable.models.scripted import ScriptedModel
from opposable.store.database import StoreDatabase
from opposable.store.database_urls import parse_database_url
from opposable.store.keys import ApiKeyRepository
from opposable.store.migration_runner import migrate_schema
from opposable.web.middleware.authentication import ApiKeyCache
from opposable.web.middleware.request_limits import TokenUsageRecorder

pytestmark = pytest.mark.anyio


async def test_a_key_is_stored_as_its_hash_and_shown_once(tmp_path):
    async with open_service_client(tmp_path) as ask:
        made = await ask.request_json(
            "POST", "/api/keys", {"name": "前端", "scopes": ["chat"], "token_budget": 10}, 201
        )
        [listed] = (await ask.request_json("GET", "/api/keys"))["items"]
        assert made["key"].startswith(listed["prefix"])
        assert made["details"] == listed
        assert made["key"] not in str(listed)
        [stored_key] = await ask.service.store.keys.list()
        assert made["key"] not in repr(stored_key)


async def test_a_revoked_key_is_rejected_within_seconds_by_another_process(tmp_path):
    async with open_service_client(tmp_path) as one, open_service_client(tmp_path) as other:
        key = await one.create_key("tools:read")
        assert (await other("GET", "/api/tools", key=key)).status_code == 200
        [stored_key] = await one.service.store.keys.list()
        await one.request_json("DELETE", f"/api/keys/{stored_key.key_id}", status=204)
        await one.request_json("DELETE", f"/api/keys/{stored_key.key_id}", status=404)
        for _ in range(60):
            status = (await other("GET", "/api/tools", key=key)).status_code
            if status == 401:
                break
            await asyncio.sleep(0.1)
        assert status == 401


async def test_without_any_stored_key_only_localhost_is_accepted(tmp_path):
    async with open_service_client(tmp_path, api_key="") as ask:
        assert (await ask("GET", "/api/tools", key="")).status_code == 200
        for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
            assert (await ask("GET", "/api/tools", key="", headers=headers)).status_code == 403
        ours = {"origin": "http://localhost:5173"}
        assert (await ask("GET", "/api/tools", key="", headers=ours)).status_code == 200


async def test_once_a_key_exists_every_request_needs_one_even_if_it_is_revoked(tmp_path):
    async with open_service_client(tmp_path, api_key="") as ask:
        made = await ask.request_json("POST", "/api/keys", {"name": "a", "scopes": ["admin"]}, 201, key="")
        for _ in range(60):
            status = (await ask("GET", "/api/tools", key="")).status_code
            if status == 401:
                break
            await asyncio.sleep(0.1)
        assert status == 401
        assert (await ask("GET", "/api/tools", key=made["key"])).status_code == 200
        await ask.service.store.keys.revoke(made["details"]["key_id"])
        assert (await ask("GET", "/api/tools", key="")).status_code == 401


async def test_the_first_key_counts_at_once(tmp_path):
    async with open_service_client(tmp_path, api_key="") as ask:
        assert (await ask("GET", "/api/session", key="")).json()["name"] == "owner"
        key = await ask.create_key("chat")
        assert (await ask("GET", "/api/session", key=key)).json()["scopes"] == ["chat"]
        assert (await ask("GET", "/api/keys", key=key)).status_code == 403
        assert (await ask("GET", "/api/session", key="")).status_code == 401


@pytest.mark.parametrize("shared", [False, True], ids=["one process", "two over valkey"])
async def test_the_rate_limit_of_a_key_is_enforced(tmp_path, shared, request):
    redis = request.getfixturevalue("valkey_url") if shared else ""
    async with open_service_client(tmp_path, redis=redis) as one, open_service_client(tmp_path, redis=redis) as other:
        key = await one.create_key("tools:read", "chat", rate=RateLimit(calls=3, seconds=60))
        asked = [one, other, one, other] if shared else [one] * 4
        answers = [await ask("GET", "/api/tools", key=key) for ask in asked]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
        assert answers[-1].json()["error"]["kind"] == "rate_limited"
        models = await one("GET", "/v1/models", key=key)
        assert (models.status_code, models.json()["error"]["code"]) == (429, "rate_limited")
        assert (await one("GET", "/api/tools")).status_code == 200


async def test_the_token_budget_of_a_key_is_enforced(tmp_path):
    reply = Reply(assistant_message("hello"), "stop", Usage(60, 40, 1))
    async with open_service_client(tmp_path, {"m": ScriptedModel(reply, reply, reply)}) as ask:
        key = await ask.create_key("chat", budget=150)
        chat = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        assert (await ask("POST", "/v1/chat/completions", chat, key=key)).status_code == 200
        assert (await ask("POST", "/agent/chat", {"message": "hi"}, key=key)).status_code == 200
        refused = await ask("POST", "/agent/chat", {"message": "hi"}, key=key)
        assert (refused.status_code, refused.json()["error"]["kind"]) == (429, "budget_used_up")
        assert "retry-after" not in refused.headers
    async with open_service_client(tmp_path) as again:
        [stored_key] = await again.service.store.keys.list()
        assert (stored_key.tokens_used, stored_key.last_used_at is not None) == (200, True)
        assert (await again("POST", "/agent/chat", {"message": "hi"}, key=key)).status_code == 429


@pytest.mark.parametrize("has_length", [True, False], ids=["declared length", "chunked"])
async def test_a_body_that_is_too_large_is_rejected(tmp_path, has_length):
    async def pieces():
        for _ in range(30):
            yield b"x" * 100

    async with open_service_client(tmp_path, max_body_bytes=2000) as ask:
        content = b"x" * 3000 if has_length else pieces()
        headers = {"content-type": "application/json"}
        answer = await ask("POST", "/api/tools", content=content, headers=headers)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (413, "too_large")


async def test_other_origins_are_accepted_only_if_the_owner_lists_them(tmp_path):
    asks = {"origin": "https://a.example", "access-control-request-method": "GET"}
    async with open_service_client(tmp_path) as ask:
        answer = await ask("OPTIONS", "/api/tools", key="", headers=asks)
        assert "access-control-allow-origin" not in answer.headers
    async with open_service_client(tmp_path, origins=("https://a.example",)) as ask:
        answer = await ask("OPTIONS", "/api/tools", key="", headers=asks)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "https://a.example")
        other = await ask("OPTIONS", "/api/tools", key="", headers=asks | {"origin": "https://b.example"})
        assert "access-control-allow-origin" not in other.headers


async def test_every_answer_has_its_trace_and_the_security_headers(tmp_path):
    async with open_service_client(tmp_path) as ask:
        for path in ("/api/tools", "/nothing", "/readyz", "/v1/models"):
            answer = await ask("GET", path, headers={"x-trace-id": "mine-1"})
            assert answer.headers["x-trace-id"] == "mine-1"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        bad = await ask("GET", "/readyz", headers={"x-trace-id": "a b<script>"})
        assert len(bad.headers["x-trace-id"]) == 32


async def test_readiness_names_the_part_that_is_not_ready(tmp_path):
    async with open_service_client(tmp_path) as ask:
        readiness = await ask.request_json("GET", "/readyz", key="")
        assert (readiness["ready"], readiness["parts"]["database"]) == (True, "ok")


async def test_one_of_many_concurrent_requests_reads_the_keys(tmp_path):
    class Counted(ApiKeyRepository):
        looks = 0

        async def list(self):
            self.looks += 1
            return await super().list()

    database = StoreDatabase(parse_database_url(f"sqlite:///{tmp_path}/s.db"))
    await migrate_schema(database)
    keys = Counted(database)
    ring = ApiKeyCache(keys, InProcessRateLimiter(), TokenUsageRecorder(keys))
    assert await asyncio.gather(*(ring.requires_key() for _ in range(50))) == [False] * 50
    assert keys.looks == 1
    await database.close()


async def test_one_of_many_concurrent_requests_waits_for_an_unavailable_store(tmp_path):
    class Unavailable(ApiKeyRepository):
        looks = 0

        async def list(self):
            self.looks += 1
            await asyncio.sleep(0)
            raise StoreUnavailable("The store does not answer.")

    database = StoreDatabase(parse_database_url(f"sqlite:///{tmp_path}/s.db"))
    keys = Unavailable(database)
    ring = ApiKeyCache(keys, InProcessRateLimiter(), TokenUsageRecorder(keys))
    errors = await asyncio.gather(*(ring.requires_key() for _ in range(50)), return_exceptions=True)
    assert {type(error) for error in errors} == {StoreUnavailable}
    assert keys.looks == 1
    await database.close()
