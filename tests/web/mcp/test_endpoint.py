"""`/mcp` of the service, used by the SDK's client and by ours over a real server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.waiting import create_endless_tool
from tests.web.api.asking import wait_until_written
from tests.web.api.chat_serving import create_settings

from opposable.app.default_store import open_default_store
from opposable.domain.call_context import CallContext
from opposable.domain.specs import FunctionToolSpec, HttpToolSpec, McpServerSpec, RateLimit
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.service.service import Service, open_service
from opposable.store.keys import generate_key
from opposable.tools.function import FunctionTool
from opposable.web.http_server import serve_in_background
from opposable.web.server import create_app

pytestmark = pytest.mark.anyio
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPTED = {"accept": "application/json, text/event-stream"}


@asynccontextmanager
async def serve(folder: Path, **options: Any) -> AsyncIterator[tuple[str, Service]]:
    async with (
        open_service(create_settings(folder), {"m": ScriptedModel("hello")}) as service,
        serve_in_background(create_app(service, **options)) as url,
    ):
        yield url.removesuffix("/v1") + "/mcp", service


@asynccontextmanager
async def connect(url: str, key: str = "", mode: str = "auto") -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=30) as http_client,
        Client(streamable_http_client(url, http_client=http_client), mode=mode) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_clients_list_and_call_the_tools_and_calls_are_recorded(tmp_path, mode):
    async with serve(tmp_path) as (url, service):
        shop = HttpToolSpec(tool_id="shop", display_name="商店", endpoint={"url_template": "https://shop.example/"})
        service.library.register(shop, service.spec_loader.create_tools(shop))
        async with connect(url, mode=mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            done = await client.call_tool("calculator", {"expression": "25*4"})
            failed = await client.call_tool("calculator", {"expression": "1/0"})
        await wait_until_written(service)
        records = (await service.store.executions.list()).items
    assert {"calculator", "time", "echo", "shop"} <= tools.keys()
    assert tools["calculator"].annotations.model_dump(exclude_none=True) == {
        "read_only_hint": True,
        "idempotent_hint": True,
    }
    assert tools["shop"].title == "商店"
    assert tools["shop"].annotations.open_world_hint is True
    assert (done.is_error, done.structured_content["result"], failed.is_error) == (False, 100, True)
    assert [(one.tool_id, one.failure) for one in records] == [("calculator", "failed"), ("calculator", None)]
    assert all(one.trace_id for one in records)


async def test_keys_need_the_scope_and_keep_their_limits(tmp_path):
    keys = {
        "chat": generate_key("chat", ("chat",)),
        "tools": generate_key("tools", ("tools:write",)),
        "limited": generate_key("limited", ("tools:write",), RateLimit(calls=1, seconds=600)),
    }
    async with serve(tmp_path) as (url, service), httpx2.AsyncClient(trust_env=False, timeout=30) as http_client:
        for _, stored_key in keys.values():
            await service.store.keys.add(stored_key)

        async def initialize(key: str) -> int:
            headers = ACCEPTED | ({"authorization": f"Bearer {key}"} if key else {})
            return (await http_client.post(url, json=INITIALIZE, headers=headers)).status_code

        limited = keys["limited"][0]
        statuses = [await initialize(key) for key in ("", "opp_wrong", keys["chat"][0], limited, limited)]
        async with connect(url, keys["tools"][0]) as client:
            assert not (await client.call_tool("echo", {"text": "hi"})).is_error
    assert statuses == [401, 401, 403, 200, 429]


def get_owner(context: CallContext) -> str:
    return context.owner


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_tools_get_the_owner_of_the_key(tmp_path, mode):
    key, stored_key = generate_key("tools", ("tools:write",))
    async with serve(tmp_path) as (url, service):
        service.library.register(get_owner)
        await service.store.keys.add(stored_key)
        async with connect(url, key, mode) as client:
            result = await client.call_tool("get_owner", {})
        async with httpx2.AsyncClient(
            headers={"authorization": f"Bearer {key}"}, trust_env=False, timeout=30
        ) as http_client:
            response = await http_client.post(f"{url.removesuffix('/mcp')}/api/tools/get_owner/call", json={})
    assert (result.content[0].text, response.json()["output"]) == (stored_key.key_id, stored_key.key_id)


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}])
async def test_without_keys_other_hosts_and_origins_are_rejected(tmp_path, headers):
    async with serve(tmp_path) as (url, _), httpx2.AsyncClient(trust_env=False, timeout=30) as http_client:
        response = await http_client.post(url, json=INITIALIZE, headers=ACCEPTED | headers)
    assert response.status_code == 403


async def test_any_replica_answers_the_next_request_of_a_client(tmp_path):
    """No request belongs to a session in the memory of one process."""
    async with (
        serve(tmp_path) as (first, _),
        serve(tmp_path) as (second, _),
        httpx2.AsyncClient(trust_env=False, timeout=30) as http_client,
    ):
        response = await http_client.post(first, json=INITIALIZE, headers=ACCEPTED)
        assert "mcp-session-id" not in response.headers
        headers = ACCEPTED | {"mcp-protocol-version": "2025-11-25"}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call"}
        call["params"] = {"name": "echo", "arguments": {"text": "from the other"}}
        response = await http_client.post(second, json=call, headers=headers)
    assert (response.status_code, "from the other" in response.text) == (200, True)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_leaves_cancels_its_call(tmp_path, mode):
    forever, started, stopped = create_endless_tool()
    async with serve(tmp_path) as (url, service):
        service.library.register(FunctionToolSpec(tool_id="forever", module_path="x"), [FunctionTool(forever)])
        async with connect(url, mode=mode) as client:
            assert client.server_capabilities.tools.list_changed == (mode == "auto")  # others cannot be notified
            call = asyncio.create_task(client.call_tool("forever", {}))
            await asyncio.wait_for(started.wait(), 10)
            call.cancel()
            if mode == "auto":  # clients of earlier protocols hold the connection until they leave
                await asyncio.wait_for(stopped.wait(), 10)
        await asyncio.wait_for(stopped.wait(), 10)
        await wait_until_written(service)
        [record] = (await service.store.executions.list()).items
    assert (record.tool_id, record.failure) == ("forever", "cancelled")


async def test_only_the_gateway_has_no_tools(tmp_path):
    async with (
        serve(tmp_path, only="gateway") as (url, _),
        httpx2.AsyncClient(trust_env=False, timeout=30) as http_client,
    ):
        assert (await http_client.post(url, json=INITIALIZE, headers=ACCEPTED)).status_code == 404


async def test_an_agent_service_uses_the_skills_of_a_remote_host(tmp_path, monkeypatch):
    key, stored_key = generate_key("agents", ("tools:write",))
    monkeypatch.setenv("SKILL_HOST_KEY", key)
    settings = create_settings(tmp_path / "agents")
    async with serve(tmp_path / "host", only="skills") as (url, host):
        await host.store.keys.add(stored_key)
        spec = McpServerSpec(tool_id="host", url=url, headers={"Authorization": "Bearer env:SKILL_HOST_KEY"})
        async with open_default_store(settings) as store:
            await store.tools.save(spec)
        call = reply_with_calls(tool_call("host_calculator", '{"expression": "25*4"}', "c1"))
        async with open_service(settings, {"m": ScriptedModel(call, "100")}) as service:
            run = await service.chat((await service.store.agents.get("default")).spec, "25*4?")
            await run.wait_until_ended()
        assert (run.run.text, run.finished_calls[0].result.data["result"]) == ("100", 100)
        await wait_until_written(host)
        assert [execution.tool_id for execution in (await host.store.executions.list()).items] == ["calculator"]


async def test_requests_end_if_the_server_cannot_start(tmp_path, monkeypatch):
    def fail(*_: Any, **__: Any) -> None:
        raise ImportError("a library does not fit")

    monkeypatch.setattr("opposable.web.mcp.server.LibraryServer", fail)
    async with serve(tmp_path) as (url, _), httpx2.AsyncClient(trust_env=False, timeout=10) as client:
        for _ in range(2):
            response = await client.post(url, json=INITIALIZE, headers=ACCEPTED)
            assert response.status_code == 500
