"""A service opened on a real store."""

import asyncio
from pathlib import Path

import pytest

from opposable.domain.errors import BadInput
from opposable.domain.specs import AgentSpec, AgentToolBinding, EndpointConfig, HttpToolSpec
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.service.service import BUILTIN_TOOLS, DEFAULT_AGENT_ID, open_service
from opposable.settings import Settings

pytestmark = pytest.mark.anyio


def create_settings(tmp_path: Path) -> Settings:
    return Settings(_env_file=None, home=tmp_path, roots=(tmp_path,))


async def test_an_empty_store_is_given_an_agent_that_works_at_once(tmp_path):
    model = ScriptedModel(reply_with_calls(tool_call("calculator", '{"expression": "25*4"}', "c1")), "一百。")
    async with open_service(create_settings(tmp_path), {"scripted": model}) as service:
        agent = (await service.get_agent()).spec
        assert (agent.agent_id, {b.tool_id for b in agent.tools}) == (DEFAULT_AGENT_ID, set(BUILTIN_TOOLS))
        going = await service.chat(agent, "请计算 25 乘以 4", conversation_id="v1")
        run = await going.wait_until_ended()
        assert (run.status, run.text, going.finished_calls[0].result.data["result"]) == ("finished", "一百。", 100)
        assert model.requests[0].messages[0].content == "你是一个有用的助手。"
        again = await service.chat(agent, "And again?", conversation_id="v1")
        await again.wait_until_ended()
        assert [m.role for m in model.requests[-1].messages] == [
            "system",
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
        ]


async def test_opened_again_it_is_as_it_was(tmp_path):
    for _ in range(2):
        async with open_service(create_settings(tmp_path), {"scripted": ScriptedModel("ok")}) as service:
            assert (await service.get_agent()).version == 1
            assert set(BUILTIN_TOOLS) == {spec.tool_id for spec in service.library.specs}


async def test_a_tool_kept_by_another_process_is_offered_soon(tmp_path):
    spec = HttpToolSpec(tool_id="sum", endpoint=EndpointConfig(url_template="internal://calculator"))
    async with (
        open_service(create_settings(tmp_path), {"m": ScriptedModel("ok")}) as one,
        open_service(create_settings(tmp_path), {"m": ScriptedModel("ok")}) as other,
    ):
        await other.store.tools.save(spec)
        await one.refresh()
        assert one.library.get_spec("sum") is not None
        await other.store.tools.delete("sum")
        await one.refresh()
        assert one.library.get_spec("sum") is None


async def test_anothers_conversation_is_as_if_it_were_not_there(tmp_path):
    async with open_service(create_settings(tmp_path), {"m": ScriptedModel("ok", "ok")}) as service:
        agent = (await service.get_agent()).spec
        await (await service.chat(agent, "hi", conversation_id="v1", owner="ann")).wait_until_ended()
        with pytest.raises(BadInput, match="no conversation 'v1'"):
            await service.chat(agent, "hi", conversation_id="v1", owner="bob")
        assert await service.get_conversation("v1", "bob") is None
        assert (await service.get_conversation("v1", "ann")).messages == 2


async def test_two_turns_at_once_in_one_conversation_both_stay_whole(tmp_path):
    async with open_service(create_settings(tmp_path), {"m": ScriptedModel("one", "two")}) as service:
        agent = (await service.get_agent()).spec
        going = await asyncio.gather(*(service.chat(agent, f"hi {n}", conversation_id="v1") for n in range(2)))
        await asyncio.gather(*(one.wait_until_ended() for one in going))
        said = await service.store.conversations.list_messages("v1")
        assert [m.role for m in said] == ["user", "assistant", "user", "assistant"]


async def test_an_agent_that_names_no_model_of_this_service_is_told_so(tmp_path):
    async with open_service(create_settings(tmp_path), {"m": ScriptedModel("ok")}) as service:
        with pytest.raises(BadInput, match="There is no model 'gpt'. Available models: m"):
            await service.chat(AgentSpec(agent_id="a", model="gpt"), "hi")
        with pytest.raises(BadInput, match="'sum', is not one of its tools"):
            await service.chat(AgentSpec(agent_id="a", tool_choice="sum"), "hi")


@pytest.mark.parametrize(("learning", "scope"), [("shared", ""), ("own", "clerk")])
async def test_what_fails_is_remembered_for_all_or_for_the_agent_alone(tmp_path, learning, scope):
    model = ScriptedModel(reply_with_calls(tool_call("calculator", '{"expresion": "25*4"}', "c1")), "I could not.")
    tools = (AgentToolBinding(tool_id="calculator"),)
    async with open_service(create_settings(tmp_path), {"m": model}) as service:
        await (
            await service.chat(AgentSpec(agent_id="clerk", tools=tools, learning=learning), "25*4?")
        ).wait_until_ended()
    async with open_service(create_settings(tmp_path), {"m": model}) as service:
        known = (await service.store.failures.list()).items
        assert [(one.tool_id, one.kind, one.scope) for one in known] == [("calculator", "invalid_arguments", scope)]
