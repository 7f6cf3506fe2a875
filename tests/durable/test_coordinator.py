"""The leader hands queued runs to the workers, and resumes those that waited for a person."""

import asyncio

import pytest
from tests.store.records import START
from tests.waiting import wait_until

from opposable.domain.batches import BatchTask, QueuedRun
from opposable.domain.records import Approval, Run, canonical_sha256
from opposable.domain.specs import AgentSpec
from opposable.durable.coordinator import Coordinator
from opposable.durable.engine import BATCH_PRIORITY, CHAT_PRIORITY
from opposable.service.batches import create_batch
from opposable.store import open_store

pytestmark = pytest.mark.anyio


class SuspendingEngine:
    """An engine whose worker suspends a run before the leader knows that it is submitted."""

    def __init__(self, store):
        self.store = store
        self.resumed = asyncio.Event()

    async def submit(self, run_ids, priority=CHAT_PRIORITY):
        await self.store.queued_runs.set_status(run_ids, "waiting")
        await self.store.approvals.add(Approval("a1", run_ids[0], "c", "tool", {}, canonical_sha256({}), START))

    async def resume_suspended(self, run_ids):
        self.resumed.set()

    async def list_active(self, worker_id=None):
        return {}


class RecordingEngine:
    """An engine that records what is submitted, in the order in which workers start it."""

    def __init__(self):
        self.submitted = []

    async def submit(self, run_ids, priority=CHAT_PRIORITY):
        self.submitted += [(priority, run_id) for run_id in run_ids]
        self.submitted.sort()

    async def list_active(self, worker_id=None):
        return {}


class IdleExecutor:
    active_ids = frozenset()


async def test_a_run_that_waits_at_once_is_resumed_by_its_decision(url):
    async with open_store(url) as store:
        engine = SuspendingEngine(store)
        await store.queued_runs.add(QueuedRun("r1", {}), Run("r1", START))
        leader = asyncio.create_task(Coordinator(url, "worker", store, engine, IdleExecutor()).run())
        try:
            async with asyncio.timeout(20):
                while await store.approvals.decide("a1", "approved") is None:  # noqa: ASYNC110 - it is in a database
                    await asyncio.sleep(0.05)
                await engine.resumed.wait()
        finally:
            leader.cancel()
            await asyncio.wait({leader})


async def test_a_chat_starts_before_the_queued_tasks_of_a_batch(url):
    async with open_store(url) as store:
        engine = RecordingEngine()
        tasks = [BatchTask(str(number), "go") for number in range(120)]
        await create_batch(store, AgentSpec(agent_id="a"), tasks, concurrency=1000)
        leader = asyncio.create_task(Coordinator(url, "worker", store, engine, IdleExecutor()).run())
        try:
            await wait_until(lambda: engine.submitted)
            first_round = len(engine.submitted)
            await store.queued_runs.add(QueuedRun("chat", {}), Run("chat", START))
            await wait_until(lambda: len(engine.submitted) == 121)
        finally:
            leader.cancel()
            await asyncio.wait({leader})
    assert (first_round, engine.submitted[0]) == (50, (CHAT_PRIORITY, "chat"))
    assert {priority for priority, _ in engine.submitted[1:]} == {BATCH_PRIORITY}
