"""Chats of a server with `--durable`, which a worker process executes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from tests.cli.program import run_program
from tests.durable.farm import AGENT_ID, kill, start_worker, store_agent
from tests.models.chat_server import (
    ChatServer,
    build_completion,
    build_delta,
    chat_server,
    respond_events,
    respond_json,
)
from tests.service.processes import wait_for
from tests.web.api.chat_serving import create_settings

from opposable.domain.json_text import dump_json
from opposable.models.scripted import ScriptedModel
from opposable.service.service import Service, open_service
from opposable.web.http_server import serve_in_background
from opposable.web.server import create_app

pytestmark = pytest.mark.anyio

EFFECT = '{"ok":true}'
"""The result of a call of `effect`."""


@asynccontextmanager
async def serve_durable(
    url: str, home: Path, upstream: ChatServer, *arguments: str, api_key: str = ""
) -> AsyncIterator[tuple[aiohttp.ClientSession, Service]]:
    """A session that asks a server whose chats one worker executes, and the service of the server."""
    settings = create_settings(home, database_url=url)
    models = {"m": ScriptedModel(), "fast": ScriptedModel()}  # asked by no chat
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


async def read_messages(service: Service, conversation_id: str) -> list[tuple[str, str]]:
    stored = await service.store.conversations.list_messages(conversation_id)
    return [(message.role, message.content) for message in stored]


async def chat(session: aiohttp.ClientSession, message: str, **body) -> tuple[int, dict]:
    async with session.post("/agent/chat", json={"message": message, **body}) as response:
        return response.status, await response.json()


def build_call(call_id: str, number: str) -> dict:
    arguments = {"name": "effect", "arguments": dump_json({"number": number}).decode()}
    return {"id": call_id, "type": "function", "function": arguments}


async def wait_for_approval(session: aiohttp.ClientSession) -> str:
    """The id of the call that waits for a person."""

    async def find() -> str:
        async with session.get("/api/approvals", params={"status": "pending"}) as response:
            items = (await response.json())["items"]
        return items[0]["approval_id"] if items else ""

    return await wait_for(find)


async def approve(session: aiohttp.ClientSession) -> None:
    approval_id = await wait_for_approval(session)
    async with session.post(f"/api/approvals/{approval_id}", json={"decision": "approve"}) as response:
        assert response.status == 200, await response.text()


async def find_waiting_run(service: Service) -> str:
    """The id of the run that waits for a person and uses no worker."""

    async def find() -> str:
        page = await service.store.runs.list(status="waiting")
        return page.items[0].run_id if page.items else ""

    return await wait_for(find)


async def test_a_run_that_fails_after_a_call_stores_the_call(url, outside, tmp_path):
    calls = build_completion(calls=[build_call("c1", "A-1")])
    async with chat_server(calls, respond_json({"error": {"message": "no"}}, 400)) as upstream:
        await store_agent(url, outside)
        async with serve_durable(url, tmp_path, upstream) as (session, service):
            session.headers["x-agent-id"] = AGENT_ID
            assert (await chat(session, "apply A-1", conversation_id="v1"))[0] == 400
            stored = await read_messages(service, "v1")
    assert stored[:3] == [("user", "apply A-1"), ("assistant", ""), ("tool", EFFECT)]
    assert stored[3:] == [("assistant", "[The run ended here without an answer.]")]
    assert outside.numbers == {"A-1": 1}


async def test_a_run_that_is_cancelled_while_it_waits_stores_its_calls(url, outside, tmp_path):
    calls = build_completion(calls=[build_call("c1", "A-1")]), build_completion(calls=[build_call("c2", "A-2")])
    async with chat_server(*calls) as upstream:
        await store_agent(url, outside, needs_approval=True)
        async with serve_durable(url, tmp_path, upstream) as (session, service):
            session.headers["x-agent-id"] = AGENT_ID
            running = asyncio.create_task(chat(session, "apply both", conversation_id="v1"))
            await approve(session)
            await wait_for_approval(session)
            await service.store.runs.request_cancel(await find_waiting_run(service))
            assert (await running)[0] == 409
            stored = await read_messages(service, "v1")
    assert [role for role, _ in stored] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert (stored[2][1], "There is no result" in stored[4][1]) == (EFFECT, True)


async def test_a_run_that_waits_does_not_see_later_messages_of_its_conversation(url, outside, tmp_path):
    answers = build_completion(calls=[build_call("c1", "A-1")]), build_completion("second"), build_completion("first")
    async with chat_server(build_completion("zeroth"), *answers) as upstream:
        await store_agent(url, outside, needs_approval=True)
        async with serve_durable(url, tmp_path, upstream) as (session, service):
            session.headers["x-agent-id"] = AGENT_ID
            await chat(session, "message 0", conversation_id="v1")
            running = asyncio.create_task(chat(session, "message 1", conversation_id="v1"))
            await find_waiting_run(service)
            assert (await chat(session, "message 2", conversation_id="v1"))[1]["response"] == "second"
            await approve(session)
            assert (await running)[1]["response"] == "first"
    before, _, after = ([message["content"] for message in body["messages"]] for body in upstream.bodies[1:])
    assert (before[1:], after[1:]) == (
        ["message 0", "zeroth", "message 1"],
        ["message 0", "zeroth", "message 1", None, EFFECT],
    )


async def test_the_output_of_a_call_is_the_value_of_the_tool(url, outside, tmp_path):
    async with chat_server(build_completion(calls=[build_call("c1", "A-1")]), build_completion("done")) as upstream:
        await store_agent(url, outside)
        async with serve_durable(url, tmp_path, upstream) as (session, _):
            session.headers["x-agent-id"] = AGENT_ID
            _, answer = await chat(session, "apply A-1")
    assert [call["result"]["output"] for call in answer["tool_calls"]] == [{"ok": True}]


async def test_the_tokens_of_a_chat_count_for_its_key(url, tmp_path):
    async with (
        chat_server(build_completion("Hi.")) as upstream,
        serve_durable(url, tmp_path, upstream, api_key="root") as (session, service),
    ):
        body = {"name": "k", "scopes": ["chat"], "token_budget": 40}
        async with session.post("/api/keys", json=body) as response:
            key = (await response.json())["key"]
        session.headers["authorization"] = f"Bearer {key}"
        answers = [await chat(session, "Hello") for _ in range(4)]
        stored = await wait_for(lambda: find_usage(service, 3))
    assert [status for status, _ in answers[:3]] == [200, 200, 200]
    assert answers[3][0] in (400, 429)  # from the worker, or from the server once it has read what was used
    assert stored == (54, [("scripted", 54)])


TOKENS_OF_A_CHAT = 18


async def find_usage(service: Service, requests: int) -> tuple[int, list[tuple[str, int]]] | None:
    """The tokens of the only key, and those of each model, once both are stored for this number of requests."""
    [key] = await service.store.keys.list()
    usage = [item for item in await service.store.model_usage.list() if item.key_id == key.key_id]
    if sum(item.usage.requests for item in usage) < requests or key.tokens_used < TOKENS_OF_A_CHAT * requests:
        return None
    return key.tokens_used, [(item.model, item.usage.total_tokens) for item in usage]


async def test_a_worker_has_the_models_of_a_configuration(url, tmp_path):
    async with (
        chat_server(respond_json({"error": {"message": "away"}}, 503)) as first,
        chat_server(build_completion("from the fallback")) as second,
    ):
        route = {"name": "fast", "model": f"{first.url}#a", "retries": 0, "fallbacks": [f"{second.url}#b"]}
        config = tmp_path / "gateway.yaml"
        config.write_bytes(dump_json({"models": [{"name": "m", "model": f"{second.url}#b"}, route]}))
        async with serve_durable(url, tmp_path, first, "--config", str(config)) as (session, _):
            status, answer = await chat(session, "Hello", model="fast")
    assert (status, answer.get("response"), len(first.bodies)) == (200, "from the fallback", 1)


async def test_a_worker_takes_models_or_a_configuration(tmp_path):
    env = {"OPPOSABLE_DATABASE_URL": "postgresql://127.0.0.1:9/none"}
    result = await run_program(tmp_path, "worker", "--model", "m", "--config", "gateway.yaml", env=env)
    assert (result.code, "--model and --config exclude each other" in result.err) == (2, True)
