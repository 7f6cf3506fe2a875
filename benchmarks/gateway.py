"""Measures what the gateway adds to a request and to a streamed delta of a model server.

    python benchmarks/gateway.py        Linux only: CPU time and memory are read from /proc
    python benchmarks/gateway.py --litellm /path/to/bin/litellm --streams 100000

Server, gateway and client are separate processes. Milliseconds are the median time of sequential requests, through the
gateway and directly to the server in the same round. Microseconds are the CPU time of the gateway.
"""

import argparse
import asyncio
import os
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
CONCURRENT_CLIENTS = 8
LITELLM_KEY = "sk-" + "0123456789abcdef" * 4
"""LiteLLM starts only with a key; the other servers here accept any."""


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


@contextmanager
def run_litellm(program: str, upstream: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the proxy of LiteLLM and yield it with its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = [program, "--model", "openai/m", "--alias", "m", "--api_base", upstream, "--host", "127.0.0.1"]
    environment = os.environ | {
        "OPENAI_API_KEY": "none",
        "LITELLM_MASTER_KEY": LITELLM_KEY,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
    }
    running = subprocess.Popen(
        [*command, "--port", port], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
    )
    try:
        while running.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", int(port))):
                break
            time.sleep(0.2)
        yield running, f"http://127.0.0.1:{port}/v1"
    finally:
        running.kill()
        running.wait()


async def measure_proxies(session: aiohttp.ClientSession, server: str, litellm: str) -> None:
    """Print the time that each proxy adds to a relayed request, and how many requests it serves on one core."""
    upstream = f"{server}/calls-0/v1"
    body = orjson.dumps(REQUEST_BODY)
    gateway = ("-m", "opposable", "serve", "--model", f"{upstream}#m", "--port", 0)
    proxies = {"gateway": run_process(*gateway), "plain aiohttp": run_process(PROXY_SCRIPT, upstream)}
    if litellm:
        proxies["litellm"] = run_litellm(litellm, upstream)
    direct_times = await time_requests(session, upstream, body, 200)
    for name, proxy in proxies.items():
        with proxy as (process, url):
            await time_requests(session, url, body, 200)
            times: list[float] = []
            for _ in range(3):  # in turns, so that both see the same load of the machine
                direct_times += await time_requests(session, upstream, body, 100)
                times += await time_requests(session, url, body, 100)
            started_at = get_cpu_seconds(process.pid)
            await asyncio.gather(*(time_requests(session, url, body, 100) for _ in range(CONCURRENT_CLIENTS)))
            cpu_seconds = (get_cpu_seconds(process.pid) - started_at) / (100 * CONCURRENT_CLIENTS)
        added = (statistics.median(times) - statistics.median(direct_times)) * 1e3
        figures = f"added {added:.2f} ms  CPU {cpu_seconds * 1e6:.0f} µs per request"
        print(f"relayed, {name:<13}", f"{figures}  {1 / cpu_seconds:,.0f} requests/s per core", flush=True)


async def measure_memory(session: aiohttp.ClientSession, server: str, count: int) -> str:
    """Measure the memory of the gateway after shares of many streamed requests, with and without tools."""
    upstream = f"{server}/stream-20/v1"
    bodies = [orjson.dumps(REQUEST_BODY | {"stream": True} | fields) for fields in ({}, {"tools": TOOLS})]
    with run_process("-m", "opposable", "serve", "--model", f"{upstream}#m", "--port", 0) as (gateway, url):
        megabytes = []
        for share in (0.1, 0.4, 0.25, 0.25):  # the first ones fill the caches
            rounds = max(round(count * share) // CONCURRENT_CLIENTS, 1)
            await asyncio.gather(
                *(time_requests(session, url, bodies[n % 2], rounds) for n in range(CONCURRENT_CLIENTS))
            )
            megabytes.append(get_resident_megabytes(gateway.pid))
    places = ("10 %", "50 %", "75 %", "100 %")
    sizes = "  ".join(f"{place}: {size:.1f} MB" for place, size in zip(places, megabytes, strict=True))
    return f"after {count:,} streams  {sizes}"


def get_resident_megabytes(pid: int) -> float:
    """Return the memory of a process."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


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


def parse_arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--litellm", default="", help="the program `litellm` of an environment with litellm[proxy]")
    parser.add_argument("--streams", type=int, default=2_000, help="streamed requests for the memory (default: 2000)")
    parser.add_argument("--only", choices=["proxies", "memory"], help="measure only this")
    return parser.parse_args()


async def main(arguments: argparse.Namespace) -> None:
    """Print all figures, one line each."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {LITELLM_KEY}"}
    with run_process(SERVER_SCRIPT) as (_, server):
        async with aiohttp.ClientSession(headers=headers, cookie_jar=aiohttp.DummyCookieJar()) as session:
            if arguments.only != "memory":
                await measure_proxies(session, server, arguments.litellm)
            if arguments.only != "proxies":
                print("memory              ", await measure_memory(session, server, arguments.streams), flush=True)
            if arguments.only is not None:
                return
            print("plain request       ", await measure_requests(session, server, "calls-0"), flush=True)
            print("call of 10 tools    ", await measure_requests(session, server, "calls-1", tools=TOOLS), flush=True)
            print("plain, in bursts    ", await measure_stream_deltas(session, server, "stream"), flush=True)
            print(
                "parsed, in bursts  ", await measure_stream_deltas(session, server, "stream", tools=TOOLS), flush=True
            )
            print("plain, one by one   ", await measure_stream_deltas(session, server, "paced"), flush=True)
            print("parsed, one by one ", await measure_stream_deltas(session, server, "paced", tools=TOOLS), flush=True)


if __name__ == "__main__":
    asyncio.run(main(parse_arguments()))
