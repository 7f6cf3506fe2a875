"""Compares a tool call over HTTP, with key, limits and records, with a plain FastAPI route.

    python benchmarks/tool_calls.py [SECONDS]        Linux only: CPU time and memory are read from /proc

Server and client are separate processes, and the client uses 16 connections. Requests per second refer to the CPU time
of the server: what one core can do, independent of the load of the machine.
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
    """Run a server; yield its process, its address and its key."""
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
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_SECOND


def get_memory_megabytes(pid: int) -> float:
    """Return the resident memory of a process in megabytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


async def send_load(url: str, key: str, seconds: float, connections: int = CONNECTIONS) -> list[float]:
    """Send requests for `seconds` over `connections`; return the seconds of each request."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}

    async def send_requests(session: aiohttp.ClientSession) -> None:
        while (started_at := time.perf_counter()) < end:
            async with session.post(url, data=BODY) as response:
                body = await response.read()
                assert response.status == 200, body
            times.append(time.perf_counter() - started_at)

    connector = aiohttp.TCPConnector(limit=connections)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
        await asyncio.gather(*(send_requests(session) for _ in range(connections)))
    return times


async def measure_server(name: str, kind: str, home: str, seconds: float) -> None:
    """Measure one server under load and print its figures."""
    with run_server(kind, home) as (running, url, key):
        await send_load(url, key, 1.0)
        started_at, before = time.perf_counter(), get_cpu_seconds(running.pid)
        times = await send_load(url, key, seconds)
        wall_seconds, cpu_seconds = time.perf_counter() - started_at, get_cpu_seconds(running.pid) - before
        times.sort()
        single_connection_times = await send_load(url, key, 2.0, connections=1)
        print(
            f"{name:18} {len(times) / cpu_seconds:8,.0f} requests per core-second  {len(times) / wall_seconds:8,.0f} per second here  "
            f"p50 {statistics.median(times) * 1e3:5.2f} ms  p99 {times[int(len(times) * 0.99)] * 1e3:6.2f} ms  "
            f"sequential p99 {sorted(single_connection_times)[int(len(single_connection_times) * 0.99)] * 1e3:5.2f} ms  {get_memory_megabytes(running.pid):4.0f} MB",
            flush=True,
        )


async def serve_plain() -> None:
    """Serve one FastAPI route."""
    from fastapi import FastAPI
    from pydantic import BaseModel

    from opposable.web.http_server import serve

    class Call(BaseModel):
        arguments: dict[str, str]

    app = FastAPI()

    @app.post("/call")
    async def call(body: Call) -> dict[str, str]:
        return body.arguments

    await serve(app, "127.0.0.1", 0, lambda url: print(url.removesuffix("/v1") + "/call", "none", flush=True))


async def serve_service(home: str) -> None:
    """Serve the service, with a key that has a rate limit and a budget."""
    from opposable.domain.specs import RateLimit
    from opposable.models.scripted import ScriptedModel
    from opposable.service.service import open_service
    from opposable.settings import Settings
    from opposable.store.keys import generate_key
    from opposable.web.http_server import serve
    from opposable.web.server import create_app

    models = {"scripted": ScriptedModel("hello")}
    async with open_service(Settings(_env_file=None, home=Path(home), roots=(Path(home),)), models) as service:
        key, key_record = generate_key("load", ("tools:write",), RateLimit(calls=10_000_000, seconds=60), 10**12)
        await service.store.keys.add(key_record)
        app = create_app(service)
        path = "/api/tools/echo/call"
        await serve(app, "127.0.0.1", 0, lambda url: print(url.removesuffix("/v1") + path, key, flush=True))


async def main(seconds: float) -> None:
    """Measure both servers in turn, twice."""
    for _ in range(2):
        with tempfile.TemporaryDirectory() as home:
            await measure_server("plain FastAPI", "plain", home, seconds)
            await measure_server("tool call", "service", home, seconds)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] in (["plain"], ["service"]):
        from uvicorn.loops.auto import auto_loop_factory

        with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
            runner.run(serve_plain() if arguments[0] == "plain" else serve_service(arguments[1]))
    else:
        asyncio.run(main(float(arguments[0]) if arguments else 5.0))
