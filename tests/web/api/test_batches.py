"""Batches over HTTP: created, listed, paused, resumed, retried, cancelled, each only by its owner."""

import pytest
from tests.servers import postgresql  # noqa: F401 - a fixture
from tests.web.api.asking import open_service_client

from opposable.domain.batches import BatchTask, RunOutcome
from opposable.service.batches import create_batch

pytestmark = pytest.mark.anyio

BODY = {
    "tasks": [{"id": "1", "task": "one"}, {"id": "2", "task": "two"}],
    "tool_rates": {"echo": {"calls": 1}},
    "tool_concurrency": {"echo": 2},
}


@pytest.fixture
async def ask(tmp_path, postgresql):  # noqa: F811
    url = postgresql.new_database()
    async with open_service_client(tmp_path, url=url) as client:
        yield client
    postgresql.drop_database(url)


async def test_a_batch_is_controlled_over_http(ask):
    created = await ask.request_json("POST", "/api/batches", BODY, 201)
    path = f"/api/batches/{created['batch_id']}"
    assert (created["status"], created["agent_id"], created["total"], created["ended"]) == ("running", "default", 2, 0)
    assert (created["tool_concurrency"], created["model_concurrency"]) == ({"echo": 2}, None)
    assert created["tool_rates"] == {"echo": {"calls": 1, "seconds": 60.0}}
    assert (await ask.request_json("POST", f"{path}/pause"))["status"] == "paused"
    assert (await ask.request_json("POST", f"{path}/resume"))["status"] == "running"
    [first, second] = await ask.service.store.queued_runs.list_ready_tasks()
    await ask.service.store.queued_runs.finish(first, RunOutcome("finished", "1", 3, {"input_tokens": 5}, cost=0.5))
    await ask.service.store.queued_runs.finish(second, RunOutcome("failed", error="no answer"))
    ended = await ask.request_json("GET", path)
    assert (ended["status"], ended["ended"], ended["cost"], ended["input_tokens"]) == ("finished", 2, 0.5, 5)
    results = (await ask("GET", f"{path}/results")).text.splitlines()
    assert results[0] == '{"id":"1","status":"finished","text":"1","calls":3,"usage":{"input_tokens":5},"error":null}'
    assert len(results) == 2
    assert (await ask.request_json("POST", f"{path}/retry"))["counts"] == {"finished": 1, "queued": 1}
    assert (await ask.request_json("POST", f"{path}/cancel"))["counts"] == {"finished": 1, "cancelled": 1}
    await ask.request_json("POST", f"{path}/pause", status=409)
    assert [batch["batch_id"] for batch in (await ask.request_json("GET", "/api/batches"))["items"]] == [
        created["batch_id"]
    ]


async def test_an_admin_controls_the_batches_of_the_command_line_and_of_all_keys(ask):
    agent = await ask.service.store.agents.get("default")
    from_command_line = await create_batch(ask.service.store, agent.spec, [BatchTask("1", "one")])
    from_key = await ask.request_json("POST", "/api/batches", BODY, 201, key=await ask.create_key("chat"))
    admin = await ask.create_key("admin")
    listed = (await ask.request_json("GET", "/api/batches", key=admin))["items"]
    assert {batch["batch_id"] for batch in listed} == {from_command_line.batch_id, from_key["batch_id"]}
    for batch in listed:
        path = f"/api/batches/{batch['batch_id']}"
        assert (await ask.request_json("POST", f"{path}/cancel", key=admin))["status"] == "cancelled"
        assert (await ask("GET", f"{path}/results", key=admin)).status_code == 200


async def test_a_batch_belongs_to_its_key(ask):
    created = await ask.request_json("POST", "/api/batches", BODY, 201)
    key = await ask.create_key("chat")
    await ask.request_json("GET", f"/api/batches/{created['batch_id']}", status=404, key=key)
    assert (await ask.request_json("GET", "/api/batches", key=key))["items"] == []


async def test_a_batch_that_does_not_exist_is_named(ask):
    error = (await ask.request_json("GET", "/api/batches/nope", status=404))["error"]
    assert error["message"] == "There is no batch 'nope'."


async def test_wrong_batches_are_rejected(ask):
    for body in ({"tasks": []}, {"tasks": [{"id": "1", "task": "x"}] * 2}, {"tasks": [{"id": "1", "task": " "}]}):
        assert (await ask("POST", "/api/batches", body)).status_code in (400, 422)
    await ask.request_json("POST", "/api/batches", {**BODY, "agent_id": "none"}, 404)


async def test_a_batch_needs_postgresql(tmp_path):
    async with open_service_client(tmp_path) as ask:
        error = await ask.request_json("POST", "/api/batches", BODY, 400)
    assert "Set OPPOSABLE_DATABASE_URL to postgresql://" in error["error"]["message"]
