"""Measures the store: recording a call, writing rows, and queries among many stored failures.

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
    """Make the failure with this number, of 2,000 tools with 500 calls each."""
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
    """Measure recording one call, and writing all of them."""
    calls = [make_execution(number) for number in range(row_count)]
    started_at = time.perf_counter()
    async with Recorder(
        store.executions, store.runs, max_queued_records=row_count, close_timeout_seconds=600
    ) as recorder:
        recording_started_at = time.perf_counter()
        for call in calls:
            recorder.record(call)
        recording_seconds = time.perf_counter() - recording_started_at
    total_seconds = time.perf_counter() - started_at
    assert recorder.status.written == row_count
    return {
        "record(), µs": recording_seconds / row_count * 1e6,
        "written, rows/s": row_count / (total_seconds - recording_seconds),
    }


async def time_queries(count: int, query) -> tuple[float, float]:
    """Return the median and the 99th percentile of a query, in microseconds."""
    durations = []
    for _ in range(count):
        started_at = time.perf_counter()
        await query()
        durations.append(time.perf_counter() - started_at)
    durations.sort()
    return durations[len(durations) // 2] * 1e6, durations[int(len(durations) * 0.99)] * 1e6


async def measure_failures(store, count: int) -> dict[str, float]:
    """Measure filling the table and querying it."""
    started_at = time.perf_counter()
    for start in range(0, count, BATCH_ROWS):
        await store.failures.add([make_failure(number) for number in range(start, min(start + BATCH_ROWS, count))])
    filling_seconds = time.perf_counter() - started_at
    rng = random.Random(1)

    async def query_known_failure() -> None:
        assert await store.failures.get(make_failure(rng.randrange(count)).failure_id) is not None

    async def query_unknown_failure() -> None:
        assert await store.failures.get(make_failure(count + rng.randrange(count)).failure_id) is None

    async def query_tools() -> None:
        assert await store.failures.get_failures_by_tool([f"tool{1 + 2 * rng.randrange(1000)}" for _ in range(10)])

    async def add_failure() -> None:
        await store.failures.add([make_failure(rng.randrange(count))])

    figures = {"failures stored, rows/s": count / filling_seconds}
    for name, query in (
        ("a known failure", query_known_failure),
        ("an unknown failure", query_unknown_failure),
        ("10 tools' last failures", query_tools),
        ("one more failure", add_failure),
    ):
        figures[f"{name}, median µs"], figures[f"{name}, p99 µs"] = await time_queries(500, query)
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
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(main(options.url or f"sqlite:///{Path(directory)}/bench.db", options.rows, options.failures))
