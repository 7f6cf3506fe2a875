"""What the gateway adds to a request and to a streamed piece, beside the server it stands in front of.

    python benchmarks/gateway.py        Linux only: the gateway's CPU time is read from /proc

Server, gateway and client are processes of their own. Milliseconds are the median time of one request, asked one after
the other, through the gateway and straight to the server in the same round; microseconds are the gateway's CPU time.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import orjson

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
    """A process and the last word of its first line, which is its address."""
    running = subprocess.Popen(
        [sys.executable, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert running.stdout is not None
        yield running, running.stdout.readline().split()[-1]
    finally:
        running.kill()
        running.communicate()


def get_cpu_seconds(pid: int) -> float:
    """CPU seconds a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_SECOND


async def send_request(session: aiohttp.ClientSession, url: str, body: bytes) -> bytes:
    """One whole answer."""
    async with session.post(f"{url}/chat/completions", data=body) as response:
        assert response.status == 200, await response.text()
        return await response.read()


async def time_requests(session: aiohttp.ClientSession, url: str, body: bytes, count: int) -> list[float]:
    """The time of each of several requests, one after the other."""
    found = []
    for _ in range(count):
        begun = time.perf_counter()
        await send_request(session, url, body)
        found.append(time.perf_counter() - begun)
    return found


async def measure_requests(session: aiohttp.ClientSession, server: str, scenario: str, **body_fields: object) -> str:
    """Whole requests: what the gateway adds to each."""
    upstream = f"{server}/{scenario}/v1"
    body = orjson.dumps(REQUEST_BODY | body_fields)
    with run_process("-m", "opposable", "serve", "--model", f"{upstream}#m", "--port", 0) as (gateway, url):
        await time_requests(session, url, body, 200)
        straight, through = [], []
        begun = get_cpu_seconds(gateway.pid)
        for _ in range(10):
            straight += await time_requests(session, upstream, body, 200)
            through += await time_requests(session, url, body, 200)
        spent = (get_cpu_seconds(gateway.pid) - begun) / len(through)
    a, b = statistics.median(straight) * 1e3, statistics.median(through) * 1e3
    return f"straight {a:.2f} ms  through {b:.2f} ms  added {b - a:.2f} ms  gateway CPU {spent * 1e6:.0f} µs a request"


async def measure_stream_deltas(session: aiohttp.ClientSession, server: str, kind: str, **body_fields: object) -> str:
    """Streams: what a piece costs the gateway."""
    upstream = f"{server}/{kind}-{STREAM_DELTA_COUNT}/v1"
    body = orjson.dumps(REQUEST_BODY | {"stream": True} | body_fields)
    with run_process("-m", "opposable", "serve", "--model", f"{upstream}#m", "--port", 0) as (gateway, url):
        assert (await send_request(session, url, body)).count(b'"content":"word') >= STREAM_DELTA_COUNT - 1
        figures = []
        for _ in range(5):
            begun = get_cpu_seconds(gateway.pid)
            for _ in range(4):
                await send_request(session, url, body)
            figures.append((get_cpu_seconds(gateway.pid) - begun) / 4 / STREAM_DELTA_COUNT)
    return f"gateway CPU {statistics.median(figures) * 1e6:.1f} µs a piece"


async def main() -> None:
    """All of them, a line each."""
    headers = {"content-type": "application/json"}
    with run_process(SERVER_SCRIPT) as (_, server):
        async with aiohttp.ClientSession(headers=headers, cookie_jar=aiohttp.DummyCookieJar()) as session:
            print("plain request       ", await measure_requests(session, server, "calls-0"), flush=True)
            print("call of 10 tools    ", await measure_requests(session, server, "calls-1", tools=TOOLS), flush=True)
            print("plain, in bursts    ", await measure_stream_deltas(session, server, "stream"), flush=True)
            print(
                "watched, in bursts  ", await measure_stream_deltas(session, server, "stream", tools=TOOLS), flush=True
            )
            print("plain, one by one   ", await measure_stream_deltas(session, server, "paced"), flush=True)
            print(
                "watched, one by one ", await measure_stream_deltas(session, server, "paced", tools=TOOLS), flush=True
            )


if __name__ == "__main__":
    asyncio.run(main())
