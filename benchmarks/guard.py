"""What guarding costs: microseconds a call while all goes well and while it does not, and what memory costs at a million.

Run: python benchmarks/guard.py [--failures 1000000] [--calls 50]

Figures are CPU time of this process (wall time where a database is asked), the best of several rounds, on scripted
models: only the difference between rows says something, since the model costs nothing here.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from opposable import Agent, Limits, ScriptedModel, ToolFailed, ToolLibrary
from opposable.agent.guarding import GUARDED, UNGUARDED, Guarding
from opposable.agent.learning import FailureMemory
from opposable.domain.records import Failure, canonical_sha256, now
from opposable.models.scripted import call, calls
from opposable.store import open_store
from opposable.store.store import Store

LIMITS = Limits(turns=None, tool_calls=None)
TOOLS = 2000


async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def fail(a: int) -> int:
    """Fail."""
    raise ToolFailed(f"{a} is not there.")


async def run_us(name: str, number: int, guarding: Guarding, memory: FailureMemory | None = None) -> float:
    """Microseconds a call, of a run with so many."""
    learning = (memory or FailureMemory()).of()
    best = float("inf")
    for _ in range(7):
        wanted = [
            call(name, f'{{"a": {n}, "b": 2}}' if name == "add" else f'{{"a": {n}}}', f"c{n}") for n in range(number)
        ]
        model = ScriptedModel(*map(calls, wanted), "done")
        agent = Agent(model, [add, fail], limits=LIMITS, guarding=guarding, learning=learning)
        start = time.process_time()
        await agent.run("go")
        best = min(best, time.process_time() - start)
    return best / number * 1e6


def failure(number: int) -> Failure:
    """The failure of that number: 500 of each of 2,000 tools, every third of one agent alone."""
    correction = {"given": {"q": f"x{number}"}, "right": {"q": f"y{number}"}} if number % 3 == 0 else None
    message = f'{{"q":"x{number}"}}\nThere is no x{number}.'
    scope = f"agent{number % 7}" if number % 3 == 1 else ""
    return Failure(
        f"tool{number % TOOLS}",
        "",
        "failed",
        canonical_sha256([number]),
        scope,
        message,
        last_seen=now(),
        correction=correction,
    )


def library(size: int) -> ToolLibrary:
    """So many tools of those with failures."""
    made = ToolLibrary()
    for n in range(size):

        async def one(q: str) -> str:
            """Look something up."""
            return q

        one.__name__ = f"tool{n}"
        made.register(one)
    return made


async def stored(store: Store, number: int) -> dict[str, float]:
    """What a store with so many failures costs: the first run's reading, later ones', remembering."""
    for start in range(0, number, 5000):
        await store.failures.add([failure(n) for n in range(start, min(start + 5000, number))])
    figures: dict[str, float] = {}
    for size in (10, 100):
        tools = library(size)
        async with FailureMemory(store.failures) as memory:
            begun = time.perf_counter()
            patterns = await memory.patterns(tools, "agent1")
            figures[f"first run of {size} tools, ms"] = (time.perf_counter() - begun) * 1e3
            begun = time.process_time()
            for _ in range(1000):
                patterns = await memory.patterns(tools, "agent1")
            figures[f"later run of {size} tools, µs"] = (time.process_time() - begun) * 1e3
            told = memory.told(tools.definitions, patterns, tools, "en")
            begun = time.process_time()
            for _ in range(1000):
                told = memory.told(tools.definitions, patterns, tools, "en")
            figures[f"warnings of {size} tools, µs"] = (time.process_time() - begun) * 1e3
            assert told is not tools.definitions
    async with FailureMemory(store.failures) as memory:
        learning = memory.of("agent1")
        begun = time.process_time()
        for n in range(2000):
            learning.failed(f"tool{n % TOOLS}", "", "failed", {"q": f"new{n}"}, f"There is no new{n}.")
        figures["remembering one, µs"] = (time.process_time() - begun) / 2000 * 1e6
        begun = time.perf_counter()
        await memory.aclose()
        figures["writing 2,000 of them, ms"] = (time.perf_counter() - begun) * 1e3
    return figures


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--failures", type=int, default=1_000_000)
    parser.add_argument("--calls", type=int, default=50)
    given = parser.parse_args()
    for name, what in (("add", "calls that work"), ("fail", "calls that fail")):
        for how, guarding in (("not guarded", UNGUARDED), ("guarded", GUARDED)):
            print(f"{what}, {how}: {await run_us(name, given.calls, guarding):,.1f} µs a call", flush=True)
    longer = await run_us("add", given.calls * 10, GUARDED) - await run_us("add", given.calls * 10, UNGUARDED)
    print(f"guarding of {given.calls * 10} calls that work: {longer:,.1f} µs a call", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        async with open_store(f"sqlite:///{Path(folder) / 'failures.sqlite'}") as store:
            for what, figure in (await stored(store, given.failures)).items():
                print(f"{given.failures:,} failures stored, {what}: {figure:,.1f}", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
