"""The service client, against a real service."""

import asyncio
from contextlib import aclosing, asynccontextmanager

import pytest
from aiohttp import ClientTimeout
from tests.web.api.asking import wait_until_written
from tests.web.api.chat_serving import serve_service
from tests.web.serving import SlowModel

from opposable import Client
from opposable import client as client_module
from opposable.client import ServiceError
from opposable.domain.errors import BadInput
from opposable.domain.specs import AgentSpec, AgentToolBinding
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call

pytestmark = pytest.mark.anyio

SUM = reply_with_calls(tool_call("calculator", '{"expression": "25*4"}', "c1"))


@asynccontextmanager
async def open_client(folder, *lines):
    async with (
        serve_service(folder, ScriptedModel(*lines)) as (session, service),
        Client(str(session._base_url)) as client,
    ):
        yield client, service


async def test_the_client_chats_and_reads_conversations_and_runs(tmp_path):
    async with open_client(tmp_path, SUM, "一共 100。") as (client, _):
        answer = await client.chat("请计算", conversation_id="v1", max_tool_calls=3)
        assert (answer.response, answer.conversation_id, answer.tool_calls[0]["tool"]) == (
            "一共 100。",
            "v1",
            "calculator",
        )
        conversation = await client.get_conversation("v1")
        assert [message["role"] for message in conversation.messages] == ["user", "assistant", "tool", "assistant"]
        assert [conversation.conversation_id async for conversation in client.list_conversations()] == ["v1"]
        run = await client.get_run(answer.meta["run_id"])
        assert (run.status, run.tool_calls) == ("finished", 1)
        assert [event.kind async for event in client.follow_run(run.run_id)][-1] == "run_finished"
        assert not await client.cancel_run(run.run_id)
        await client.delete_conversation("v1")
        with pytest.raises(ServiceError, match="no conversation 'v1'") as caught:
            await client.get_conversation("v1")
        assert (caught.value.status, caught.value.kind) == (404, "not_found")


async def test_the_client_streams_and_decides_approvals(tmp_path):
    async with open_client(tmp_path, SUM, "一共 100。") as (client, service):
        tools = (AgentToolBinding(tool_id="calculator"),)
        await service.store.agents.add(AgentSpec(agent_id="careful", tools=tools, needs_approval=("calculator",)))
        text, results = "", []
        async with aclosing(client.stream("请计算", agent="careful")) as events:
            async for event in events:
                text += event.content
                if event.kind == "approval_needed":
                    [waiting] = [approval async for approval in client.list_approvals()]
                    assert (await client.decide_approval(waiting, "approve")).status == "approved"
                elif event.kind == "tool_finished":
                    results.append(event.data["success"])
        assert (text, results) == ("一共 100。", [True])


async def test_a_whole_answer_may_take_longer_than_a_stream_may_be_silent(tmp_path, monkeypatch):
    monkeypatch.setattr(client_module, "REQUEST_TIMEOUT", ClientTimeout(sock_read=0.2))
    async with (
        serve_service(tmp_path, SlowModel(0.6, pieces=1)) as (session, _),
        Client(str(session._base_url)) as client,
    ):
        assert (await client.chat("take your time")).response == "a"


async def test_an_id_never_leads_to_another_route(tmp_path):
    async with open_client(tmp_path, "hi") as (client, service):
        await service.store.agents.add(AgentSpec(agent_id="客服"))
        assert (await client.chat("hello", agent="客服", conversation_id="v1")).response == "hi"
        for wrong_id in ("../../api/agents/客服", "v1?x=1", "v1#x", "", ".."):
            with pytest.raises(ServiceError):
                await client.delete_conversation(wrong_id)
            with pytest.raises(ServiceError):
                await client.get_conversation(wrong_id)
            with pytest.raises(ServiceError):
                await client.get_run(wrong_id)
        assert "客服" in [item["agent"]["agent_id"] async for item in client.list_agents()]
        assert [conversation.conversation_id async for conversation in client.list_conversations()] == ["v1"]


async def test_runs_are_filtered_by_known_fields_alone(tmp_path):
    async with open_client(tmp_path, "hi") as (client, service):
        run = await client.get_run((await client.chat("hello")).meta["run_id"])
        await wait_until_written(service)
        assert [stored.run_id async for stored in client.list_runs(agent_id=run.agent_id)] == [run.run_id]
        assert [run async for run in client.list_runs(agent_id="other")] == []
        with pytest.raises(TypeError):
            client.list_runs(agent="other")


@pytest.mark.parametrize(
    ("status", "body", "length", "problem"),
    [
        (200, b"<html>Log in</html>", 19, "is not one of the service"),
        (200, b"[1]", 3, "is not one of the service"),
        (200, b"{}", 2, "is not one of the service"),
        (204, b"", 0, "is not one of the service"),
        (200, b"{", 100, "The connection to the service broke"),
        (502, b"{", 100, "returned status 502"),
    ],
)
async def test_a_response_of_another_server_is_reported(status, body, length, problem):
    async def respond(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 %d X\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (status, length, body))
        writer.close()

    async with (
        await asyncio.start_server(respond, "127.0.0.1", 0) as server,
        Client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as client,
    ):
        for request in (client.get_run("r1"), client.cancel_run("r1"), client.chat("hi"), anext(client.list_tools())):
            with pytest.raises(ServiceError, match=problem):
                await request


async def test_a_key_may_end_with_a_line_break_but_have_none_in_it():
    assert Client(key="sesame\n")._headers == {"authorization": "Bearer sesame"}
    with pytest.raises(BadInput, match="has a line break"):
        Client(key="sesame\nX-Admin: 1")


async def test_an_unreachable_service_is_reported():
    async with Client("http://127.0.0.1:9") as client:
        with pytest.raises(ServiceError, match="The service cannot be reached"):
            await client.chat("hi")
