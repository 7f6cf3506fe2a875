"""Retention deletes records beyond an age or a number, and no others."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.store.records import make_execution

from opposable.domain.batches import QueuedRun
from opposable.domain.errors import BadInput
from opposable.domain.records import Approval, Run, RunEvent, canonical_sha256, get_utc_now
from opposable.store.retention import DELETE_BATCH_ROWS, RetentionLimits, RetentionResult

pytestmark = pytest.mark.anyio


async def add_executions(store, hours):
    """Store an execution and an ended run of each age, in hours."""
    current_time = get_utc_now()
    times = [current_time - timedelta(hours=hour) for hour in hours]
    await store.executions.add([make_execution(number, at=at) for number, at in enumerate(times)])
    for number, at in enumerate(times):
        await store.runs.save(Run(f"r{number}", at, status="finished"))
    await store.runs.add_events([RunEvent(f"r{number}", 1, "text", {}, at) for number, at in enumerate(times)])


async def list_remaining(store):
    calls = [execution.execution_id async for execution in store.executions.export()]
    runs = [run.run_id for run in (await store.runs.list()).items]
    events = [run for run in ("r0", "r1", "r2", "r3") if await store.runs.list_events(run)]
    return calls, runs, events


@pytest.mark.parametrize(
    ("limits", "deleted", "numbers"),
    [
        (RetentionLimits(), 0, [0, 1, 2, 3]),
        (RetentionLimits(max_age=timedelta(hours=2.5)), 1, [0, 1, 2]),
        (RetentionLimits(max_count=2), 2, [0, 1]),
        (RetentionLimits(max_age=timedelta(hours=1.5), max_count=3), 2, [0, 1]),
        (RetentionLimits(max_count=4), 0, [0, 1, 2, 3]),
        (RetentionLimits(max_count=0), 4, []),
    ],
)
async def test_records_beyond_age_or_number_are_deleted(store, limits, deleted, numbers):
    await add_executions(store, [0, 1, 2, 3])
    assert await store.retention.enforce(limits) == RetentionResult(deleted, deleted)
    calls, runs = [f"e{number:06}" for number in numbers], [f"r{number}" for number in numbers]
    assert await list_remaining(store) == (calls, runs, runs)
    assert await store.retention.enforce(limits) == RetentionResult(0, 0)


async def test_active_run_is_not_deleted(store):
    run = Run("r0", get_utc_now() - timedelta(days=9), status="running")
    await store.runs.save(run)
    await store.runs.save(replace(run, run_id="r1", status="waiting"))
    await store.runs.save(replace(run, run_id="r2", status="failed"))
    assert await store.retention.enforce(RetentionLimits(max_age=timedelta(days=1), max_count=0)) == RetentionResult(
        0, 1
    )
    assert {run.run_id for run in (await store.runs.list()).items} == {"r0", "r1"}


async def test_several_batches_are_deleted(store):
    await store.executions.add([make_execution(number) for number in range(2 * DELETE_BATCH_ROWS + 5)])
    assert await store.retention.enforce(RetentionLimits(max_count=3)) == RetentionResult(2 * DELETE_BATCH_ROWS + 2, 0)
    assert len((await store.executions.list()).items) == 3


async def test_executions_of_the_same_time_are_counted_separately(store):
    await store.executions.add([make_execution(number, at=make_execution(0).at) for number in range(5)])
    await store.retention.enforce(RetentionLimits(max_count=2))
    assert [execution.execution_id for execution in (await store.executions.list()).items] == ["e000004", "e000003"]


@pytest.mark.parametrize("limits", [RetentionLimits(max_count=-1), RetentionLimits(max_age=timedelta(seconds=-1))])
async def test_negative_limit_is_reported(store, limits):
    with pytest.raises(BadInput, match="are negative"):
        await store.retention.enforce(limits)


async def test_a_deleted_run_leaves_no_request_and_no_approval(store):
    for run_id, status in (("r0", "finished"), ("r1", "waiting")):
        run = Run(run_id, get_utc_now() - timedelta(days=9), status=status, worker="durable")
        await store.queued_runs.add(QueuedRun(run_id, {"history": ["private"]}), run)
        await store.approvals.add(Approval(run_id, run_id, "c", "t", {}, canonical_sha256({}), run.started_at))
    assert await store.retention.enforce(RetentionLimits(max_age=timedelta(days=1))) == RetentionResult(0, 1)
    stored = [(await store.queued_runs.get(run_id), await store.approvals.get(run_id)) for run_id in ("r0", "r1")]
    assert [(queued is None, approval is None) for queued, approval in stored] == [(True, True), (False, False)]
