"""A batch starts within its concurrency, pauses, is cancelled and retried, and has one result for each task."""

from dataclasses import replace

import pytest
from tests.store.records import START

from opposable.domain.batches import Batch, BatchTask, RunOutcome
from opposable.domain.records import Run
from opposable.domain.specs import AgentSpec, RateLimit

pytestmark = pytest.mark.anyio

USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "model_calls": 1}
BATCH = Batch(
    "b1",
    AgentSpec(agent_id="a"),
    START,
    "owner",
    concurrency=2,
    model_rate=RateLimit(calls=5, seconds=1),
    tool_rates={"search": RateLimit(calls=1, seconds=1)},
)


async def add_batch(store, count=3):
    await store.batches.add(BATCH, [BatchTask(f"t{n}", f"task {n}") for n in range(count)])


async def finish(store, run_id, status="finished", **outcome):
    await store.queued_runs.finish(run_id, RunOutcome(status, usage=USAGE, **outcome))


async def list_results(store):
    return [result async for result in store.batches.iterate_results("b1")]


async def test_a_batch_is_stored_with_its_limits(store):
    await add_batch(store)
    assert await store.batches.get("b1") == BATCH
    assert (await store.batches.list(owner="owner")).items == (BATCH,)
    assert (await store.batches.list(owner="other")).items == ()
    [run_id, _] = await store.queued_runs.list_ready_tasks()
    queued = await store.queued_runs.get(run_id)
    assert (queued.request, queued.batch, queued.status) == ({"task": "task 0"}, BATCH, "queued")


async def test_tasks_start_within_the_concurrency(store):
    await add_batch(store)
    first = await store.queued_runs.list_ready_tasks()
    await store.queued_runs.set_status(first, "submitted")
    assert (len(first), await store.queued_runs.list_ready_tasks()) == (2, ())
    await store.queued_runs.set_status(first[:1], "waiting")  # a person decides: its place is free
    third = await store.queued_runs.list_ready_tasks()
    await finish(store, first[1])
    assert (len(third), await store.queued_runs.list_ready_tasks()) == (1, third)


async def test_a_paused_batch_starts_nothing(store):
    await add_batch(store)
    assert await store.batches.set_paused("b1", paused=True)
    assert await store.queued_runs.list_ready_tasks() == ()
    assert await store.batches.set_paused("b1", paused=False)
    assert len(await store.queued_runs.list_ready_tasks()) == 2
    assert not await store.batches.set_paused("b2", paused=True)


async def test_a_cancelled_batch_ends_its_tasks(store):
    await add_batch(store)
    [active, _] = await store.queued_runs.list_ready_tasks()
    await store.queued_runs.set_status([active], "submitted")
    await store.runs.save(Run(active, START))
    await store.batches.cancel("b1")
    assert (await store.batches.get_progress("b1")).counts == {"submitted": 1, "cancelled": 2}
    assert await store.runs.list_cancel_requested([active]) == {active}
    assert not await store.batches.set_paused("b1", paused=False)


async def test_the_tasks_of_a_cancelled_batch_are_cancelled_before_their_runs_are_stored(store):
    await add_batch(store)
    run_ids = await store.queued_runs.list_ready_tasks()
    await store.queued_runs.set_status(run_ids, "submitted")
    assert await store.runs.list_cancel_requested(run_ids) == set()
    await store.batches.cancel("b1")
    assert await store.runs.list_cancel_requested([run_ids[0], "other"]) == {run_ids[0]}


async def test_a_finished_batch_is_not_cancelled(store):
    await add_batch(store, 1)
    await finish(store, (await store.queued_runs.list_ready_tasks())[0])
    await store.batches.finish_ended()
    finished = await store.batches.get("b1")
    await store.batches.cancel("b1")
    assert await store.batches.get("b1") == finished


async def test_failed_tasks_run_again_as_new_runs(store):
    await add_batch(store)
    run_ids = await store.queued_runs.list_ready_tasks()
    await finish(store, run_ids[0], text="one", calls=2, cost=0.5)
    await finish(store, run_ids[1], "failed", error="no answer")
    before = await list_results(store)
    assert await store.batches.retry_failed("b1") == 1
    [retried, _] = await store.queued_runs.list_ready_tasks()
    assert retried == f"{run_ids[1]}-1"
    await finish(store, run_ids[1], text="too late")  # an old run cannot change the result
    assert before == [
        {"id": "t0", "status": "finished", "text": "one", "calls": 2, "usage": USAGE, "error": None},
        {"id": "t1", "status": "failed", "text": "", "calls": 0, "usage": USAGE, "error": "no answer"},
    ]
    assert await list_results(store) == before[:1]


async def test_a_batch_without_open_tasks_is_finished(store):
    await add_batch(store, 1)
    await store.batches.finish_ended()
    assert (await store.batches.get("b1")).status == "running"
    [run_id] = await store.queued_runs.list_ready_tasks()
    await finish(store, run_id, cost=0.25)
    await store.batches.finish_ended()
    progress = await store.batches.get_progress("b1")
    assert (await store.batches.get("b1")).status == "finished"
    assert (progress.total, progress.ended, progress.cost) == (1, 1, 0.25)
    assert (progress.input_tokens, progress.output_tokens) == (10, 5)
    await store.batches.add(replace(BATCH, batch_id="b2"), [BatchTask("t0", "a"), BatchTask("t1", "b")])
    both = await store.batches.get_progress_by_batch(["b2", "b1", "none"])
    assert [(name, found.total) for name, found in both.items()] == [("b2", 2), ("b1", 1), ("none", 0)]
    assert both["b1"] == progress
