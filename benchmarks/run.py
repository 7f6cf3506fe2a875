"""Compares the cost of a run, a streamed delta and a tool with a bare loop on the same machine.

    python benchmarks/run.py            all cases, a table; --json for scripts; name cases to run only some

Figures are the CPU time of this process, the median of several rounds. The scripted server runs in another process. The
bare loop (aiohttp and orjson, no framework) runs in the same rounds. On a noisy machine only the ratio is meaningful.
"""

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import orjson

from opposable import Agent, Limits, RunFinished, TextDelta, ToolLibrary

SERVER_SCRIPT = Path(__file__).parent / "scripted_server.py"
Case = Callable[[str], Awaitable[dict[str, float]]]


def add(a: int, b: int) -> int:
    """Add two integers.

    Args:
        a: the first integer
        b: the second integer
    """
    return a + b


class BareLoop:
    """The loop without a framework: the minimum cost of a Python agent on aiohttp."""

    def __init__(self, url: str) -> None:
        self.url = f"{url}/chat/completions"
        self.session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        parameters = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
        self.tools = [{"type": "function", "function": {"name": "add", "parameters": parameters}}]

    async def run(self, task: str) -> str:
        messages = [{"role": "user", "content": task}]
        while True:
            body = orjson.dumps({"model": "m", "messages": messages, "tools": self.tools})
            async with self.session.post(self.url, data=body) as response:
                message = orjson.loads(await response.read())["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                return message["content"]
            for call in message["tool_calls"]:
                value = add(**orjson.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": str(value)})

    async def count_stream_deltas(self, task: str) -> int:
        body = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": task}], "stream": True})
        count, rest = 0, b""
        async with self.session.post(self.url, data=body) as response:
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.startswith(b"data: {") and orjson.loads(line[6:])["choices"][0]["delta"].get("content"):
                        count += 1
        return count


async def measure_cpu_us(work: Callable[[], Awaitable[object]], times: int) -> float:
    """Return the CPU microseconds of one `work`, over `times` calls."""
    gc.collect()
    start = time.process_time()
    for _ in range(times):
        await work()
    return (time.process_time() - start) / times * 1e6


async def compare_with_bare(
    ours: Callable[[], Awaitable[object]], bare: Callable[[], Awaitable[object]], times: int, rounds: int = 5
) -> dict[str, float]:
    """Measure both in each round; return the medians and the median ratio."""
    await ours()
    await bare()
    pairs = [(await measure_cpu_us(ours, times), await measure_cpu_us(bare, times)) for _ in range(rounds)]
    return {
        "ours_us": statistics.median(a for a, _ in pairs),
        "bare_us": statistics.median(b for _, b in pairs),
        "ratio": statistics.median(a / b for a, b in pairs),
    }


async def one_call(url: str) -> dict[str, float]:
    """A run with one tool call."""
    return await compare_runs(f"{url}/calls-1/v1", times=150)


async def fifty_calls(url: str) -> dict[str, float]:
    """A run with fifty sequential tool calls."""
    return await compare_runs(f"{url}/calls-50/v1", times=8)


async def compare_runs(url: str, times: int) -> dict[str, float]:
    bare = BareLoop(url)
    async with Agent(f"{url}#m", [add], limits=Limits(turns=200, tool_calls=None)) as agent, bare.session:
        return await compare_with_bare(lambda: agent.run("go"), lambda: bare.run("go"), times)


async def streamed_piece(url: str) -> dict[str, float]:
    """A delta of a streamed answer, with detection of calls in the text."""
    url, delta_count = f"{url}/stream-2000/v1", 2000
    bare = BareLoop(url)
    async with Agent(f"{url}#m", [add]) as agent, bare.session:

        async def stream_run() -> None:
            count = 0
            async for event in agent.stream("go"):
                count += type(event) is TextDelta
            assert count == delta_count, count

        figures = await compare_with_bare(stream_run, lambda: bare.count_stream_deltas("go"), times=5)
    return {
        "ours_us": figures["ours_us"] / delta_count,
        "bare_us": figures["bare_us"] / delta_count,
        "ratio": figures["ratio"],
    }


async def many_at_once(url: str) -> dict[str, float]:
    """Runs per second: 200 concurrent runs of three calls each, 50 ms per reply."""
    url = f"{url}/calls-3-wait-50/v1"
    bare = BareLoop(url)
    rates: dict[str, list[float]] = {"ours": [], "bare": []}
    async with Agent(f"{url}#m", [add]) as agent, bare.session:
        for _ in range(4):
            for name, run in (("ours", agent.run), ("bare", bare.run)):
                start = time.perf_counter()
                await asyncio.gather(*(run("go") for _ in range(200)))
                rates[name].append(200 / (time.perf_counter() - start))
    ours, plain = (statistics.median(rates[name][1:]) for name in ("ours", "bare"))  # the first round opens connections
    return {"ours_per_s": ours, "bare_per_s": plain, "ratio": ours / plain}


async def thousand_tools(url: str) -> dict[str, float]:
    """Build a library of 1,000 functions, and run an agent with it."""

    def make(n: int) -> Callable[..., object]:
        def f(query: str, limit: int = 10, tags: list[str] | None = None) -> str:
            """Search a source."""
            return query

        f.__name__ = f"tool_{n}"
        return f

    functions = [make(n) for n in range(1000)]
    start = time.process_time()
    library = ToolLibrary([*functions, add])
    built = time.process_time() - start
    async with Agent(f"{url}/calls-1/v1#m", library) as agent:
        end: RunFinished = await agent.run("go")
        assert end.tool_calls == 1
        return {"build_ms": built * 1e3, "run_ms": await measure_cpu_us(lambda: agent.run("go"), 20) / 1e3}


async def importing(url: str) -> dict[str, float]:
    """Import the package in a new interpreter: CPU time and memory."""
    code = "{}\nimport time\nstatus = dict(line.split(':', 1) for line in open('/proc/self/status'))\nprint(time.process_time(), status['VmHWM'].split()[0])"

    def cost(statement: str) -> tuple[float, float]:
        runs = [
            subprocess.run(
                [sys.executable, "-c", code.format(statement)], capture_output=True, text=True, check=True
            ).stdout.split()
            for _ in range(5)
        ]
        return min(float(r[0]) for r in runs) * 1e3, min(float(r[1]) for r in runs) / 1024

    (empty_ms, _), (full_ms, full_mb) = cost("pass"), cost("from opposable import Agent")
    return {"cpu_ms": full_ms - empty_ms, "rss_mb": full_mb}


CASES: dict[str, Case] = {
    case.__name__: case for case in (one_call, fifty_calls, streamed_piece, many_at_once, thousand_tools, importing)
}


async def main() -> None:
    """Run the cases and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="case", help=f"of: {', '.join(CASES)}")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.cases) - CASES.keys():
        parser.error(f"unknown case: {', '.join(unknown)}. The cases are {', '.join(CASES)}.")
    server = subprocess.Popen([sys.executable, SERVER_SCRIPT], stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220 - nothing else runs yet
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        figures = {}
        for name in options.cases or CASES:
            figures[name] = await CASES[name](url)
            if not options.json:
                row = "  ".join(f"{key} {value:,.2f}" for key, value in figures[name].items())
                print(f"{name:16} {row:60} {(CASES[name].__doc__ or '').splitlines()[0]}", flush=True)
        if options.json:
            print(json.dumps(figures, indent=1))
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    asyncio.run(main())
