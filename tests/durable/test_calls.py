"""Calls that need a person: those that need approval, and those whose outcome is unknown."""

import asyncio

import pytest
from tests.durable.farm import AGENT_ID, kill, start_worker, store_agent
from tests.service.processes import wait_for

from opposable.models.scripted import ScriptedModel
from opposable.service.service import open_service
from opposable.settings import Settings

pytestmark = pytest.mark.anyio


def open_durable_service(url, tmp_path):
    settings = Settings(home=tmp_path, database_url=url, private_hosts=("127.0.0.1",), _env_file=None)
    return open_service(settings, {"scripted": ScriptedModel("unused")}, is_durable=True)


async def start_chat(service):
    return await service.chat((await service.store.agents.get(AGENT_ID)).spec, "go", conversation_id="c1")


async def wait_for_approval(service):
    async def find_pending():
        return (await service.store.approvals.list(status="pending")).items

    [approval] = await wait_for(find_pending)
    return approval


async def list_kinds(service, run_id):
    return [event.kind for event in await service.store.runs.list_events(run_id)]


async def test_a_run_that_waits_for_approval_is_in_no_worker(url, outside, tmp_path):
    outside.calls_per_run = 1
    await store_agent(url, outside, needs_approval=True)
    async with open_durable_service(url, tmp_path) as service:
        first = await start_worker(url, tmp_path, outside)
        chat = await start_chat(service)
        approval = await wait_for_approval(service)

        async def is_waiting():
            return (await service.store.runs.get(chat.run.run_id)).status == "waiting"

        await wait_for(is_waiting)
        await asyncio.sleep(1)  # the worker must not hold the run
        await kill(first)
        second = await start_worker(url, tmp_path, outside)
        assert await service.store.approvals.decide(approval.approval_id, "approved")
        run = await asyncio.wait_for(chat.wait_until_ended(), 60)
        kinds = await list_kinds(service, run.run_id)
        roles = [message.role for message in await service.store.conversations.list_messages("c1")]
        await kill(second)
    assert (run.status, run.text, set(outside.effects.values())) == ("finished", "done go", {1})
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert kinds == [
        "run_started",
        "model_replied",
        "tool_started",
        "approval_needed",
        "resumed",
        "approval_decided",
        "tool_finished",
        "model_replied",
        "text",
        "run_finished",
    ]


@pytest.mark.parametrize("decision", ["approved", "denied"])
async def test_a_call_with_an_unknown_outcome_is_put_before_a_person(url, outside, tmp_path, decision):
    outside.calls_per_run, outside.stalls = 1, 1
    await store_agent(url, outside, idempotent=False)
    async with open_durable_service(url, tmp_path) as service:
        first = await start_worker(url, tmp_path, outside)
        chat = await start_chat(service)

        async def has_started():
            return bool(outside.effects)

        await wait_for(has_started)
        await kill(first)  # the effect has been applied, but the result is lost
        second = await start_worker(url, tmp_path, outside)
        approval = await wait_for_approval(service)
        assert "It may have taken effect" in approval.reason
        assert set(outside.effects.values()) == {1}
        await service.store.approvals.decide(approval.approval_id, decision, reason="checked by hand")
        run = await asyncio.wait_for(chat.wait_until_ended(), 60)
        result = chat.finished_calls[0].result
        await kill(second)
    assert run.status == "finished"
    if decision == "approved":
        assert (list(outside.effects.values()), result.failure) == ([2], None)
    else:
        assert (list(outside.effects.values()), result.failure) == ([1], "denied")
        assert "Its outcome is unknown" in result.content
        assert "checked by hand" in result.content


async def test_a_run_that_waits_can_be_cancelled(url, outside, tmp_path):
    await store_agent(url, outside, needs_approval=True)
    async with open_durable_service(url, tmp_path) as service:
        worker = await start_worker(url, tmp_path, outside)
        chat = await start_chat(service)
        approval = await wait_for_approval(service)
        assert await service.runner.cancel(chat.run.run_id)
        run = await asyncio.wait_for(chat.wait_until_ended(), 60)
        decided = await service.store.approvals.get(approval.approval_id)
        await kill(worker)
    assert (run.status, decided.status, outside.effects) == ("cancelled", "expired", {})
