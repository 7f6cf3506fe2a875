"""Queued runs, the attempts of their calls, and rates over all processes."""

import asyncio

import pytest
from tests.store.records import START

from opposable.domain.batches import QueuedRun, RunOutcome
from opposable.domain.records import Approval, Run, canonical_sha256
from opposable.domain.specs import RateLimit
from opposable.store import open_store

pytestmark = pytest.mark.anyio


async def test_a_chat_is_queued_until_it_is_submitted(store):
    await store.queued_runs.add(QueuedRun("r1", {"task": "go"}), Run("r1", START))
    assert await store.queued_runs.list_ready_chats() == ("r1",)
    assert await store.queued_runs.get("r1") == QueuedRun("r1", {"task": "go"})
    assert await store.queued_runs.get("r2") is None
    await store.queued_runs.set_status(["r1"], "submitted")
    assert await store.queued_runs.list_ready_chats() == ()
    await store.queued_runs.finish("r1", RunOutcome("finished"))
    await store.queued_runs.set_status(["r1"], "queued")
    assert (await store.queued_runs.get("r1")).status == "finished"


async def test_a_waiting_run_is_resumed_by_a_decision_or_a_cancellation(store):
    for run_id in ("r1", "r2"):
        await store.queued_runs.add(QueuedRun(run_id, {}), Run(run_id, START, status="waiting"))
        await store.approvals.add(Approval(run_id, run_id, "c", "tool", {}, canonical_sha256({}), START))
    await store.queued_runs.set_status(["r1", "r2"], "waiting")
    assert await store.queued_runs.list_resumable() == ()
    await store.approvals.decide("r1", "approved")
    assert await store.queued_runs.list_resumable() == ("r1",)
    await store.runs.request_cancel("r2")
    assert sorted(await store.queued_runs.list_resumable()) == ["r1", "r2"]


async def test_the_attempts_of_a_call_are_forgotten_with_its_run(store):
    await store.queued_runs.add(QueuedRun("r1", {}), Run("r1", START))
    await store.queued_runs.set_attempts("key", "r1", 1)
    await store.queued_runs.set_attempts("key", "r1", 2)
    assert await store.queued_runs.count_attempts("key") == 2
    await store.queued_runs.finish("r1", RunOutcome("finished"))
    assert await store.queued_runs.count_attempts("key") == 0


@pytest.mark.parametrize("engine", ["postgresql"])
async def test_a_rate_holds_over_all_processes(url):
    limit = RateLimit(calls=10, seconds=100)
    async with open_store(url) as one, open_store(url) as other:
        waits = await asyncio.gather(*(store.queued_runs.reserve_slot("model m", limit) for store in (one, other) * 3))
        assert await one.queued_runs.reserve_slot("tool t", limit) == 0.0
    assert [round(wait / 10) for wait in sorted(waits)] == [0, 1, 2, 3, 4, 5]
