"""A database that goes away under way and comes back."""

import asyncio

import pytest
from tests.servers import postgresql  # noqa: F401
from tests.web.api.chat_serving import serve_service

from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.service import turn_writer as turns
from opposable.store.factory import open_store

pytestmark = pytest.mark.anyio


async def test_active_answers_are_stored_once_after_an_outage(tmp_path, postgresql, monkeypatch):  # noqa: F811
    monkeypatch.setattr(turns, "MAX_RETRY_DELAY_SECONDS", 0.2)
    url = postgresql.new_database()
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Slow(ScriptedModel):
        async def stream(self, *given):
            begun.set()
            await go_on.wait()
            async for part in super().stream(*given):
                yield part

    async with serve_service(tmp_path, Slow("好"), database_url=url) as (session, service):
        body = {"message": "hi", "conversation_id": "v"}
        asking = asyncio.create_task(session.post("/agent/chat", json=body))
        await asyncio.wait_for(begun.wait(), 10)
        postgresql.block_connections(url)
        go_on.set()
        await asyncio.sleep(1)
        async with session.post("/agent/chat", json={"message": "hi"}) as response:
            error_body = await response.json()
            assert (response.status, error_body["error"]["kind"]) == (503, "store_unavailable")
            assert response.headers["retry-after"] == "2"
        assert not asking.done()
        postgresql.allow_connections(url)
        async with await asyncio.wait_for(asking, 30) as response:
            assert (response.status, (await response.json())["response"]) == (200, "好")
        async with session.post("/agent/chat", json=body) as response:
            assert response.status == 200
        said = await service.store.conversations.list_messages("v")
        assert [message.role for message in said] == ["user", "assistant"] * 2
    assert service.recorder.status.lost == 0


CALL = reply_with_calls(tool_call("echo", '{"text": "ok"}'))
TURN = ["user", "assistant", "tool", "assistant"]


class ToolCallingModel(ScriptedModel):
    """Calls once and then answers, a little late."""

    async def stream(self, messages, *given):
        await asyncio.sleep(0.05)
        line = "好" if messages[-1].role == "tool" else CALL
        async for part in ScriptedModel(line).stream(messages, *given):
            yield part


async def test_an_outage_under_load_is_reported_and_nothing_is_written_twice(tmp_path, postgresql, monkeypatch):  # noqa: F811
    monkeypatch.setattr(turns, "MAX_RETRY_DELAY_SECONDS", 0.2)
    url = postgresql.new_database()
    responses: dict[int, list[tuple[int, str]]] = {n: [] for n in range(12)}
    up, over = asyncio.Event(), asyncio.Event()

    async def one(n, session):
        """Ask again and again, whatever comes, and once more when the database is back."""
        last = False
        while not last:
            last = over.is_set()
            async with session.post("/agent/chat", json={"message": "go", "conversation_id": f"v{n}"}) as response:
                body = await response.json()
                responses[n].append((response.status, "" if response.status == 200 else body["error"]["kind"]))
            if response.status == 200:
                up.set()
            else:
                assert response.headers["retry-after"] == "2"
                await asyncio.sleep(0.1)

    async with serve_service(tmp_path, ToolCallingModel("好"), database_url=url) as (session, service):
        asking = [asyncio.create_task(one(n, session)) for n in responses]
        await asyncio.wait_for(up.wait(), 20)
        postgresql.block_connections(url)
        await asyncio.sleep(2)
        async with session.get("/readyz") as response:
            assert response.status == 503
        postgresql.allow_connections(url)
        up.clear()
        await asyncio.wait_for(up.wait(), 20)
        over.set()
        await asyncio.wait_for(asyncio.gather(*asking), 60)
        stored_messages = {n: await service.store.conversations.list_messages(f"v{n}") for n in responses}
    every = [one for seen in responses.values() for one in seen]
    assert set(every) == {(200, ""), (503, "store_unavailable")}
    for n, said in stored_messages.items():
        assert responses[n][-1] == (200, "")
        assert [message.role for message in said] == TURN * responses[n].count((200, ""))
    async with open_store(url) as store:
        made = [(one.run_id, one.call_id) async for one in store.executions.export()]
        ended = [one.status for one in (await store.runs.list(limit=1000)).items]
    assert len(made) == len(set(made)) >= every.count((200, ""))
    assert ended.count("finished") == every.count((200, ""))
    assert set(ended) <= {"finished", "failed"}
    assert (service.recorder.status.lost, service.recorder.status.waiting) == (0, 0)
