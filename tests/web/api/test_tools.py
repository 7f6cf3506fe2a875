"""Tools and agents over HTTP: create, change, search, call, import, and what the owner does not allow."""

import asyncio
import datetime
import json

import orjson
import pytest
from sqlalchemy import text
from tests.waiting import create_endless_tool
from tests.web.api.asking import open_service_client
from tests.web.api.chat_serving import serve_service

from opposable.app.stored_tools import load_stored_specs
from opposable.domain.records import Failure
from opposable.domain.specs import FunctionToolSpec
from opposable.models.scripted import ScriptedModel
from opposable.tools.function import FunctionTool

pytestmark = pytest.mark.anyio

SUM = {"tool_type": "http", "tool_id": "sum", "endpoint": {"url_template": "internal://calculator"}}
REPORT = "---\nname: report\ndescription: Writes a report.\n---\nWrite it.\n"


def build_http_spec(tool_id: str = "web", **endpoint) -> dict:
    return {
        "tool_type": "http",
        "tool_id": tool_id,
        "endpoint": {"url_template": "https://api.example.com/items/{item}"} | endpoint,
        "parameters": {"type": "object", "properties": {"item": {"type": "string"}}},
    }


async def test_a_tool_is_created_changed_and_deleted(tmp_path):
    async with open_service_client(tmp_path) as ask:
        made = await ask.request_json("POST", "/api/tools", SUM, 201)
        assert (made["tool"]["tool_id"], made["accepted"], made["rejected"]) == ("sum", ["sum"], {})
        again = await ask.request_json("POST", "/api/tools", SUM, 409)
        assert again["error"]["kind"] == "conflict"
        changed = SUM | {"description": "Adds.", "tags": ["maths"], "category": "numbers"}
        assert (await ask.request_json("PUT", "/api/tools/sum", changed))["tool"]["description"] == "Adds."
        assert await ask.request_json("GET", "/api/tools/sum") == replace_changed_fields(
            await ask.request_json("GET", "/api/tools/sum"), changed
        )
        assert get_ids(await ask.request_json("GET", "/api/tools?tag=maths")) == ["sum"]
        assert get_ids(await ask.request_json("GET", "/api/tools?category=numbers&type=http")) == ["sum"]
        assert (await ask.request_json("POST", "/api/tools/sum/disable"))["enabled"] is False
        assert (await ask.request_json("GET", "/api/tools/sum/health"))["state"] == "disabled"
        assert get_ids(await ask.request_json("GET", "/api/tools?enabled=false")) == ["sum"]
        await ask.request_json("POST", "/api/tools/sum/call", {}, 404)
        assert (await ask.request_json("POST", "/api/tools/sum/enable"))["enabled"] is True
        called = await ask.request_json("POST", "/api/tools/sum/call", {"arguments": {"expression": "2*21"}})
        assert (called["success"], called["output"]["result"], called["error"]) == (True, 42, None)
        assert (await ask.request_json("GET", "/api/tools/sum/health"))["calls"] == 1
        await ask.request_json("DELETE", "/api/tools/sum", status=204)
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/health"), ("POST", "/enable"), ("POST", "/call")):
            await ask.request_json(method, f"/api/tools/sum{path}", {} if path == "/call" else None, 404)


async def test_the_message_of_the_last_failure_is_for_admins(tmp_path):
    async with open_service_client(tmp_path) as ask:
        reader, admin = await ask.create_key("tools:read"), await ask.create_key("admin")
        call = {"arguments": {"expression": "Joanna"}}
        await ask.request_json("POST", "/api/tools/calculator/call", call, key=admin)
        health = [await ask.request_json("GET", "/api/tools/calculator/health", key=key) for key in (reader, admin)]
        assert ["Joanna" in one["last_failure"] for one in health] == [False, True]
        assert health[0] == health[1] | {"last_failure": ""}
        assert sum(health[0]["failures"].values()) == 1


async def test_a_tool_whose_id_starts_with_that_of_another_is_no_action_of_it(tmp_path):
    async with open_service_client(tmp_path) as ask:
        await ask.request_json("POST", "/api/tools", SUM | {"tool_id": "sum.all"}, 201)
        assert (await ask.request_json("POST", "/api/tools", SUM, 201))["accepted"] == ["sum"]
        await ask.request_json("POST", "/api/agents/default/tools", {"tool_id": "sum"})
        await ask.request_json("POST", "/api/agents/default/tools", {"tool_id": "sum.all"})
        bound = (await ask.request_json("GET", "/api/agents/default/tools"))["items"]
        assert {tool["tool_id"]: tool["names"] for tool in bound if tool["tool_id"].startswith("sum")} == {
            "sum": ["sum"],
            "sum.all": ["sum_all"],
        }
        skills = (await ask.request_json("GET", "/skills"))["skills"]
        assert [skill["skill_id"] for skill in skills if skill["skill_id"].startswith("sum")] == ["sum.all", "sum"]


async def test_an_earlier_version_is_listed_and_restored(tmp_path):
    async with open_service_client(tmp_path) as ask:
        await ask.request_json("POST", "/api/tools", SUM, 201)
        await ask.request_json("PUT", "/api/tools/sum", SUM | {"description": "Adds."})
        await ask.request_json("POST", "/api/tools/sum/disable")
        newest, first = (await ask.request_json("GET", "/api/tools/sum/versions"))["items"]
        assert (newest["version"], newest["tool"]["description"], newest["saved_by"]) == (2, "Adds.", "owner")
        assert (first["version"], first["tool"]["description"]) == (1, "")
        await ask.request_json("PUT", "/api/tools/sum", first["tool"])
        versions = (await ask.request_json("GET", "/api/tools/sum/versions"))["items"]
        assert [(one["version"], one["tool"]["description"]) for one in versions] == [(3, ""), (2, "Adds."), (1, "")]
        await ask.request_json("GET", "/api/tools/none/versions", status=404)


def get_ids(page) -> list[str]:
    return [one["tool_id"] for one in page["items"]]


def replace_changed_fields(stored, changed) -> dict:
    return stored | {name: changed[name] for name in ("description", "tags", "category", "tool_id", "tool_type")}


async def test_a_list_is_read_page_by_page(tmp_path):
    async with open_service_client(tmp_path) as ask:
        whole = get_ids(await ask.request_json("GET", "/api/tools"))
        parts, after = [], ""
        while True:
            page = await ask.request_json("GET", f"/api/tools?limit=2&after={after}")
            parts += get_ids(page)
            after = page["next"]
            if not after:
                break
        assert parts == whole == sorted(whole)
        filtered = await ask.request_json("GET", "/api/tools?limit=1&category=built-in")
        assert (len(filtered["items"]), filtered["next"]) == (1, whole[0])


async def test_tools_are_found_by_a_description_of_the_task(tmp_path):
    async with open_service_client(tmp_path) as ask:
        found = await ask.request_json("GET", "/api/tools/search?need=compute+the+mean+of+numbers")
        assert found["items"][0]["tool_id"] == "calculator"


CALLS = {
    "a result": ("calculator", {"arguments": {"expression": "25*4"}}, 200, None),
    "none given": ("time", {}, 200, None),
    "arguments that do not fit": ("echo", {"arguments": {"words": 1}}, 200, "invalid_arguments"),
    "an action there is not": ("echo", {"arguments": {}, "action": "shout"}, 200, "unknown_tool"),
    "no such tool": ("nothing", {"arguments": {}}, 404, "not_found"),
    "arguments that are no object": ("echo", {"arguments": [1]}, 422, "invalid_request"),
    "a field there is not": ("echo", {"args": {}}, 422, "invalid_request"),
}


@pytest.mark.parametrize(("tool", "body", "status", "kind"), CALLS.values(), ids=CALLS)
async def test_every_call_result_has_the_same_form(tmp_path, tool, body, status, kind):
    async with open_service_client(tmp_path) as ask:
        body_json = await ask.request_json("POST", f"/api/tools/{tool}/call", body, status)
        assert (body_json.get("error") or {}).get("kind") == kind
        if status == 200:
            assert body_json["success"] == (kind is None)
            assert set(body_json) == {
                *("success", "tool", "output", "content", "error"),
                "trace_id",
                "execution_id",
                "meta",
            }


async def test_the_output_is_the_value_also_where_json_needs_more_than_64_bits_or_valid_unicode(tmp_path):
    values = [{"n": 2**70, "at": datetime.date(2026, 1, 2)}, {"text": "half \ud83d", 1: {2}}, 2**70, None, "null", []]
    async with open_service_client(tmp_path) as ask:
        ask.service.library.register(FunctionTool(lambda index: values[index], tool_id="value"))
        outputs = [
            (await ask.request_json("POST", "/api/tools/value/call", {"arguments": {"index": index}}))["output"]
            for index in range(len(values))
        ]
    assert outputs == [{"n": 2**70, "at": "2026-01-02"}, {"text": "half ?", "1": [2]}, 2**70, None, "null", []]


async def test_a_call_is_recorded_with_its_trace_and_without_secrets(tmp_path):
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    async with open_service_client(tmp_path) as ask:
        headers = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
        body = {"arguments": {"text": "你好 password=hunter22"}}
        answer = await ask("POST", "/api/tools/echo/call", body, headers=headers)
        assert (answer.headers["x-trace-id"], answer.json()["trace_id"]) == (trace, trace)
        one = await wait_for_execution(ask, answer.json()["execution_id"])
        assert (one["tool_id"], one["trace_id"], one["failure"]) == ("echo", trace, None)
        assert "hunter22" not in orjson.dumps(one["arguments"]).decode()
        assert (await ask.request_json("GET", "/api/executions?tool_id=echo"))["items"] == [one]
        lines = (await ask("GET", "/api/executions/export")).text.splitlines()
        assert [orjson.loads(line)["execution_id"] for line in lines] == [one["execution_id"]]
        table = (await ask("GET", "/api/executions/export?format=csv")).text.splitlines()
        assert (table[0].split(",")[0], len(table)) == ("execution_id", 2)
        assert (await ask.request_json("GET", "/api/executions?failure=any"))["items"] == []


@pytest.mark.parametrize("path", ["/api/tools/forever/call", "/skills/forever/run"])
async def test_a_client_that_leaves_cancels_its_call(tmp_path, path):
    forever, started, stopped = create_endless_tool()
    async with serve_service(tmp_path, ScriptedModel("hello")) as (session, service):
        service.library.register(FunctionToolSpec(tool_id="forever", module_path="x"), [FunctionTool(forever)])
        call = asyncio.create_task(session.post(path, json={}))
        await asyncio.wait_for(started.wait(), 10)
        call.cancel()
        await asyncio.wait_for(stopped.wait(), 10)
        async with asyncio.timeout(5):
            while not (records := (await service.store.executions.list()).items):  # noqa: ASYNC110 - written later
                await asyncio.sleep(0.02)
    assert [(one.tool_id, one.failure) for one in records] == [("forever", "cancelled")]
    assert "disconnected" in records[0].result


async def wait_for_execution(ask, execution_id: str):
    for _ in range(100):
        answer = await ask("GET", f"/api/executions/{execution_id}")
        if answer.status_code == 200:
            return answer.json()
        await asyncio.sleep(0.05)
    raise AssertionError("it was not recorded")


async def test_no_cell_of_an_export_is_a_formula(tmp_path):
    async with open_service_client(tmp_path) as ask:
        called = await ask.request_json("POST", "/api/tools/echo/call", {"arguments": {"text": "=1+1"}})
        await wait_for_execution(ask, called["execution_id"])
        assert "'=1+1" in (await ask("GET", "/api/executions/export?format=csv")).text


async def test_an_export_has_whole_numbers_of_any_size(tmp_path):
    async with open_service_client(tmp_path) as ask:
        called = await ask.request_json("POST", "/api/tools/echo/call", {"arguments": {"text": 2**70}})
        await wait_for_execution(ask, called["execution_id"])
        assert json.loads((await ask("GET", "/api/executions/export")).text)["arguments"] == {"text": 2**70}
        assert str(2**70) in (await ask("GET", "/api/executions/export?format=csv")).text


async def test_every_enabled_tool_is_a_skill(tmp_path):
    async with open_service_client(tmp_path) as ask:
        listed = (await ask.request_json("GET", "/skills"))["skills"]
        assert {"echo", "calculator", "file_search"} <= {one["skill_id"] for one in listed}
        assert {one["state"] for one in listed} == {"ok"}
        body_json = await ask.request_json("POST", "/skills/echo/run", {"arguments": {"text": "hello"}})
        assert (body_json["success"], body_json["output"]) == (True, "hello")
        await ask.request_json("POST", "/skills/nothing/run", {"arguments": {}}, 404)


async def test_an_agent_is_created_changed_and_deleted(tmp_path):
    clerk = {"agent_id": "clerk", "name": "文员", "tools": [{"tool_id": "echo"}]}
    async with open_service_client(tmp_path) as ask:
        assert (await ask.request_json("POST", "/api/agents", clerk, 201))["version"] == 1
        await ask.request_json("POST", "/api/agents", clerk, 409)
        assert (await ask.request_json("PUT", "/api/agents/clerk?expected=1", clerk | {"name": "Clerk"}))[
            "version"
        ] == 2
        assert (await ask.request_json("PUT", "/api/agents/clerk?expected=1", clerk, 409))["error"][
            "kind"
        ] == "conflict"
        bound = await ask.request_json("POST", "/api/agents/clerk/tools", {"tool_id": "time", "config": {"timeout": 5}})
        assert [one["tool_id"] for one in bound["agent"]["tools"]] == ["echo", "time"]
        await ask.request_json("PUT", "/api/agents/clerk/tools/time", {"enabled": False})
        tools = (await ask.request_json("GET", "/api/agents/clerk/tools"))["items"]
        assert [(one["tool_id"], one["enabled"], one["names"]) for one in tools] == [
            ("echo", True, ["echo"]),
            ("time", False, []),
        ]
        await ask.request_json("DELETE", "/api/agents/clerk/tools/time")
        await ask.request_json("DELETE", "/api/agents/clerk/tools/time", status=404)
        versions = (await ask.request_json("GET", "/api/agents/clerk/versions"))["items"]
        assert [one["version"] for one in versions] == [5, 4, 3, 2, 1]
        written = (await ask("GET", "/api/agents/clerk/export")).text
        await ask.request_json("DELETE", "/api/agents/clerk", status=204)
        taken = await ask("POST", "/api/agents/import", content=written, headers={"content-type": "application/yaml"})
        assert (taken.status_code, taken.json()["version"], taken.json()["agent"]["name"]) == (200, 1, "Clerk")
        for bad in ("agent_id: [", "- 1", "agent_id: a\nnonsense: 1", "agent_id: a\nmodel: gpt-9"):
            refused = await ask("POST", "/api/agents/import", content=bad)
            assert refused.status_code in (400, 422), refused.text


REFUSED = {
    "a variable in a header": (build_http_spec(headers={"X": "env:HOME"}), "OPPOSABLE_SECRETS"),
    "a variable as a token": (build_http_spec(auth={"type": "bearer", "token": "env:HOME"}), "OPPOSABLE_SECRETS"),
    "a variable as a user": (
        build_http_spec(auth={"type": "basic", "username": "env:HOME", "password": "env:SHOP"}),
        "OPPOSABLE_SECRETS",
    ),
    "a secret of another host": (
        build_http_spec(headers={"X": "env:BOUND"}, url_template="https://evil.example/"),
        "OPPOSABLE_SECRETS",
    ),
    "a program": ({"tool_type": "mcp_server", "tool_id": "p", "command": "sh"}, "OPPOSABLE_PROGRAMS"),
    "a server of this machine": (
        {"tool_type": "mcp_server", "tool_id": "p", "url": "http://127.0.0.1:9/mcp"},
        "OPPOSABLE_PRIVATE_HOSTS",
    ),
    "a folder of anyone's": ({"tool_type": "skill", "tool_id": "s", "path": "/etc"}, "OPPOSABLE_SKILLS"),
}


@pytest.mark.parametrize(("spec", "setting"), REFUSED.values(), ids=REFUSED)
async def test_what_the_owner_did_not_allow_is_rejected(tmp_path, spec, setting, monkeypatch):
    monkeypatch.setenv("SHOP", "s3cret-of-the-shop")
    monkeypatch.setenv("BOUND", "s3cret-of-one-host")
    async with open_service_client(tmp_path, secrets=("SHOP", "BOUND@api.example.com")) as ask:
        body_json = await ask.request_json("POST", "/api/tools", spec, 403)
        assert setting in body_json["error"]["message"]
        assert await ask.service.store.tools.get(spec["tool_id"]) is None
        good = build_http_spec(headers={"X": "env:BOUND", "Y": "env:SHOP"})
        await ask.request_json("POST", "/api/tools", good, 201)
        config = {"endpoint": {"headers": {"X": "env:HOME"}}}
        bind = {"tool_id": "web", "config": config}
        assert (await ask.request_json("POST", "/api/agents/default/tools", bind, 403))["error"]["kind"] == "forbidden"
        whole = {"agent_id": "thief", "tools": [bind]}
        assert (await ask.request_json("POST", "/api/agents", whole, 403))["error"]["kind"] == "forbidden"
        elsewhere = {"tool_id": "web", "config": {"endpoint": {"url_template": "https://evil.example/{item}"}}}
        assert (await ask.request_json("POST", "/api/agents/default/tools", elsewhere, 403))["error"][
            "kind"
        ] == "forbidden"


async def test_a_literal_secret_in_a_header_is_rejected_and_not_shown(tmp_path):
    async with open_service_client(tmp_path) as ask:
        spec = build_http_spec(headers={"X-API-Key": "s3cr3t-value"})
        error = (await ask.request_json("POST", "/api/tools", spec, 400))["error"]
        assert (error["kind"], "the header 'X-API-Key' holds a secret" in error["message"]) == ("bad_input", True)
        assert "s3cr3t-value" not in error["message"]
        assert await ask.service.store.tools.get("web") is None


async def test_only_owned_modules_can_be_named(tmp_path):
    async with open_service_client(tmp_path) as ask:
        spec = {"tool_type": "function", "tool_id": "sh", "module_path": "os", "function_name": "system"}
        assert (await ask.request_json("POST", "/api/tools", spec, 400))["error"]["kind"] == "bad_input"


async def test_a_server_is_added_by_the_name_of_its_host(tmp_path):
    server = {"tool_type": "mcp_server", "tool_id": "p", "connect_timeout": 0.2}
    async with open_service_client(tmp_path, private_hosts=("localhost",)) as ask:
        await ask.request_json("POST", "/api/tools", server | {"url": "http://localhost:9/mcp"}, 201)


async def test_a_disabled_tool_of_an_agent_is_reported_with_its_command(tmp_path):
    async with open_service_client(tmp_path) as ask:
        await ask.request_json("POST", "/api/agents", {"agent_id": "clerk", "tools": [{"tool_id": "echo"}]}, 201)
        await ask.request_json("POST", "/api/tools/echo/disable")
        problem = "There is no enabled tool named 'echo'. Add or enable it."
        [warning] = (await ask.request_json("GET", "/api/agents/clerk"))["warnings"]
        assert (warning["id"], warning["parameters"]) == ("unusable_tool", {"tool": "echo", "reason": problem})
        [bound] = (await ask.request_json("GET", "/api/agents/clerk/tools"))["items"]
        assert bound["problem"] == problem


async def test_only_an_admin_adds_a_server_or_a_database(tmp_path):
    async with open_service_client(tmp_path, private_hosts=("127.0.0.1",)) as ask:
        writer = await ask.create_key("tools:read", "tools:write")
        server = {"tool_type": "mcp_server", "tool_id": "p", "url": "http://127.0.0.1:9/mcp", "connect_timeout": 0.2}
        await ask.request_json("POST", "/api/tools", server, 403, key=writer)
        await ask.request_json("POST", "/api/agents", {"agent_id": "d", "database": "sqlite:///x"}, 403, key=writer)
        made = await ask.request_json("POST", "/api/tools", server, 201)
        assert made["accepted"] == []
        assert "tried again" in made["rejected"]["p"]
        by_name = server | {"tool_id": "n", "url": "http://localhost:9/mcp"}
        assert "internal host name" in (await ask("POST", "/api/tools", json=by_name)).json()["error"]["message"]
        assert (await ask.request_json("GET", "/readyz"))["parts"]["mcp_servers"].startswith("p: ")


PETS = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://pets.example.com"}],
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
    "paths": {
        "/pets": {"get": {"operationId": "pets", "responses": {}}},
        "/pets/{id}": {"get": {"operationId": "pet", "security": [{"key": []}], "responses": {}}},
        "/hooks": {"options": {"responses": {}}},
    },
}


@pytest.mark.parametrize("form", ["document", "text"])
async def test_an_openapi_document_is_imported_and_skipped_parts_are_reported(tmp_path, form):
    given = {form: PETS if form == "document" else orjson.dumps(PETS).decode(), "prefix": "zoo"}
    async with open_service_client(tmp_path) as ask:
        dry = await ask.request_json("POST", "/api/tools/import/openapi", given | {"dry_run": True})
        assert await ask.service.store.tools.get("zoo.pets") is None
        body_json = await ask.request_json("POST", "/api/tools/import/openapi", given)
        assert [spec["tool_id"] for spec in body_json["accepted"]] == ["zoo.pets"]
        assert body_json["wanted_variables"] == ["ZOO_KEY_API_KEY"]
        left = {one["where"]: one["why"] for one in body_json["left_out"]}
        assert "OPPOSABLE_SECRETS" in left["zoo.pet"]
        assert dry | {"dry_run": False} == body_json
        again = await ask.request_json("POST", "/api/tools/import/openapi", given)
        assert "already" in {one["where"]: one["why"] for one in again["left_out"]}["zoo.pets"]
        for wrong in ({}, {"url": "file:///etc/passwd"}, {"url": "http://127.0.0.1:9/x"}, {"text": "[1]"}):
            await ask.request_json("POST", "/api/tools/import/openapi", wrong, 400)


async def test_an_import_loads_its_tools_at_once(tmp_path, monkeypatch):
    loads = []

    async def count_loads(store):
        loads.append(store)
        return await load_stored_specs(store)

    paths = {f"/pets/{number}": {"get": {"operationId": f"pet{number}", "responses": {}}} for number in range(30)}
    async with open_service_client(tmp_path) as ask:
        monkeypatch.setattr("opposable.service.service.load_stored_specs", count_loads)
        given = {"document": {**PETS, "paths": paths}}
        imported = await ask.request_json("POST", "/api/tools/import/openapi", given)
        assert (len(imported["accepted"]), imported["left_out"]) == (30, [])
        assert len(loads) < 5
        assert ask.service.library.find_tool("pet29") is not None


@pytest.mark.parametrize("is_listed", [True, False])
async def test_optional_authentication_is_imported_only_with_a_listed_variable(tmp_path, is_listed):
    document = {**PETS, "security": [{"key": []}, {}]}
    settings = {"secrets": ("ZOO_KEY_API_KEY",)} if is_listed else {}
    async with open_service_client(tmp_path, **settings) as ask:
        given = {"document": document, "prefix": "zoo"}
        imported = await ask.request_json("POST", "/api/tools/import/openapi", given)
        auth = imported["accepted"][0]["endpoint"]["auth"]
        assert (auth["type"], auth["optional"]) == (("api_key", True) if is_listed else ("none", False))
        assert imported["wanted_variables"] == ["ZOO_KEY_API_KEY"]


async def test_an_invalid_stored_spec_does_not_reject_the_others(tmp_path):
    async with open_service_client(tmp_path) as ask:
        for tool_id in ("broken", "sum"):
            await ask.request_json("POST", "/api/tools", SUM | {"tool_id": tool_id}, 201)
        await ask.service.store.tools.add(FunctionToolSpec(tool_id="shell", module_path="os", function_name="system"))
        async with ask.service.store.tools._database.begin_write() as connection:
            await connection.execute(text("UPDATE tools SET endpoint = '{}' WHERE id = 'broken'"))
    async with open_service_client(tmp_path) as ask:
        listed = await ask.request_json("GET", "/api/tools")
        assert ({"shell", "sum"} <= {*get_ids(listed)}, [*listed["unreadable"]]) == (True, ["broken"])
        called = await ask.request_json("POST", "/api/tools/sum/call", {"arguments": {"expression": "2*21"}})
        assert called["output"]["result"] == 42
        assert (await ask.request_json("GET", "/api/tools/shell/health"))["state"] != "ok"


async def test_skills_are_imported_from_the_owners_folders(tmp_path):
    folder = tmp_path / "skills" / "report"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(REPORT)
    async with open_service_client(tmp_path, skills=(tmp_path / "skills",)) as ask:
        for outside in ("..", "/etc", "nothing"):
            await ask.request_json("POST", "/api/tools/import/skill", {"path": outside}, 400)
        body_json = await ask.request_json("POST", "/api/tools/import/skill", {"path": "report"})
        assert [spec["tool_id"] for spec in body_json["accepted"]] == ["report"]
        assert (await ask.request_json("POST", "/skills/report/run", {}))["output"]["instructions"] == "Write it."


async def test_mcp_servers_are_imported_from_client_configurations(tmp_path):
    config = {"mcpServers": {"clock": {"command": "python", "args": ["-m", "clock"]}}}
    async with open_service_client(tmp_path) as ask:
        body_json = await ask.request_json("POST", "/api/tools/import/mcp", {"config": config})
        assert (body_json["accepted"], [one["where"] for one in body_json["left_out"]]) == ([], ["clock"])
        old = {
            "notes": {"url": "https://notes.example.com/mcp"},
            "old": {"type": "sse", "url": "https://old.example/sse"},
        }
        body = {"config": {"mcpServers": old}, "dry_run": True}
        body_json = await ask.request_json("POST", "/api/tools/import/mcp", body)
        assert [one for one in body_json["left_out"] if one["where"] == "old"] == [
            {"where": "old", "why": "MCP no longer has the transport sse. Give the server's streamable HTTP address."}
        ]
        assert "notes" in [one["tool_id"] for one in body_json["accepted"]]
        await ask.request_json("POST", "/api/tools/import/mcp", {"config": {}}, 400)


async def test_remembered_failures_are_listed_pinned_and_deleted(tmp_path):
    failure = Failure("echo", "", "failed", "f1", message="It broke.")
    async with open_service_client(tmp_path) as ask:
        await ask.service.store.failures.add([failure])
        [one] = (await ask.request_json("GET", "/api/tools/echo/failures"))["items"]
        assert (await ask.request_json("GET", "/api/failures"))["items"] == [one]
        assert (one["message"], one["pinned"]) == ("It broke.", False)
        path = f"/api/tools/echo/failures/{one['failure_id']}"
        assert (await ask.request_json("PUT", f"{path}/pin", {"pinned": True}))["pinned"] is True
        await ask.request_json("DELETE", path.replace("echo", "time"), status=404)
        await ask.request_json("DELETE", path, status=204)
        await ask.service.store.failures.add([failure])
        assert await ask.request_json("DELETE", "/api/tools/echo/failures") == {"forgotten": 1}


async def test_the_metrics_are_exported_to_prometheus(tmp_path):
    async with open_service_client(tmp_path, {"m": ScriptedModel("hello")}) as ask:
        await ask.request_json("POST", "/api/tools/echo/call", {"arguments": {"text": "x"}})
        await ask.request_json("POST", "/api/tools/echo/call", {"arguments": {}})
        await ask.request_json("POST", "/agent/chat", {"message": "hi"})
        for nothing in ("/nothing", "/nothing/else"):
            await ask("GET", nothing)
        text = (await ask("GET", "/metrics")).text
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert lines['opposable_tool_calls_total{failure="none",tool="echo"}'] == "1.0"
    assert lines['opposable_tool_calls_total{failure="invalid_arguments",tool="echo"}'] == "1.0"
    assert lines['opposable_runs_total{status="finished"}'] == "1.0"
    assert lines['opposable_model_replies_total{model="scripted"}'] == "1.0"
    assert lines['opposable_http_requests_total{method="GET",route="other",status="404"}'] == "2.0"
    assert lines["opposable_recorder_up"] == "1.0"
