"""What is too old or too much is forgotten, and nothing else."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.store.records import make_execution

from opposable.domain.errors import BadInput
from opposable.domain.records import Run, RunEvent, get_utc_now
from opposable.store.retention import DELETE_BATCH_ROWS, RetentionLimits, RetentionResult

pytestmark = pytest.mark.anyio


async def add_executions(store, hours):
    """A call and a finished run of each age, in hours."""
    moment = get_utc_now()
    ages = [moment - timedelta(hours=hour) for hour in hours]
    await store.executions.add([make_execution(number, at=at) for number, at in enumerate(ages)])
    for number, at in enumerate(ages):
        await store.runs.save(Run(f"r{number}", at, status="finished"))
    await store.runs.add_events([RunEvent(f"r{number}", 1, "text", {}, at) for number, at in enumerate(ages)])


async def list_remaining(store):
    calls = [one.execution_id async for one in store.executions.export()]
    runs = [run.run_id for run in (await store.runs.list()).items]
    events = [run for run in ("r0", "r1", "r2", "r3") if await store.runs.list_events(run)]
    return calls, runs, events


@pytest.mark.parametrize(
    ("keep", "forgotten", "numbers"),
    [
        (RetentionLimits(), 0, [0, 1, 2, 3]),
        (RetentionLimits(max_age=timedelta(hours=2.5)), 1, [0, 1, 2]),
        (RetentionLimits(max_count=2), 2, [0, 1]),
        (RetentionLimits(max_age=timedelta(hours=1.5), max_count=3), 2, [0, 1]),
        (RetentionLimits(max_count=4), 0, [0, 1, 2, 3]),
        (RetentionLimits(max_count=0), 4, []),
    ],
)
async def test_age_and_number(store, keep, forgotten, numbers):
    await add_executions(store, [0, 1, 2, 3])
    assert await store.retention.enforce(keep) == RetentionResult(forgotten, forgotten)
    calls, runs = [f"e{number:06}" for number in numbers], [f"r{number}" for number in numbers]
    assert await list_remaining(store) == (calls, runs, runs)
    assert await store.retention.enforce(keep) == RetentionResult(0, 0)


async def test_a_run_that_goes_on_is_kept(store):
    run = Run("r0", get_utc_now() - timedelta(days=9), status="running")
    await store.runs.save(run)
    await store.runs.save(replace(run, run_id="r1", status="waiting"))
    await store.runs.save(replace(run, run_id="r2", status="failed"))
    assert await store.retention.enforce(RetentionLimits(max_age=timedelta(days=1), max_count=0)) == RetentionResult(
        0, 1
    )
    assert {run.run_id for run in (await store.runs.list()).items} == {"r0", "r1"}


async def test_more_than_a_batch_is_forgotten(store):
    await store.executions.add([make_execution(number) for number in range(2 * DELETE_BATCH_ROWS + 5)])
    assert await store.retention.enforce(RetentionLimits(max_count=3)) == RetentionResult(2 * DELETE_BATCH_ROWS + 2, 0)
    assert len((await store.executions.list()).items) == 3


async def test_calls_of_one_moment_are_counted_apart(store):
    await store.executions.add([make_execution(number, at=make_execution(0).at) for number in range(5)])
    await store.retention.enforce(RetentionLimits(max_count=2))
    assert [one.execution_id for one in (await store.executions.list()).items] == ["e000004", "e000003"]


@pytest.mark.parametrize("keep", [RetentionLimits(max_count=-1), RetentionLimits(max_age=timedelta(seconds=-1))])
async def test_a_negative_limit_is_told(store, keep):
    with pytest.raises(BadInput, match="cannot be of negative"):
        await store.retention.enforce(keep)
