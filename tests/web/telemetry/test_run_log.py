"""The log has a line for each request, run, call, approval, key change and model failure, without their content."""

import logging

import pytest
from tests.web.api.asking import open_service_client

from opposable.domain.errors import ModelUnavailable
from opposable.domain.specs import AgentSpec, AgentToolBinding
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.web.telemetry.logs import create_formatter

pytestmark = pytest.mark.anyio

SECRET = "swordfish"


@pytest.fixture
def lines(caplog):
    """The lines of the log so far, from level INFO on: the message and the given fields."""
    caplog.set_level(logging.INFO, logger="opposable")

    def list_lines(*fields: str) -> list[tuple]:
        text = "\n".join(create_formatter("json").format(record) for record in caplog.records)
        assert SECRET not in text
        return [(record.getMessage(), *(getattr(record, field, None) for field in fields)) for record in caplog.records]

    return list_lines


async def test_a_run_and_its_calls_are_logged_without_content(tmp_path, lines):
    call = reply_with_calls(tool_call("echo", f'{{"text": "{SECRET}"}}'))
    async with open_service_client(tmp_path, {"m": ScriptedModel(call, f"the {SECRET}")}) as ask:
        await ask.request_json("POST", "/agent/chat?q=" + SECRET, {"message": SECRET})
    assert lines("status", "tool", "failure", "tokens", "path") == [
        ("run started", None, None, None, None, None),
        ("tool call ended", None, "echo", None, None, None),
        ("run ended", "finished", None, None, 30, None),
        ("request ended", 200, None, None, None, "/agent/chat"),
    ]


async def test_keys_and_rejected_requests_are_logged_without_keys(tmp_path, lines):
    async with open_service_client(tmp_path) as ask:
        key = await ask.request_json("POST", "/api/keys", {"name": SECRET, "scopes": ["chat"]}, 201)
        await ask.request_json("DELETE", f"/api/keys/{key['details']['key_id']}", status=204)
        assert (await ask("GET", "/api/tools", key=SECRET)).status_code == 401
        await ask("GET", "/healthz")
    key_id = key["details"]["key_id"]
    assert lines("key_id", "status") == [
        ("key created", key_id, None),
        ("request ended", "owner", 201),
        ("key revoked", key_id, None),
        ("request ended", "owner", 204),
        ("request ended", "anonymous", 401),
    ]


async def test_a_failing_model_is_logged(tmp_path, lines):
    async with open_service_client(tmp_path, {"m": ScriptedModel(ModelUnavailable("no server"))}) as ask:
        await ask.request_json("POST", "/agent/chat", {"message": "hi"}, 503)
    assert lines("model", "kind", "status")[1:3] == [
        ("model failed", "scripted", "ModelUnavailable", None),
        ("run ended", None, None, "failed"),
    ]


async def test_approvals_are_logged(tmp_path, lines):
    call = reply_with_calls(tool_call("echo", f'{{"text": "{SECRET}"}}'))
    async with open_service_client(tmp_path, {"m": ScriptedModel(call, "done")}) as ask:
        agent = AgentSpec(agent_id="a", tools=(AgentToolBinding(tool_id="echo"),), needs_approval=("echo",))
        run = await ask.service.chat(agent, "go")
        while not (items := (await ask.request_json("GET", "/api/approvals"))["items"]):
            pass
        await ask.request_json("POST", f"/api/approvals/{items[0]['approval_id']}", {"decision": "deny"})
        await run.wait_until_ended()
    assert [line for line in lines("tool", "status") if "approval" in line[0]] == [
        ("approval requested", "echo", None),
        ("approval decided", "echo", "denied"),
    ]
