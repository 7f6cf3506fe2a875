"""Measures a service that stores runs, events, calls and conversations in SQLite.

    python benchmarks/service.py run      CPU time of one run; runs per second with 200 concurrent runs
    python benchmarks/service.py http     200 concurrent streamed chats over HTTP, three calls each; Linux only

`run` measures this process alone, `http` two processes (service and clients).
"""

import asyncio
import gc
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from opposable import Client, Message, ModelOptions, ToolDefinition
from opposable.domain.events import ModelEvent
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.service.service import open_service
from opposable.settings import Settings

CONCURRENT_RUNS = 200
REPLY_SECONDS = 0.065
"""Seconds per reply of the model; with two replies per run, 200 concurrent runs allow about 1,500 per second."""


class CallingModel:
    """A model that makes `call_count` calls, one per reply, and then answers."""

    name = "caller"

    def __init__(self, call_count: int, reply_seconds: float = 0.0) -> None:
        self._call_count = call_count
        self._reply_seconds = reply_seconds

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        if self._reply_seconds:
            await asyncio.sleep(self._reply_seconds)
        finished_calls = 0
        for message in reversed(messages):
            if message.role == "user":
                break
            finished_calls += message.role == "tool"
        line = (
            reply_with_calls(tool_call("calculator", f'{{"expression": "{finished_calls}+2"}}', f"c{finished_calls}"))
            if finished_calls < self._call_count
            else "It is 4."
        )
        async for part in ScriptedModel(line).stream(messages, tools, options or ModelOptions()):
            yield part

    async def aclose(self) -> None:
        pass


async def measure_runs(
    model: CallingModel, count: int, concurrency: int, *, stores_conversations: bool
) -> tuple[float, float, list[float]]:
    """Return CPU and wall seconds of `count` runs, and the seconds of each.

    With `stores_conversations` each run has its own conversation.
    """
    durations: list[float] = []
    with tempfile.TemporaryDirectory() as home:
        async with open_service(Settings(_env_file=None, home=Path(home)), {"m": model}) as service:
            spec = (await service.store.agents.get("default")).spec
            gate = asyncio.Semaphore(concurrency)

            async def one(n: int) -> None:
                async with gate:
                    started_at = time.perf_counter()
                    conversation = f"c{n}" if stores_conversations else ""
                    handle = await service.chat(
                        spec, "2+2?", conversation_id=conversation, stream=False, is_new_conversation=True
                    )
                    run = await handle.wait_until_ended()
                    assert (run.status, run.tool_calls) == ("finished", 1), run
                    durations.append(time.perf_counter() - started_at)

            await asyncio.gather(*(one(-1 - n) for n in range(20)))
            durations.clear()
            gc.collect()
            cpu, wall = time.process_time(), time.perf_counter()
            await asyncio.gather(*(one(n) for n in range(count)))
            wall = time.perf_counter() - wall
        cpu = time.process_time() - cpu  # includes the final writes
    return cpu, wall, durations


async def measure_in_process() -> None:
    for stores_conversations in (False, True):
        measurements = [
            await measure_runs(CallingModel(1), 300, 1, stores_conversations=stores_conversations) for _ in range(3)
        ]
        micros = statistics.median(cpu / 300 for cpu, _, _ in measurements) * 1e6
        print(
            f"one run, one call{', stored in a conversation' if stores_conversations else ''}: {micros:.0f} µs of CPU"
        )
        measurements = [
            await measure_runs(
                CallingModel(1, REPLY_SECONDS), 2000, CONCURRENT_RUNS, stores_conversations=stores_conversations
            )
            for _ in range(3)
        ]
        speed = statistics.median(2000 / wall for _, wall, _ in measurements)
        p50 = statistics.median(statistics.median(durations) for _, _, durations in measurements) * 1e3
        print(
            f"  {CONCURRENT_RUNS} concurrent, a model of {2 * REPLY_SECONDS * 1e3:.0f} ms a run: {speed:.0f} runs/s, p50 {p50:.0f} ms"
        )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


async def run_server(home: str) -> None:
    from opposable.web import http_server, server

    settings = Settings(_env_file=None, home=Path(home))
    async with open_service(settings, {"m": CallingModel(3, 0.05)}) as service:
        await http_server.serve(server.create_app(service), "127.0.0.1", 0, lambda url: print(url, flush=True))


def measure_over_http() -> None:
    with tempfile.TemporaryDirectory() as home:
        process = subprocess.Popen([sys.executable, __file__, "serve", home], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            url, before = process.stdout.readline().strip(), get_cpu_seconds(process.pid)
            asyncio.run(measure_chats(url))
            print(
                f"CPU of the service {(get_cpu_seconds(process.pid) - before) / (5 * CONCURRENT_RUNS + 10) * 1e3:.1f} ms per chat"
            )
            print(f"peak memory of the service {get_peak_megabytes(process.pid):.0f} MB")
        finally:
            process.terminate()
            process.wait()
        asyncio.run(count_executions(home))


def get_cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def get_peak_megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


async def measure_chats(url: str) -> None:
    errors: list[str] = []
    durations: list[float] = []
    first: list[float] = []

    async def one(client: Client, n: int) -> None:
        started_at, seen = time.perf_counter(), 0
        kinds: list[str] = []
        async for event in client.stream("2+2?", conversation_id=f"c{n}"):
            seen = seen or first.append(time.perf_counter() - started_at) or 1
            kinds.append(event.kind)
        durations.append(time.perf_counter() - started_at)
        if kinds.count("tool_finished") != 3 or kinds[-1] != "run_finished":
            errors.append(str(kinds))

    async with Client(url) as client:
        await asyncio.gather(*(one(client, -1 - n) for n in range(10)))
        durations.clear()
        first.clear()
        wall = time.perf_counter()
        for wave in range(5):
            done = await asyncio.gather(
                *(one(client, wave * CONCURRENT_RUNS + n) for n in range(CONCURRENT_RUNS)), return_exceptions=True
            )
            errors += [repr(error) for error in done if error is not None]
        wall = time.perf_counter() - wall
    cuts = statistics.quantiles(durations, n=100)
    print(
        f"{5 * CONCURRENT_RUNS} chats in waves of {CONCURRENT_RUNS}: {len(errors)} errors {errors[:2]}, {5 * CONCURRENT_RUNS / wall:.0f} chats/s"
    )
    print(
        f"p50 {cuts[49] * 1e3:.0f} ms, p99 {cuts[98] * 1e3:.0f} ms, first event p50 {statistics.median(first) * 1e3:.0f} ms"
    )


async def count_executions(home: str) -> None:
    from opposable.store.factory import open_store

    async with open_store(f"sqlite:///{home}/opposable.sqlite") as store:
        call_keys = [(execution.run_id, execution.call_id) async for execution in store.executions.export()]
        print(
            f"executions recorded: {len(call_keys)}, distinct: {len(set(call_keys))}, expected: {3 * (5 * CONCURRENT_RUNS + 10)}"
        )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", home]:
            asyncio.run(run_server(home))
        case ["http"]:
            measure_over_http()
        case _:
            asyncio.run(measure_in_process())
