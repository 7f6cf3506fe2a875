"""Runs are stored with their events and cancellation requests."""

from dataclasses import replace

import pytest
from tests.store.records import START, seconds_after_start

from opposable.domain.records import (
    Run,
    RunEvent,
)
from opposable.domain.usage import Usage

pytestmark = pytest.mark.anyio

RUN = Run("r1", START, agent_id="a", conversation_id="c", owner="k", task="做", usage=Usage(1, 2, 3))


async def test_run_and_its_events_are_stored(store):
    await store.runs.save(RUN)
    assert await store.runs.get("r1") == RUN
    assert await store.runs.request_cancel("r1")
    ended_run = replace(
        RUN, status="cancelled", text="t", reason="time", ended_at=seconds_after_start(5), turns=2, tool_calls=1
    )
    await store.runs.save(ended_run)
    assert await store.runs.get("r1") == replace(ended_run, cancel_requested=True)
    assert await store.runs.list_cancel_requested(["r1", "r2"]) == {"r1"}
    assert not await store.runs.request_cancel("r1")
    await store.runs.save(replace(RUN, run_id="r2", started_at=seconds_after_start(1), owner="other"))
    for criteria, run_ids in [
        ({}, ["r2", "r1"]),
        ({"owner": "k"}, ["r1"]),
        ({"status": "running"}, ["r2"]),
        ({"agent_id": "a", "conversation_id": "c"}, ["r2", "r1"]),
        ({"agent_id": "b"}, []),
    ]:
        assert [run.run_id for run in (await store.runs.list(**criteria)).items] == run_ids
    events = [RunEvent("r1", number, "text", {"content": f"片{number}"}, START) for number in range(1, 6)]
    await store.runs.add_events(events[:3])
    await store.runs.add_events(events)
    assert await store.runs.list_events("r1", after=2, limit=2) == tuple(events[2:4])
