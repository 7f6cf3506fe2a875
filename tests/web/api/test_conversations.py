"""Conversations: renaming."""

import pytest
from tests.web.api.asking import open_service_client, wait_until_written

pytestmark = pytest.mark.anyio


async def test_a_conversation_is_renamed_by_its_owner_alone(tmp_path):
    async with open_service_client(tmp_path) as ask:
        key = await ask.create_key("chat")
        answer = await ask.request_json("POST", "/agent/chat", {"message": "hello"}, key=key)
        await wait_until_written(ask.service)
        path = f"/agent/conversations/{answer['conversation_id']}"
        renamed = await ask.request_json("PUT", path, {"title": " New \n title "}, key=key)
        assert renamed["title"] == "New title"
        assert (await ask.request_json("GET", path, key=key))["title"] == "New title"
        await ask.request_json("PUT", path, {"title": "mine"}, status=404)
        await ask.request_json("PUT", path, {"title": "  "}, key=key, status=400)
        await ask.request_json("PUT", "/agent/conversations/missing", {"title": "x"}, key=key, status=404)
