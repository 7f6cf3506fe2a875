"""Processes that serve side by side on one socket: one is killed under load, the others go on, and nothing is corrupt."""

import asyncio
import os
import signal
import sys

import pytest
from tests.models.chat_server import build_completion, chat_server
from tests.servers import postgresql  # noqa: F401
from tests.service.processes import get_worker_pids, serve_process, wait_for

from opposable.client import Client, ServiceError
from opposable.store.factory import open_store

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc"),
]

CHATS = 60
TURN = ["user", "assistant", "tool", "assistant"]
CALL = {"id": "c1", "type": "function", "function": {"name": "echo", "arguments": '{"text":"ok"}'}}


async def answer_scripted(request):
    """A model that calls once and then answers, a little late."""
    await asyncio.sleep(0.05)
    said = (await request.json())["messages"]
    if said[-1]["role"] == "tool":
        return await build_completion("done")(request)
    return await build_completion(calls=[CALL], finish="tool_calls")(request)


async def send_chat(url: str, n: int) -> str:
    """The answer to a turn of a conversation, "" where its process died; on a connection of its own."""
    async with Client(url) as client:
        try:
            return (await client.chat("go on", conversation_id=f"v{n}")).response
        except ServiceError as error:
            return str(error) if error.status else ""  # a status is an answer: a wrong one


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
async def test_a_killed_process_loses_only_its_own_runs(engine, tmp_path, request):
    url = request.getfixturevalue("postgresql").new_database() if engine == "postgresql" else ""
    env = {"OPPOSABLE_DATABASE_URL": url} if url else {}
    async with (
        chat_server(answer_scripted) as upstream,
        serve_process(tmp_path, f"{upstream.url}#qwen", "--workers", "2", **env) as (process, base),
    ):
        before = get_worker_pids(process)

        async def replaced() -> bool:
            now = get_worker_pids(process)
            return len(now) == 2 and before[0] not in now

        assert len(before) == 2
        asking = [asyncio.create_task(send_chat(base, n)) for n in range(CHATS)]
        await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        os.kill(before[0], signal.SIGKILL)
        first = await asyncio.gather(*asking)
        assert set(first) <= {"done", ""}
        assert "done" in first
        await wait_for(replaced)
        second = await asyncio.gather(*(send_chat(base, n) for n in range(CHATS)))
        assert second == ["done"] * CHATS
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 30) == 0
    async with open_store(url or f"sqlite:///{tmp_path}/opposable.sqlite") as store:
        for n in range(CHATS):
            said = [one.role for one in await store.conversations.list_messages(f"v{n}")]
            assert said in (
                [TURN * 2] if first[n] else [TURN, TURN * 2]
            )  # killed after the turn was stored, before the response was sent
        made = [(one.run_id, one.call_id) async for one in store.executions.export()]
        assert len(made) == len(set(made))
        lost = 2 * CHATS - len(made)
        assert 0 <= lost <= CHATS  # at most what the dead one did in its last second
