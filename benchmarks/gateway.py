"""Measures what the gateway adds to a request and to a streamed delta of a model server.

    python benchmarks/gateway.py        Linux only: the gateway's CPU time is read from /proc

Server, gateway and client are separate processes. Milliseconds are the median time of sequential requests, through the
gateway and directly to the server in the same round. Microseconds are the CPU time of the gateway.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import orjson

PROXY_SCRIPT = Path(__file__).parent / "plain_proxy.py"
SERVER_SCRIPT = Path(__file__).parent / "scripted_server.py"
CLOCK_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
INTEGER = {"type": "integer"}
PARAMETERS = {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}, "required": ["a", "b"]}
TOOLS = [
    {
        "type": "function",
        "function": {"name": f"add_{n}" if n else "add", "description": "Add.", "parameters": PARAMETERS},
    }
    for n in range(10)
]
REQUEST_BODY = {"model": "m", "messages": [{"role": "user", "content": "go"}]}
STREAM_DELTA_COUNT = 5000


@contextmanager
def run_process(*command: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a process and yield it with its address, the last word of its first line."""
    running = subprocess.Popen(
        [sys.executable, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert running.stdout is not None
        address = running.stdout.readline().split()[-1]
        threading.Thread(target=running.stdout.read, daemon=True).start()  # a full pipe of its log would block it
        yield running, address
    finally:
        running.kill()
        running.communicate()


def get_cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_SECOND


async def send_request(session: aiohttp.ClientSession, url: str, body: bytes) -> bytes:
    """Send a request and return the whole answer."""
    async with session.post(f"{url}/chat/completions", data=body) as response:
        assert response.status == 200, await response.text()
        return await response.read()


async def time_requests(session: aiohttp.ClientSession, url: str, body: bytes, count: int) -> list[float]:
    """Return the seconds of each of several sequential requests."""
    times = []
    for _ in range(count):
        started_at = time.perf_counter()
        await send_request(session, url, body)
        times.append(time.perf_counter() - started_at)
    return times


async def measure_requests(session: aiohttp.ClientSession, server: str, scenario: str, **body_fields: object) -> str:
    """Measure what the gateway adds to a whole request."""
    upstream = f"{server}/{scenario}/v1"
    body = orjson.dumps(REQUEST_BODY | body_fields)
    with run_process("-m", "opposable", "serve", "--model", f"{upstream}#m", "--port", 0) as (gateway, url):
        await time_requests(session, url, body, 200)
        direct_times, gateway_times = [], []
        started_at = get_cpu_seconds(gateway.pid)
        for _ in range(10):
            direct_times += await time_requests(session, upstream, body, 200)
            gateway_times += await time_requests(session, url, body, 200)
        cpu_seconds = (get_cpu_seconds(gateway.pid) - started_at) / len(gateway_times)
    direct, through = statistics.median(direct_times) * 1e3, statistics.median(gateway_times) * 1e3
    added = through - direct
    return (
        f"direct {direct:.2f} ms  gateway {through:.2f} ms  added {added:.2f} ms  "
        f"gateway CPU {cpu_seconds * 1e6:.0f} µs per request"
    )


async def measure_proxy_cpu(session: aiohttp.ClientSession, server: str, scenario: str, **body_fields: object) -> str:
    """Measure the CPU time of the gateway for a relayed request, and that of a proxy of plain aiohttp."""
    upstream = f"{server}/{scenario}/v1"
    body = orjson.dumps(REQUEST_BODY | body_fields)
    count = 500
    figures = {}
    commands = {
        "gateway": ("-m", "opposable", "serve", "--model", f"{upstream}#m", "--port", 0),
        "plain aiohttp": (PROXY_SCRIPT, upstream),
    }
    for name, command in commands.items():
        with run_process(*command) as (process, url):
            await time_requests(session, url, body, 200)
            started_at = get_cpu_seconds(process.pid)
            await time_requests(session, url, body, count)
            figures[name] = (get_cpu_seconds(process.pid) - started_at) / count
    return "  ".join(f"{name} CPU {seconds * 1e6:.0f} µs per request" for name, seconds in figures.items())


async def measure_stream_deltas(session: aiohttp.ClientSession, server: str, kind: str, **body_fields: object) -> str:
    """Measure the CPU time of the gateway per streamed delta."""
    upstream = f"{server}/{kind}-{STREAM_DELTA_COUNT}/v1"
    body = orjson.dumps(REQUEST_BODY | {"stream": True} | body_fields)
    with run_process("-m", "opposable", "serve", "--model", f"{upstream}#m", "--port", 0) as (gateway, url):
        assert (await send_request(session, url, body)).count(b'"content":"word') >= STREAM_DELTA_COUNT - 1
        figures = []
        for _ in range(5):
            started_at = get_cpu_seconds(gateway.pid)
            for _ in range(4):
                await send_request(session, url, body)
            figures.append((get_cpu_seconds(gateway.pid) - started_at) / 4 / STREAM_DELTA_COUNT)
    return f"gateway CPU {statistics.median(figures) * 1e6:.1f} µs per delta"


async def main() -> None:
    """Print all figures, one line each."""
    headers = {"content-type": "application/json"}
    with run_process(SERVER_SCRIPT) as (_, server):
        async with aiohttp.ClientSession(headers=headers, cookie_jar=aiohttp.DummyCookieJar()) as session:
            print("plain request       ", await measure_requests(session, server, "calls-0"), flush=True)
            print("call of 10 tools    ", await measure_requests(session, server, "calls-1", tools=TOOLS), flush=True)
            print("relayed request     ", await measure_proxy_cpu(session, server, "calls-0"), flush=True)
            print("plain, in bursts    ", await measure_stream_deltas(session, server, "stream"), flush=True)
            print(
                "parsed, in bursts  ", await measure_stream_deltas(session, server, "stream", tools=TOOLS), flush=True
            )
            print("plain, one by one   ", await measure_stream_deltas(session, server, "paced"), flush=True)
            print("parsed, one by one ", await measure_stream_deltas(session, server, "paced", tools=TOOLS), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
