"""Tokens by API key and model that are written in the background."""

import asyncio

import pytest

from opposable.domain.usage import Usage
from opposable.web.telemetry.tracing import ModelCall
from opposable.web.telemetry.usage_recorder import UsageRecorder

pytestmark = pytest.mark.anyio


class SlowRepository:
    """A repository whose writes end when they are allowed to."""

    def __init__(self):
        self.may_end = asyncio.Event()
        self.stored = []

    async def add(self, records, day):
        if records:
            await self.may_end.wait()
        self.stored += records


async def test_a_write_returns_after_a_write_in_progress():
    repository = SlowRepository()
    recorder = UsageRecorder(repository)
    recorder.record(ModelCall("upstream", Usage(11, 7, 1), 0, 1, "", "openai"))
    periodic = asyncio.create_task(recorder.write())
    await asyncio.sleep(0)
    reader = asyncio.create_task(recorder.write())
    done, _ = await asyncio.wait([reader], timeout=0.05)
    assert not done
    repository.may_end.set()
    await reader
    assert [record.usage for record in repository.stored] == [Usage(11, 7, 1)]
    await periodic
