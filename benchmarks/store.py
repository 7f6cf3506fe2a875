"""What the store costs: microseconds to record a call, rows written a second, and look-ups among many stored failures.

Run: python benchmarks/store.py [--url sqlite:///bench.db] [--rows 20000] [--failures 1000000]
"""

import argparse
import asyncio
import random
import tempfile
import time
from pathlib import Path

from opposable.domain.records import Execution, Failure, canonical_sha256, get_utc_now
from opposable.store import open_store
from opposable.store.recorder import Recorder

ARGUMENTS = {
    "query": "the weather in Paris tomorrow",
    "limit": 10,
    "filter": {"url": "https://example.com/a?x=1", "tags": ["a", "天气"], "token": "hunter2"},
}
RESULT = "Sunny, 21 degrees, light wind from the west. " * 10
KINDS = ("timeout", "failed", "invalid_arguments", "unavailable")
BATCH_ROWS = 5000


def make_execution(number: int) -> Execution:
    return Execution(
        f"e{number:09}",
        f"r{number // 10}",
        f"c{number}",
        f"tool{number % 50}",
        "tool",
        ARGUMENTS,
        RESULT,
        get_utc_now(),
        0.01,
    )


def make_failure(number: int) -> Failure:
    """The failure of that number: 2,000 tools, 500 calls of each."""
    fingerprint = canonical_sha256([number // 2000])
    scope = "" if number % 3 else f"agent{number % 7}"
    return Failure(
        f"tool{number % 2000}",
        "run",
        KINDS[number % 4],
        fingerprint,
        scope,
        "It took too long.",
        count=1 + number % 2,
        last_seen=get_utc_now(),
    )


async def measure_recording(store, row_count: int) -> dict[str, float]:
    """Taking a record, and writing all of them."""
    calls = [make_execution(number) for number in range(row_count)]
    begun = time.perf_counter()
    async with Recorder(
        store.executions, store.runs, max_queued_records=row_count, close_timeout_seconds=600
    ) as recorder:
        taking = time.perf_counter()
        for one in calls:
            recorder.record(one)
        taken = time.perf_counter() - taking
    written = time.perf_counter() - begun
    assert recorder.status.written == row_count
    return {"record(), µs": taken / row_count * 1e6, "written, rows/s": row_count / (written - taken)}


async def time_queries(count: int, query) -> tuple[float, float]:
    """The median and the 99th percentile of some questions, in microseconds."""
    took = []
    for _ in range(count):
        begun = time.perf_counter()
        await query()
        took.append(time.perf_counter() - begun)
    took.sort()
    return took[len(took) // 2] * 1e6, took[int(len(took) * 0.99)] * 1e6


async def measure_failures(store, count: int) -> dict[str, float]:
    """Filling the table, and asking it."""
    begun = time.perf_counter()
    for start in range(0, count, BATCH_ROWS):
        await store.failures.add([make_failure(number) for number in range(start, min(start + BATCH_ROWS, count))])
    filling = time.perf_counter() - begun
    chance = random.Random(1)

    async def known() -> None:
        one = make_failure(chance.randrange(count))
        assert await store.failures.get_failures_for_call(one.tool_id, one.action, one.fingerprint, ["", one.scope])

    async def unknown() -> None:
        assert not await store.failures.get_failures_for_call(f"tool{chance.randrange(2000)}", "run", "new")

    async def of_tools() -> None:
        assert await store.failures.get_failures_by_tool([f"tool{1 + 2 * chance.randrange(1000)}" for _ in range(10)])

    async def again() -> None:
        await store.failures.add([make_failure(chance.randrange(count))])

    figures = {"failures stored, rows/s": count / filling}
    for name, ask in (
        ("a known call", known),
        ("an unknown call", unknown),
        ("10 tools' last failures", of_tools),
        ("one more failure", again),
    ):
        figures[f"{name}, median µs"], figures[f"{name}, p99 µs"] = await time_queries(500, ask)
    return figures


async def main(url: str, rows: int, count: int) -> None:
    async with open_store(url) as store:
        figures = await measure_recording(store, rows)
        figures |= await measure_failures(store, count)
    print(f"{url.partition(':')[0]}, {rows:,} calls recorded, {count:,} failures stored")
    for name, figure in figures.items():
        print(f"{name:40} {figure:12,.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="an empty database (default: a new SQLite file, removed at the end)")
    parser.add_argument("--rows", type=int, default=20_000, help="calls to record (default: 20000)")
    parser.add_argument("--failures", type=int, default=1_000_000, help="failures to store (default: 1000000)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(main(chosen.url or f"sqlite:///{Path(directory)}/bench.db", chosen.rows, chosen.failures))
