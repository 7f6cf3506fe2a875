"""Writes in the background of a block."""

import asyncio

import pytest

from opposable.domain.errors import StoreUnavailable
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


async def test_an_outage_is_logged_once(caplog):
    outcomes = iter([*["down"] * 5, "", *["down again"] * 5])
    has_ended = asyncio.Event()

    async def write():
        if (problem := next(outcomes, None)) is None:
            has_ended.set()
        elif problem:
            raise StoreUnavailable(problem)

    async with write_periodically(write, 0.0, "the tokens"):
        await has_ended.wait()
    assert caplog.messages == ["Cannot write the tokens yet: down", "Cannot write the tokens yet: down again"]
