"""Every route is requested with keys of every scope: a new route that requires no scope fails here."""

import asyncio

import pytest
from fastapi.routing import APIRoute
from tests.waiting import wait_until
from tests.web.api.asking import SCOPES, open_service_client, wait_until_written

from opposable.domain.specs import AgentSpec, AgentToolBinding
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.web.api.dependencies import RequireScope

pytestmark = pytest.mark.anyio

OPEN_PATHS = {"/healthz", "/readyz"}
ANY_KEY_PATHS = {"/openapi.json"}
SESSION_PATH = "/api/session"
"""Any valid key can use the session of the console."""
SCOPES_BY_PREFIX = {"/v1/": "chat"}
"""The authentication middleware checks the scope of these routes."""
SCOPES_BY_PATH = {"/metrics": "tools:read"}
"""The handlers of these routes check the scope."""
PATH_PARAMETERS = (
    *("agent_id", "tool_id", "conversation_id", "run_id", "approval_id", "key_id", "execution_id", "skill_id", "name"),
)


def list_routes(app) -> list[tuple[str, str, str]]:
    """Return the method, path and scope of every route: scope "open" needs no key."""
    return [
        (method.upper(), path, get_required_scope(app, path, method.upper()))
        for path, methods in app.openapi()["paths"].items()
        for method in methods
    ]


def get_required_scope(app, path: str, method: str) -> str:
    if path in OPEN_PATHS:
        return "open"
    if path in SCOPES_BY_PATH:
        return SCOPES_BY_PATH[path]
    if path == SESSION_PATH:
        return "any"
    for prefix, scope in SCOPES_BY_PREFIX.items():
        if path.startswith(prefix):
            return scope
    [route] = [
        found for found in app.routes if isinstance(found, APIRoute) and found.path == path and method in found.methods
    ]
    declared_scope = (route.openapi_extra or {}).get("x-scope")
    scopes = [declared_scope] if declared_scope else []
    scopes += [found.call.scope for found in route.dependant.dependencies if isinstance(found.call, RequireScope)]
    assert scopes, f"{method} {path} requires no scope: give it Depends(RequireScope(...))"
    return "admin" if "admin" in scopes else scopes[0]


def fill_path(path: str) -> str:
    for name in PATH_PARAMETERS:
        path = path.replace(f"{{{name}}}", "nothing")
    path = path.replace("{failure_id}", "0" * 32)
    needs_filter = ("/api/executions", "/api/executions/export")  # only admins may list without a filter
    return f"{path}?run_id=nothing" if path in needs_filter else path


async def test_each_route_accepts_only_keys_with_its_scope(tmp_path):
    async with open_service_client(tmp_path) as ask:
        keys = {scope: await ask.create_key(scope) for scope in SCOPES}
        routes = list_routes(ask.app)
        assert len(routes) > 40
        errors = []
        for method, path, scope in routes:
            for key_scope, key in [*keys.items(), ("", ""), ("wrong", "opp_wrong")]:
                answer = await ask(method, fill_path(path), {} if method in ("POST", "PUT") else None, key=key)
                status = answer.status_code
                if scope == "open" or key_scope in (scope, "admin") or (scope == "any" and key_scope in SCOPES):
                    is_right = status not in (401, 403)
                else:
                    is_right = status == (401 if key_scope in ("", "wrong") else 403)
                if not is_right:
                    errors.append((method, path, scope, key_scope, status))
        assert errors == []


async def test_the_openapi_document_needs_a_key(tmp_path):
    async with open_service_client(tmp_path) as ask:
        chat_key = await ask.create_key("chat")
        for path in ANY_KEY_PATHS:
            assert (await ask("GET", path, key="")).status_code == 401
            assert (await ask("GET", path, key=chat_key)).status_code == 200


async def test_a_chat_key_cannot_approve_its_own_call_and_an_admin_sees_every_run(tmp_path):
    call = reply_with_calls(tool_call("echo", '{"text": "hi"}'))
    async with open_service_client(tmp_path, {"m": ScriptedModel(call, "done")}) as ask:
        await ask.service.store.agents.add(
            AgentSpec(agent_id="a", tools=(AgentToolBinding(tool_id="echo"),), needs_approval=("echo",))
        )
        chat_key, approve_key, admin_key = [await ask.create_key(scope) for scope in ("chat", "approve", "admin")]
        asking = asyncio.create_task(
            ask("POST", "/agent/chat", {"message": "go"}, key=chat_key, headers={"X-Agent-ID": "a"})
        )
        while not (items := (await ask.request_json("GET", "/api/approvals", key=chat_key))["items"]):  # noqa: ASYNC110 - a row of the store
            await asyncio.sleep(0.05)
        [approval] = items
        url = f"/api/approvals/{approval['approval_id']}"
        assert (await ask("POST", url, {"decision": "approve"}, key=chat_key)).status_code == 403
        assert (await ask.request_json("GET", "/api/approvals", key=approve_key))["items"] == items
        run_url = f"/api/runs/{approval['run_id']}"
        assert (await ask("GET", run_url, key=approve_key)).status_code == 403
        run = ask.service.runner.find(approval["run_id"])
        await wait_until(lambda: run.run.status == "waiting")  # it waits once the approval is stored
        assert (await ask.request_json("GET", run_url, key=admin_key))["status"] == "waiting"
        decided = await ask.request_json("POST", url, {"decision": "approve"}, key=approve_key)
        assert (decided["status"], (await asking).json()["response"]) == ("approved", "done")
        await wait_until_written(ask.service)
        assert [run["run_id"] for run in (await ask.request_json("GET", "/api/runs", key=admin_key))["items"]] == [
            approval["run_id"]
        ]
        assert (await ask("POST", f"{run_url}/cancel", {}, key=admin_key)).json()["cancelled"] is False


async def test_health_checks_answer_head_requests(tmp_path):
    async with open_service_client(tmp_path) as ask:
        for path in ("/healthz", "/readyz"):
            assert (await ask("HEAD", path, key="")).status_code == 200


async def test_a_key_does_not_see_the_data_of_another_key(tmp_path):
    models = {"m": ScriptedModel(reply_with_calls(tool_call("calculator", '{"expression": "25*4"}')), "100")}
    async with open_service_client(tmp_path, models) as ask:
        owner_key, other_key = [await ask.create_key("chat", "tools:read") for _ in range(2)]
        answer = await ask.request_json("POST", "/agent/chat", {"message": "my secret"}, key=owner_key)
        await wait_until_written(ask.service)
        conversation_id, run_id = answer["conversation_id"], answer["meta"]["run_id"]
        paths = [
            f"/agent/conversations/{conversation_id}",
            f"/api/runs/{run_id}",
            f"/api/runs/{run_id}/events",
            f"/api/executions?conversation_id={conversation_id}",
            f"/api/executions?run_id={run_id}",
        ]
        for path in paths:
            assert (await ask("GET", path, key=owner_key)).status_code == 200, path
            assert (await ask("GET", path, key=other_key)).status_code == 404, path
        for path in ("/agent/conversations", "/api/runs"):
            assert len((await ask.request_json("GET", path, key=owner_key))["items"]) == 1, path
        assert len((await ask.request_json("GET", paths[-1], key=owner_key))["items"]) == 1
        for path in ("/agent/conversations", "/api/runs", "/api/approvals"):
            assert (await ask.request_json("GET", path, key=other_key))["items"] == [], path
        assert (await ask("GET", "/api/executions", key=other_key)).status_code == 403
        assert (await ask("DELETE", paths[0], key=other_key)).status_code == 404
        assert (await ask("GET", paths[0], key=owner_key)).status_code == 200


async def test_operation_ids_are_unique_and_every_operation_is_described(tmp_path):
    async with open_service_client(tmp_path) as ask:
        operations = [operation for path in ask.app.openapi()["paths"].values() for operation in path.values()]
    operation_ids = [operation["operationId"] for operation in operations]
    assert len(operation_ids) > 40
    assert len(set(operation_ids)) == len(operation_ids)
    assert [operation["operationId"] for operation in operations if not operation.get("summary")] == []
