"""Calling a trivial tool over HTTP with key, limits and records on, beside a plain FastAPI route of the same run.

    python benchmarks/tool_calls.py [SECONDS]        Linux only: CPU time and memory are read from /proc

Server and client are processes of their own; the client keeps 16 connections busy. A server's requests a second are
those per second of CPU time it used: what one core can do, whatever else the machine is at.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import orjson

CLOCK_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
CONNECTIONS = 16
BODY = orjson.dumps({"arguments": {"text": "hello"}})


@contextmanager
def run_server(kind: str, home: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A server's process, its address and its key."""
    running = subprocess.Popen(
        [sys.executable, __file__, kind, home], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent
    )
    try:
        assert running.stdout is not None
        url, key = running.stdout.readline().split()
        yield running, url, key
    finally:
        running.terminate()
        running.communicate(timeout=30)


def get_cpu_seconds(pid: int) -> float:
    """CPU seconds a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_SECOND


def get_memory_megabytes(pid: int) -> float:
    """Megabytes a process holds."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


async def send_load(url: str, key: str, seconds: float, connections: int = CONNECTIONS) -> list[float]:
    """Ask for so many seconds over so many connections; the time of each request."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}

    async def one(session: aiohttp.ClientSession) -> None:
        while (begun := time.perf_counter()) < end:
            async with session.post(url, data=BODY) as response:
                told = await response.read()
                assert response.status == 200, told
            times.append(time.perf_counter() - begun)

    connector = aiohttp.TCPConnector(limit=connections)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
        await asyncio.gather(*(one(session) for _ in range(connections)))
    return times


async def measure_server(name: str, kind: str, home: str, seconds: float) -> None:
    """One server under load: a line of figures."""
    with run_server(kind, home) as (running, url, key):
        await send_load(url, key, 1.0)
        begun, before = time.perf_counter(), get_cpu_seconds(running.pid)
        times = await send_load(url, key, seconds)
        took, spent = time.perf_counter() - begun, get_cpu_seconds(running.pid) - before
        times.sort()
        alone = await send_load(url, key, 2.0, connections=1)
        print(
            f"{name:18} {len(times) / spent:8,.0f} requests a core-second  {len(times) / took:8,.0f} a second here  "
            f"p50 {statistics.median(times) * 1e3:5.2f} ms  p99 {times[int(len(times) * 0.99)] * 1e3:6.2f} ms  "
            f"one by one p99 {sorted(alone)[int(len(alone) * 0.99)] * 1e3:5.2f} ms  {get_memory_megabytes(running.pid):4.0f} MB",
            flush=True,
        )


async def serve_plain() -> None:
    """A FastAPI route and nothing else."""
    from fastapi import FastAPI
    from pydantic import BaseModel

    from opposable.web.server import serve

    class Call(BaseModel):
        arguments: dict[str, str]

    app = FastAPI()

    @app.post("/call")
    async def call(given: Call) -> dict[str, str]:
        return given.arguments

    await serve(app, "127.0.0.1", 0, lambda url: print(url.removesuffix("/v1") + "/call", "none", flush=True))


async def serve_service(home: str) -> None:
    """The service, with a key that has a rate limit and a budget."""
    from opposable.domain.specs import RateLimit
    from opposable.models.scripted import ScriptedModel
    from opposable.service.service import open_service
    from opposable.settings import Settings
    from opposable.store.keys import generate_key
    from opposable.web.server import create_app, serve

    models = {"scripted": ScriptedModel("hello")}
    async with open_service(Settings(_env_file=None, home=Path(home), roots=(Path(home),)), models) as service:
        key, kept = generate_key("load", ("tools:write",), RateLimit(calls=10_000_000, seconds=60), 10**12)
        await service.store.keys.add(kept)
        app = create_app(service)
        path = "/api/tools/echo/call"
        await serve(app, "127.0.0.1", 0, lambda url: print(url.removesuffix("/v1") + path, key, flush=True))


async def main(seconds: float) -> None:
    """Both, in turn, twice."""
    for _ in range(2):
        with tempfile.TemporaryDirectory() as home:
            await measure_server("plain FastAPI", "plain", home, seconds)
            await measure_server("call of a tool", "service", home, seconds)


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[:1] in (["plain"], ["service"]):
        from opposable.web.server import get_loop_factory

        with asyncio.Runner(loop_factory=get_loop_factory()) as runner:
            runner.run(serve_plain() if given[0] == "plain" else serve_service(given[1]))
    else:
        asyncio.run(main(float(given[0]) if given else 5.0))
