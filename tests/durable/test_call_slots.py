"""The concurrent calls of all workers are limited by locks of PostgreSQL."""

import asyncio

import pytest

from opposable.durable.call_slots import CallSlots

pytestmark = pytest.mark.anyio


async def test_two_workers_share_the_slots_of_a_key(url):
    active = largest = 0

    async def call(slots, key):
        nonlocal active, largest
        async with slots.hold(key, 3):
            active += 1
            largest = max(largest, active)
            await asyncio.sleep(0.02)
            active -= 1

    async with CallSlots(url) as one, CallSlots(url) as other, asyncio.timeout(60):
        await asyncio.gather(*(call(slots, "tool search") for slots in (one, other) for _ in range(10)))
    assert (largest, active) == (3, 0)


async def test_a_worker_that_dies_leaves_its_slots(url):
    async with CallSlots(url) as dead, CallSlots(url) as other, asyncio.timeout(60), dead.hold("model m", 1):
        waiting = asyncio.create_task(other.hold("model m", 1).__aenter__())
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await dead._connection.close()
        await waiting


async def test_a_call_that_is_cancelled_while_it_waits_takes_no_slot(url):
    async with CallSlots(url) as slots, asyncio.timeout(60):
        for delay in (0.0, 0.001, 0.01, 0.3):
            async with slots.hold("tool a", 1):
                waiting = asyncio.create_task(slots.hold("tool a", 1).__aenter__())
                first = asyncio.create_task(slots.hold("tool b", 1).__aenter__())
                await asyncio.sleep(delay)
                for task in (waiting, first):
                    task.cancel()
                await asyncio.gather(waiting, first, return_exceptions=True)
            if not first.cancelled() and first.exception() is None:
                await slots._release("tool b slot 0")
        async with CallSlots(url) as other, other.hold("tool a", 1), other.hold("tool b", 1):
            pass
