"""Every route of the service, asked by keys of every scope: a new route without a rule fails here."""

import pytest
from fastapi.routing import APIRoute
from tests.web.api.pending_approvals import SCOPES, open_service_client

from opposable.web.api.dependencies import RequireScope

pytestmark = pytest.mark.anyio

OPEN = {"/healthz", "/readyz"}
ANY_KEY = {"/openapi.json"}
BY_PATH = {"/v1/": "chat"}
"""Routes that the check of keys itself has a rule for."""
BY_HAND = {"/metrics": "tools:read"}
"""Routes that look at the scopes themselves."""


def list_routes(app) -> list[tuple[str, str, str]]:
    """Every method and path of an application, with the scope it needs: "" for any key, "open" for none."""
    found = []
    for path, methods in app.openapi()["paths"].items():
        found += [(method.upper(), path, get_required_scope(app, path, method.upper())) for method in methods]
    return found


def get_required_scope(app, path: str, method: str) -> str:
    if path in OPEN:
        return "open"
    if path in BY_HAND:
        return BY_HAND[path]
    for begins, scope in BY_PATH.items():
        if path.startswith(begins):
            return scope
    [route] = [one for one in flatten_routes(app.routes) if one[0] == path and method in one[1].methods]
    told = (route[1].openapi_extra or {}).get("x-scope")
    needs = (
        [told]
        if told
        else [one.call.scope for one in route[1].dependant.dependencies if isinstance(one.call, RequireScope)]
    )
    needs += [one.dependency.scope for one in route[2] if isinstance(one.dependency, RequireScope)]
    assert needs, f"{method} {path} has no rule: give it Depends(Needs(...))"
    return "admin" if "admin" in needs else needs[-1]


def flatten_routes(routes, prefix: str = "", given=()):
    """Each route with its whole path and the dependencies of the routers it is in."""
    for route in routes:
        if isinstance(route, APIRoute):
            yield prefix + route.path, route, given
        elif getattr(route, "original_router", None) is not None:
            inner = route.original_router
            yield from flatten_routes(inner.routes, prefix, (*given, *inner.dependencies))


def fill_path(path: str) -> str:
    for name in (
        "agent_id",
        "tool_id",
        "conversation_id",
        "run_id",
        "approval_id",
        "key_id",
        "execution_id",
        "skill_id",
    ):
        path = path.replace(f"{{{name}}}", "nothing")
    path = path.replace("{failure_id}", "0" * 32).replace("{name}", "nothing")
    of_a_run = ("/api/executions", "/api/executions/export")  # all of them are for admins
    return f"{path}?run_id=nothing" if path in of_a_run else path


async def test_each_route_is_for_the_keys_with_its_scope_alone(tmp_path):
    async with open_service_client(tmp_path) as ask:
        keys = {scope: await ask.create_key(scope) for scope in SCOPES}
        routes = list_routes(ask.app)
        assert len(routes) > 40
        wrong = []
        for method, path, scope in routes:
            for bearer, key in [*keys.items(), ("", ""), ("wrong", "opp_wrong")]:
                answer = await ask(method, fill_path(path), {} if method in ("POST", "PUT") else None, key=key)
                may = scope == "open" or bearer in (scope, "admin")
                refused = {401} if bearer in ("", "wrong") else {403}
                right = answer.status_code not in (401, 403) if may else answer.status_code in refused
                if not right:
                    wrong.append((method, path, scope, bearer, answer.status_code))
        assert wrong == []


async def test_the_document_is_for_who_bears_a_key(tmp_path):
    async with open_service_client(tmp_path) as ask:
        chat = await ask.create_key("chat")
        for path in ANY_KEY:
            assert (await ask("GET", path, key="")).status_code == 401
            assert (await ask("GET", path, key=chat)).status_code == 200


async def test_a_key_does_not_see_what_another_made(tmp_path):
    async with open_service_client(tmp_path) as ask:
        one, other = await ask.create_key("chat", "tools:read"), await ask.create_key("chat", "tools:read")
        made = await ask.request_json("POST", "/agent/chat", {"message": "my secret"}, key=one)
        conversation = made["conversation_id"]
        runs = await ask.service.store.runs.list()
        run = runs.items[0].run_id if runs.items else ""
        paths = [f"/agent/conversations/{conversation}", f"/api/executions?conversation_id={conversation}"]
        paths += [f"/api/runs/{run}", f"/api/executions?run_id={run}"] if run else []
        for path in paths:
            answer = await ask("GET", path, key=other)
            assert answer.status_code == 404, (path, answer.text)
        assert (await ask("DELETE", paths[0], key=other)).status_code == 404
        for path in ("/agent/conversations", "/api/runs", "/api/approvals"):
            assert "my secret" not in (await ask("GET", path, key=other)).text
        assert (await ask("GET", "/api/executions", key=other)).status_code == 403
        assert (await ask("GET", paths[0], key=one)).status_code == 200
