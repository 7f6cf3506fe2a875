"""Two processes of one service over PostgreSQL and Valkey: conversations, cancels, approvals, limits, and the death of one."""

import asyncio

import aiohttp
import pytest
from tests.models.chat_server import build_completion, chat_server
from tests.servers import postgresql, valkey_server, valkey_url  # noqa: F401
from tests.service.processes import serve_process, wait_for

from opposable.client import Client, ServiceError
from opposable.domain.specs import RateLimit
from opposable.store.factory import open_store
from opposable.store.keys import generate_key

pytestmark = pytest.mark.anyio


async def test_two_processes_serve_one_conversation_and_cancel_each_others_runs(tmp_path, postgresql, valkey_url):  # noqa: F811
    hanging = asyncio.Event()

    async def forever(request):
        hanging.set()
        await asyncio.sleep(3600)

    env = {"OPPOSABLE_DATABASE_URL": postgresql.new_database(), "OPPOSABLE_REDIS_URL": valkey_url}
    answers = [build_completion("一"), build_completion("二"), forever, forever]
    async with chat_server(*answers) as upstream:
        model = f"{upstream.url}#qwen"
        async with (
            serve_process(tmp_path, model, **env) as (first, url_a),
            serve_process(tmp_path, model, **env) as (_, url_b),
            Client(url_a) as a,
            Client(url_b) as b,
        ):
            assert (await a.chat("hi", conversation_id="v")).response == "一"
            assert (await b.chat("more", conversation_id="v")).response == "二"
            assert [m["content"] for m in upstream.bodies[1]["messages"][1:]] == ["hi", "一", "more"]
            begun = await start_run(a)
            assert await b.cancel_run(begun.run_id)
            assert [event.kind async for event in b.follow_run(begun.run_id)][-1] == "error"
            assert (await b.get_run(begun.run_id)).status == "cancelled"
            lost = await start_run(a)
            assert (await b.get_run(lost.run_id)).status == "running"
            first.kill()
            events = [event async for event in b.follow_run(lost.run_id)]
            assert events[-1].data["kind"] == "lost"
            assert (await b.get_run(lost.run_id)).reason == "lost"
            assert [m["role"] for m in (await b.get_conversation("v")).messages] == ["user", "assistant"] * 2


async def test_an_approval_is_requested_in_one_process_and_decided_in_another(tmp_path, postgresql, valkey_url):  # noqa: F811
    env = {"OPPOSABLE_DATABASE_URL": postgresql.new_database(), "OPPOSABLE_REDIS_URL": valkey_url}
    call = {"id": "c1", "type": "function", "function": {"name": "echo", "arguments": '{"text":"ok?"}'}}
    async with chat_server(build_completion(calls=[call], finish="tool_calls"), build_completion("done")) as upstream:
        model = f"{upstream.url}#qwen"
        async with (
            serve_process(tmp_path, model, **env) as (_, url_a),
            serve_process(tmp_path, model, **env) as (_, url_b),
            Client(url_a) as a,
            Client(url_b) as b,
            aiohttp.ClientSession(url_b.removesuffix("/v1")) as session,
        ):
            agent = {
                "name": "careful",
                "agent_id": "careful",
                "tools": [{"tool_id": "echo"}],
                "needs_approval": ["echo"],
            }
            async with session.post("/api/agents", json=agent) as response:
                assert response.status == 201, await response.text()

            async def pending():
                return [one async for one in b.list_approvals()]

            asking = asyncio.create_task(a.chat("say it", agent="careful"))
            waiting = await wait_for(pending)
            assert [(one.tool_id, one.arguments) for one in waiting] == [("echo", {"text": "ok?"})]
            both = await asyncio.gather(
                a.decide_approval(waiting[0], "approve"),
                b.decide_approval(waiting[0], "approve"),
                return_exceptions=True,
            )
            assert sorted(getattr(one, "status", "") if isinstance(one, ServiceError) else 200 for one in both) == [
                200,
                409,
            ]
            assert (await asyncio.wait_for(asking, 20)).response == "done"
    assert upstream.bodies[1]["messages"][-1]["content"] == "ok?"


async def test_two_processes_count_one_rate_limit(tmp_path, postgresql, valkey_url):  # noqa: F811
    env = {"OPPOSABLE_DATABASE_URL": postgresql.new_database(), "OPPOSABLE_REDIS_URL": valkey_url}
    key, stored_key = generate_key("few", ("tools:write",), RateLimit(calls=7, seconds=3600))
    async with open_store(env["OPPOSABLE_DATABASE_URL"]) as store:
        await store.keys.add(stored_key)
    async with (
        chat_server(build_completion("hi")) as upstream,
        serve_process(tmp_path, f"{upstream.url}#qwen", **env) as (_, url_a),
        serve_process(tmp_path, f"{upstream.url}#qwen", **env) as (_, url_b),
        aiohttp.ClientSession(headers={"authorization": f"Bearer {key}"}) as session,
    ):

        async def called(n: int) -> int:
            base = (url_a, url_b)[n % 2].removesuffix("/v1")
            async with session.post(f"{base}/api/tools/echo/call", json={"arguments": {"text": str(n)}}) as response:
                return response.status

        statuses = await asyncio.gather(*(called(n) for n in range(20)))
    assert {status: statuses.count(status) for status in statuses} == {200: 7, 429: 13}


async def start_run(client: Client):
    """A run that goes on by itself; its first event."""
    async for event in client.stream("wait", detach=True, conversation_id="v"):
        return event
    raise ServiceError("no event came")
