"""The leader hands queued runs to the workers, and resumes those that waited for a person."""

import asyncio

import pytest
from tests.store.records import START

from opposable.domain.batches import QueuedRun
from opposable.domain.records import Approval, Run, canonical_sha256
from opposable.durable.coordinator import Coordinator
from opposable.store import open_store

pytestmark = pytest.mark.anyio


class SuspendingEngine:
    """An engine whose worker suspends a run before the leader knows that it is submitted."""

    def __init__(self, store):
        self.store = store
        self.resumed = asyncio.Event()

    async def submit(self, run_ids):
        await self.store.queued_runs.set_status(run_ids, "waiting")
        await self.store.approvals.add(Approval("a1", run_ids[0], "c", "tool", {}, canonical_sha256({}), START))

    async def resume_suspended(self, run_ids):
        self.resumed.set()

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
