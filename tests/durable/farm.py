"""Workers as processes of their own, a scripted model, and an outside server that counts the effects of calls."""

import asyncio
import contextlib
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from aiohttp import web

from opposable.domain.specs import AgentSpec, AgentToolBinding, EndpointConfig, HttpToolSpec
from opposable.store.factory import open_store

AGENT_ID = "worker-agent"


@dataclass
class Outside:
    """The outside world of a run: a model that calls `effect` some times, and the server of that tool.

    Attributes:
        calls_per_run: How often the model calls the tool before it answers.
        effects: The requests by idempotency key; the first one of a key has the effect.
        model_requests: The requests to the model.
        delay: Seconds that an effect takes.
        stalled: Keys of effects that never answer, once the effect has been applied.
        max_concurrency: The largest number of requests for effects that were active at once.
    """

    url: str = ""
    calls_per_run: int = 5
    effects: Counter[str] = field(default_factory=Counter)
    numbers: Counter[str] = field(default_factory=Counter)
    model_requests: int = 0
    delay: float = 0.0
    stalls: int = 0
    max_concurrency: int = 0
    _active: int = 0

    @property
    def tasks(self) -> set[str]:
        """The tasks that had an effect."""
        return {number.partition("/")[0] for number in self.numbers}

    @property
    def model(self) -> str:
        """The name of the model for `--model`."""
        return f"{self.url}/v1#scripted"

    async def reply(self, request: web.Request) -> web.Response:
        """Call the tool until it was called often enough, then answer."""
        self.model_requests += 1
        messages = orjson.loads(await request.read())["messages"]
        done = sum(message["role"] == "tool" for message in messages)
        task = next(message["content"] for message in messages if message["role"] == "user")
        message = {"role": "assistant", "content": f"done {task}"}
        if done < self.calls_per_run:
            arguments = orjson.dumps({"number": f"{task}/{done}"}).decode()
            call = {"id": "c1", "type": "function", "function": {"name": "effect", "arguments": arguments}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        return web.Response(body=orjson.dumps({"choices": [choice], "usage": usage}), content_type="application/json")

    async def apply(self, request: web.Request) -> web.Response:
        """Apply an effect, once for each key."""
        self.effects[request.headers["idempotency-key"]] += 1
        self.numbers[orjson.loads(await request.read())["number"]] += 1
        if self.stalls > 0:
            self.stalls -= 1
            await asyncio.sleep(3600)
        self._active += 1
        self.max_concurrency = max(self.max_concurrency, self._active)
        await asyncio.sleep(self.delay)
        self._active -= 1
        return web.json_response({"ok": True})


@asynccontextmanager
async def open_outside(**options: object) -> AsyncIterator[Outside]:
    outside = Outside(**options)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", outside.reply)
    app.router.add_post("/effects", outside.apply)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    outside.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield outside
    finally:
        await runner.cleanup()


async def store_agent(url: str, outside: Outside, *, idempotent: bool = True, needs_approval: bool = False) -> None:
    """Store the tool `effect` and the agent that may call it."""
    effect = HttpToolSpec(
        tool_id="effect",
        description="Apply an effect",
        endpoint=EndpointConfig(
            url_template=f"{outside.url}/effects",
            method="POST",
        ),
        parameters={"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]},
        idempotent=idempotent,
        needs_approval=needs_approval,
    )
    async with open_store(url) as store:
        await store.tools.save(effect)
        await store.agents.add(AgentSpec(agent_id=AGENT_ID, name="Worker", tools=(AgentToolBinding(tool_id="effect"),)))


def get_environment(url: str, home: Path) -> dict[str, str]:
    return {
        **os.environ,
        "OPPOSABLE_HOME": str(home),
        "OPPOSABLE_DATABASE_URL": url,
        "OPPOSABLE_PRIVATE_HOSTS": '["127.0.0.1"]',
        "NO_PROXY": "127.0.0.1",
    }


async def start_worker(url: str, home: Path, outside: Outside, *arguments: str) -> asyncio.subprocess.Process:
    """Start a worker process and wait until it is ready."""
    models = () if "--config" in arguments else ("--model", outside.model)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "opposable", "worker", *models, *arguments),
        env=get_environment(url, home),
        stderr=asyncio.subprocess.PIPE,
    )
    line = (await asyncio.wait_for(process.stderr.readline(), 90)).decode()
    assert "is ready" in line, line + (await process.stderr.read()).decode()
    process.log = asyncio.create_task(process.stderr.read())
    return process


async def kill(process: asyncio.subprocess.Process, number: int = signal.SIGKILL) -> str:
    """Send a signal and return the log of the process after its end."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)
    await process.wait()
    log = (await process.log).decode()
    process._transport.close()
    return log


async def run_batch(url: str, home: Path, tasks: list[dict[str, str]], *arguments: str) -> tuple[int, list[dict], str]:
    """Run `opposable batch run` and return its exit code, the result lines and standard error."""
    file, output = home / "tasks.jsonl", home / "results.jsonl"
    file.write_bytes(b"\n".join(orjson.dumps(task) for task in tasks))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "opposable", "batch", "run", str(file), "--agent", AGENT_ID, "--out", str(output)),
        *arguments,
        env=get_environment(url, home),
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    lines = output.read_bytes().splitlines() if output.exists() else []
    return process.returncode, [orjson.loads(line) for line in lines], errors.decode()
