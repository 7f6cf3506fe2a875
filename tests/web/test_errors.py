"""Bad requests get an error that says why, and no 500."""

import json

import pytest
from tests.web.api.asking import open_service_client

from opposable.store.runs import RunRepository

pytestmark = pytest.mark.anyio

LONG = "a" * 1900


async def send(ask, method, path, body):
    """Send a body with escapes, as clients in JavaScript do."""
    content = {} if body is None else {"content": json.dumps(body), "headers": {"content-type": "application/json"}}
    return await ask(method, path, **content)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("GET", "/api/executions?since=0001-01-01T00:00:00%2B14:00", None, 422, "query.since: must be a time"),
        ("GET", "/api/executions?until=9999-12-31T23:59:59-14:00", None, 422, "query.until: must be a time"),
        ("GET", "/api/executions/export?since=0001-01-01T00:00:00%2B14:00", None, 422, "query.since"),
        ("GET", f"/api/databases/schema?database=sqlite:///{LONG}", None, 400, "Cannot read"),
        ("POST", "/api/tools/import/skill", {"path": LONG}, 400, "There is no folder"),
        ("POST", "/api/tools", {"tool_type": "skill", "tool_id": "s", "path": "\0"}, 400, "is not a valid path"),
        ("POST", "/api/tools", {"tool_type": "skill", "tool_id": "s", "path": "\ud800"}, 400, "is not a valid path"),
        ("POST", "/api/ask", {"question": "hi", "database": "x", "semantics": "\0"}, 422, "body.semantics"),
    ],
)
async def test_what_cannot_be_used_is_reported(tmp_path, method, path, body, status, message):
    (tmp_path / "skills").mkdir()
    async with open_service_client(tmp_path, skills=(tmp_path / "skills",)) as ask:
        response = await send(ask, method, path, body)
        assert (response.status_code, message in response.json()["error"]["message"]) == (status, True), response.text


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/agents", {"agent_id": "a", "name": "\ud83d", "instructions": "Be brief \ud83d"}, 201),
        ("/api/agents/default/tools", {"tool_id": "echo", "config": {"description": "\ud83d"}}, 200),
        ("/api/tools", {"tool_type": "mcp_server", "tool_id": "m", "url": "http://127.0.0.1:1/\ud83d"}, 201),
        ("/api/tools/import/mcp", {"config": {"mcpServers": {"\ud83d": {"url": "\ud83d"}}}}, 200),
    ],
)
async def test_half_of_an_emoji_is_replaced(tmp_path, path, body, status):
    async with open_service_client(tmp_path, private_hosts=("127.0.0.1",)) as ask:
        response = await send(ask, "POST", path, body)
        assert response.status_code == status, response.text


async def test_half_of_an_emoji_in_an_earlier_call_of_agui_is_replaced(tmp_path):
    call = {"id": "c1", "type": "function", "function": {"name": "\ud83d", "arguments": "{}"}}
    messages = [
        {"id": "1", "role": "assistant", "toolCalls": [call]},
        {"id": "2", "role": "tool", "toolCallId": "c1", "content": "\ud83d"},
        {"id": "3", "role": "user", "content": "hi"},
    ]
    body = {"threadId": "t", "runId": "r", "messages": messages, "tools": [], "context": [], "state": {}}
    async with open_service_client(tmp_path) as ask:
        response = await send(ask, "POST", "/api/agents/default/agui", body | {"forwardedProps": {}})
        assert (response.status_code, "RUN_FINISHED" in response.text) == (200, True)


async def test_an_unexpected_error_is_logged_and_has_the_headers_of_every_response(tmp_path, monkeypatch, caplog):
    async def fail(*args, **options):
        raise KeyError("broken")

    monkeypatch.setattr(RunRepository, "list", fail)
    caplog.set_level("INFO", logger="opposable")
    async with open_service_client(tmp_path) as ask:
        response = await ask("GET", "/api/runs", headers={"x-trace-id": "t1"})
    assert (response.status_code, response.json()["error"]["kind"]) == (500, "internal_error")
    assert (response.headers["x-trace-id"], response.headers["x-frame-options"]) == ("t1", "DENY")
    assert [record.status for record in caplog.records if record.message == "request ended"] == [500]
    assert [record.message for record in caplog.records if record.exc_info] == [
        "Request failed with an unexpected error."
    ]
