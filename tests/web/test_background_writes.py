"""Writes in the background of a block."""

import asyncio

import pytest

from opposable.web.background_writes import write_periodically

pytestmark = pytest.mark.anyio


async def test_the_end_of_the_block_cancels_no_write_in_progress():
    pending, stored = ["tokens"], []
    is_stored = asyncio.Event()

    async def write():
        stored.extend(pending)
        is_stored.set()
        await asyncio.sleep(0.01)  # the database answers
        pending.clear()

    async with write_periodically(write, 0.0, "the tokens"):
        await is_stored.wait()
    assert stored == ["tokens"]
