"""Conversations: renaming, and ids that another owner has."""

import pytest
from tests.web.api.asking import open_service_client, wait_until_written

from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call

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


@pytest.mark.parametrize("path", ["/agent/chat", "/api/agent", "/api/agents/default/agui"])
async def test_an_id_of_another_owner_behaves_like_a_new_one(tmp_path, path):
    async with open_service_client(tmp_path) as ask:
        ann, bob = await ask.create_key("chat", "tools:read"), await ask.create_key("chat", "tools:read")
        await ask.request_json("POST", "/agent/chat", {"message": "my secret", "conversation_id": "taken"}, key=ann)
        await wait_until_written(ask.service)
        responses = {}
        for conversation_id in ("taken", "new-1"):
            response = await ask("POST", path, build_body(path, conversation_id), key=bob)
            await wait_until_written(ask.service)
            responses[conversation_id] = response.status_code, list(response.headers)
            assert "~" not in response.text
            for suffix in ("", "?start=1"):
                read = await ask("GET", f"/agent/conversations/{conversation_id}{suffix}", key=bob)
                assert (read.status_code, "secret" in read.text, "~" in read.text) == (200, False, False)
        assert responses["taken"] == responses["new-1"]
        runs = await ask.request_json("GET", "/api/runs?conversation_id=taken", key=bob)
        assert [run["conversation_id"] for run in runs["items"]] == ["taken"]
        listed = await ask.request_json("GET", "/agent/conversations", key=bob)
        assert {item["conversation_id"] for item in listed["items"]} == {"taken", "new-1"}
        await ask.request_json("PUT", "/agent/conversations/taken", {"title": "mine"}, key=bob)
        await ask.request_json("DELETE", "/agent/conversations/taken", key=bob)
        assert (await ask.request_json("GET", "/agent/conversations/taken", key=ann))["title"] != "mine"


def build_body(path: str, conversation_id: str) -> dict:
    if not path.endswith("agui"):
        return {"message": "hi", "conversation_id": conversation_id}
    message = {"id": "m1", "role": "user", "content": "hi"}
    empty = {"tools": [], "context": [], "state": {}, "forwardedProps": {}}
    return {"threadId": conversation_id, "runId": "r1", "messages": [message], **empty}


async def test_executions_of_a_conversation_are_those_of_the_owner(tmp_path):
    calls = [reply_with_calls(tool_call("echo", f'{{"text": "{name}"}}', "c1")) for name in ("ann", "bob")]
    model = ScriptedModel(calls[0], "done", calls[1], "done")
    async with open_service_client(tmp_path, {"m": model}) as ask:
        keys = [await ask.create_key("chat", "tools:read") for _ in range(2)]
        for key in keys:
            await ask.request_json("POST", "/agent/chat", {"message": "hi", "conversation_id": "same"}, key=key)
            await wait_until_written(ask.service)
        for key, name in zip(keys, ("ann", "bob"), strict=True):
            found = await ask.request_json("GET", "/api/executions?conversation_id=same", key=key)
            assert [(item["result"], item["conversation_id"]) for item in found["items"]] == [(name, "same")]
        await ask.request_json("DELETE", "/agent/conversations/same", key=keys[0])
        found = await ask.request_json("GET", "/api/executions?conversation_id=same", key=keys[1])
        assert [item["result"] for item in found["items"]] == ["bob"]


async def test_a_response_of_another_owner_is_not_found_like_a_missing_one(tmp_path):
    async with open_service_client(tmp_path) as ask:
        ann, bob = await ask.create_key("chat"), await ask.create_key("chat")
        stored = await ask.request_json("POST", "/v1/responses", {"model": "m", "input": "hi"}, key=ann)
        texts = []
        for response_id in (stored["id"], "resp_missing"):
            body = {"model": "m", "input": "and?", "previous_response_id": response_id}
            response = await ask("POST", "/v1/responses", body, key=bob)
            texts.append((response.status_code, response.text.replace(response_id, "ID")))
        assert texts[0] == texts[1]
        assert texts[0][0] == 404
