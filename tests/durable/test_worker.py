"""Workers execute batches; they may be killed at any time."""

import asyncio
import random
import signal

import psycopg
import pytest
from tests.cli.program import run_program
from tests.durable.farm import AGENT_ID, kill, run_batch, start_worker, store_agent

from opposable.domain.batches import BatchTask
from opposable.service.batches import create_batch
from opposable.store import open_store

pytestmark = pytest.mark.anyio

RUNS = 100


async def test_runs_survive_the_death_of_their_workers(url, outside, tmp_path):
    outside.delay = 0.05
    await store_agent(url, outside)
    workers = list(await asyncio.gather(*(start_worker(url, tmp_path, outside) for _ in range(3))))
    tasks = [{"id": f"task-{number}", "task": f"t{number}"} for number in range(RUNS)]
    batch = asyncio.create_task(run_batch(url, tmp_path, tasks))
    chance = random.Random(7)
    try:
        for effects in (40, 160, 280):  # the last worker that is left does the rest
            while len(outside.effects) < effects:
                assert not batch.done()
                await asyncio.sleep(0.02)
            await kill(workers.pop(chance.randrange(len(workers))))
            if effects == 40:
                workers.append(await start_worker(url, tmp_path, outside))
        code, lines, errors = await batch
    finally:
        logs = [await kill(worker, signal.SIGTERM) for worker in workers]
    assert (code, f"{RUNS} of {RUNS} tasks finished" in errors) == (0, True)
    assert lines == [
        {
            "id": f"task-{number}",
            "status": "finished",
            "text": f"done t{number}",
            "calls": 5,
            "usage": {"input_tokens": 66, "output_tokens": 42, "total_tokens": 108, "model_calls": 6},
            "error": None,
        }
        for number in range(RUNS)
    ]
    assert sorted(outside.numbers) == sorted(f"t{run}/{call}" for run in range(RUNS) for call in range(5))
    assert len(outside.effects) == 5 * RUNS  # every effect has one key, however often it was requested
    assert [(worker.returncode, "Error" in log) for worker, log in zip(workers, logs, strict=True)] == [(0, False)]


async def test_the_calls_of_a_tool_at_a_time_are_limited_over_all_workers(url, outside, tmp_path):
    outside.delay, outside.calls_per_run = 0.1, 1
    await store_agent(url, outside)
    workers = await asyncio.gather(*(start_worker(url, tmp_path, outside) for _ in range(2)))
    tasks = [{"id": str(number), "task": str(number)} for number in range(12)]
    limits = ("--tool-concurrency", "effect=2", "--model-concurrency", "4", "--tool-rate", "effect=100/1")
    code, lines, _ = await run_batch(url, tmp_path, tasks, *limits)
    for worker in workers:
        await kill(worker, signal.SIGTERM)
    assert (code, {line["status"] for line in lines}, len(outside.effects)) == (0, {"finished"}, 12)
    assert outside.max_concurrency == 2


async def test_a_stopping_worker_finishes_its_runs(url, outside, tmp_path):
    outside.delay = 0.3
    await store_agent(url, outside)
    worker = await start_worker(url, tmp_path, outside, "--concurrency", "2")
    batch = asyncio.create_task(run_batch(url, tmp_path, [{"id": str(n), "task": str(n)} for n in range(4)]))
    while len(outside.tasks) < 2:  # noqa: ASYNC110 - the effects happen in another process
        await asyncio.sleep(0.02)
    log = await kill(worker, signal.SIGHUP)
    assert (worker.returncode, "Stopped." in log) == (0, True)
    assert len(outside.effects) in (10, 20)  # whole runs only: none was left in the middle
    worker = await start_worker(url, tmp_path, outside)
    code, lines, _ = await batch
    await kill(worker)
    assert (code, [line["status"] for line in lines]) == (0, ["finished"] * 4)
    assert set(outside.effects.values()) == {1}


async def test_the_steps_of_old_runs_are_deleted(url, outside, tmp_path, monkeypatch):
    await store_agent(url, outside)
    worker = await start_worker(url, tmp_path, outside)
    await run_batch(url, tmp_path, [{"id": str(n), "task": str(n)} for n in range(3)])
    await kill(worker)
    monkeypatch.setenv("OPPOSABLE_RETENTION_DAYS", "1")
    count = "SELECT count(DISTINCT workflow_uuid) FROM opposable_dbos.operation_outputs"
    with psycopg.connect(url, autocommit=True) as connection:
        [(newest,)] = connection.execute("SELECT max(workflow_uuid) FROM opposable_dbos.workflow_status").fetchall()
        age = "UPDATE opposable_dbos.workflow_status SET completed_at = 1 WHERE workflow_uuid < %s"
        connection.execute(age, [newest])
        worker = await start_worker(url, tmp_path, outside)
        async with asyncio.timeout(30):
            while connection.execute(count).fetchone() == (3,):  # noqa: ASYNC110 - the worker deletes them
                await asyncio.sleep(0.1)
        await kill(worker)
        assert connection.execute(f"{count} WHERE workflow_uuid = %s", [newest]).fetchone() == (1,)
        assert connection.execute(count).fetchone() == (1,)


async def test_a_cancelled_batch_starts_none_of_its_tasks(url, outside, tmp_path):
    outside.delay = 0.3
    await store_agent(url, outside)
    worker = await start_worker(url, tmp_path, outside, "--concurrency", "2")
    async with open_store(url) as store:
        agent = (await store.agents.get(AGENT_ID)).spec
        batch = await create_batch(store, agent, [BatchTask(str(n), str(n)) for n in range(20)])
        while len(outside.tasks) < 2:  # noqa: ASYNC110 - the effects happen in another process
            await asyncio.sleep(0.02)
        await store.batches.cancel(batch.batch_id)
        async with asyncio.timeout(30):
            while (progress := await store.batches.get_progress(batch.batch_id)).ended < 20:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        runs = (await store.runs.list()).items
    await kill(worker)
    assert (progress.counts, {run.model for run in runs}) == ({"cancelled": 20}, {"scripted"})
    assert outside.tasks == {"0", "1"}


async def test_a_worker_needs_postgresql(tmp_path):
    result = await run_program(tmp_path, "worker", env={"OPPOSABLE_DATABASE_URL": f"sqlite:///{tmp_path}/s.db"})
    assert (result.code, "Set OPPOSABLE_DATABASE_URL to postgresql://" in result.err) == (2, True)
