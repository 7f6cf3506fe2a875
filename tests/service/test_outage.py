"""A database that goes away under way and comes back."""

import asyncio

import pytest
from tests.servers import postgresql  # noqa: F401
from tests.web.api.chat_serving import serving

from opposable.models.scripted import ScriptedModel
from opposable.service import turns

pytestmark = pytest.mark.anyio


async def test_answers_under_way_are_kept_once_when_the_database_is_back(tmp_path, postgresql, monkeypatch):  # noqa: F811
    monkeypatch.setattr(turns, "LONGEST_PAUSE", 0.2)
    url = postgresql.new_database()
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Slow(ScriptedModel):
        async def stream(self, *given):
            begun.set()
            await go_on.wait()
            async for part in super().stream(*given):
                yield part

    async with serving(tmp_path, Slow("好"), database_url=url) as (session, service):
        body = {"message": "hi", "conversation_id": "v"}
        asking = asyncio.create_task(session.post("/agent/chat", json=body))
        await asyncio.wait_for(begun.wait(), 10)
        postgresql.refuse(url)
        go_on.set()
        await asyncio.sleep(1)
        async with session.post("/agent/chat", json={"message": "hi"}) as response:
            told = await response.json()
            assert (response.status, told["error"]["kind"]) == (503, "store_unavailable")
            assert response.headers["retry-after"] == "2"
        assert not asking.done()
        postgresql.admit(url)
        async with await asyncio.wait_for(asking, 30) as response:
            assert (response.status, (await response.json())["response"]) == (200, "好")
        async with session.post("/agent/chat", json=body) as response:
            assert response.status == 200
        said = await service.store.conversations.messages("v")
        assert [message.role for message in said] == ["user", "assistant"] * 2
    assert service.recorder.state.lost == 0
