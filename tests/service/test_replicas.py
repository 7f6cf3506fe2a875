"""Two processes of one service over PostgreSQL and Valkey: conversations, cancels, and the death of one."""

import asyncio
import contextlib
import os
import sys

import pytest
from tests.models.chat_server import chat_server, message
from tests.servers import postgresql, valkey_server, valkey_url  # noqa: F401

from opposable.client import Client, ServiceError

pytestmark = pytest.mark.anyio


@contextlib.asynccontextmanager
async def serving(home, model: str, **env: str):
    """A process that serves, and its URL."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "opposable", "serve", "--model", model, "--port", "0"),
        env={**os.environ, "OPPOSABLE_HOME": str(home), **env},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        line = (await asyncio.wait_for(process.stderr.readline(), 90)).decode()
        assert " is served at " in line, line
        yield process, line.split()[-1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        process._transport.close()


async def test_two_processes_serve_one_conversation_and_end_each_others_runs(tmp_path, postgresql, valkey_url):  # noqa: F811
    hanging = asyncio.Event()

    async def forever(request):
        hanging.set()
        await asyncio.sleep(3600)

    env = {"DATABASE_URL": postgresql.new_database(), "REDIS_URL": valkey_url}
    answers = [message("一"), message("二"), forever, forever]
    async with chat_server(*answers) as upstream:
        model = f"{upstream.url}#qwen"
        async with (
            serving(tmp_path, model, **env) as (first, url_a),
            serving(tmp_path, model, **env) as (_, url_b),
            Client(url_a) as a,
            Client(url_b) as b,
        ):
            assert (await a.chat("hi", conversation_id="v")).response == "一"
            assert (await b.chat("more", conversation_id="v")).response == "二"
            assert [m["content"] for m in upstream.bodies[1]["messages"][1:]] == ["hi", "一", "more"]
            begun = await started(a)
            assert await b.cancel(begun.run_id)
            assert [event.kind async for event in b.follow(begun.run_id)][-1] == "error"
            assert (await b.run(begun.run_id)).status == "cancelled"
            lost = await started(a)
            assert (await b.run(lost.run_id)).status == "running"
            first.kill()
            told = [event async for event in b.follow(lost.run_id)]
            assert told[-1].data["kind"] == "Lost"
            assert (await b.run(lost.run_id)).reason == "lost"
            assert [m["role"] for m in (await b.conversation("v")).messages] == ["user", "assistant"] * 2


async def started(client: Client):
    """A run that goes on by itself; its first event."""
    async for event in client.stream("wait", detach=True, conversation_id="v"):
        return event
    raise ServiceError("no event came")
