"""What is kept comes back as it was, on both engines."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy.dialects.sqlite import dialect
from tests.store.records import HOSTILE_TEXTS, START, make_execution, seconds_after_start

from opposable.domain.errors import BadInput, StoreConflict
from opposable.domain.records import (
    ApiKey,
    Approval,
    ExecutionFilter,
    ExecutionStats,
    Failure,
    Run,
    RunEvent,
    ToolPin,
    canonical_sha256,
)
from opposable.domain.specs import (
    AgentSpec,
    AgentToolBinding,
    AuthConfig,
    EndpointConfig,
    FunctionToolSpec,
    HttpToolSpec,
    McpServerSpec,
    RateLimit,
    ResponseTransform,
    SkillSpec,
)
from opposable.domain.usage import Usage
from opposable.store.failures import _select_newest, _select_pinned

pytestmark = pytest.mark.anyio

WEATHER = HttpToolSpec(
    tool_id="weather",
    display_name="天气",
    description="Tomorrow's weather",
    endpoint=EndpointConfig(
        url_template="https://example.com/{city}", auth=AuthConfig(type="bearer", token="env:WEATHER_TOKEN")
    ),
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    response_transform=ResponseTransform(extract="days[0]"),
    rate_limit=RateLimit(calls=5, seconds=1),
    tags=("web", "天气"),
    mode="streamable",
    priority=3,
    metadata={"a": [1, None, {"b": "中"}]},
)
SPECS = [
    WEATHER,
    FunctionToolSpec(tool_id="sum", module_path="math", function_name="fsum", idempotent=True, cache_seconds=5),
    McpServerSpec(tool_id="计算.server", command="server", args=("--x",), env={"A": "env:A"}),
    SkillSpec(tool_id="skill", path="skills/one"),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.tool_type)
async def test_a_tool_comes_back_as_it_was(store, spec):
    await store.tools.add(spec)
    assert await store.tools.get(spec.tool_id) == spec
    changed = spec.model_copy(update={"description": "changed", "enabled": False, "tags": ()})
    await store.tools.save(changed)
    assert (await store.tools.list()).items == (changed,)


async def test_a_tools_columns_are_those_of_the_document(store, engine):
    from sqlalchemy import text

    await store.tools.add(WEATHER)
    async with store.tools._database.begin_read() as connection:
        row = (await connection.execute(text("SELECT * FROM tools"))).one()._mapping
    assert list(row)[:15] == [
        "id",
        "name",
        "type",
        "display_name",
        "description",
        "category",
        "endpoint",
        "parameters",
        "response_transform",
        "rate_limit",
        "enabled",
        "version",
        "tags",
        "created_at",
        "updated_at",
    ]
    assert (row["id"], row["name"], row["type"], row["tool_type"]) == ("weather", "weather", "streamable", "http")
    if engine == "postgresql":
        assert row["tags"] == ["web", "天气"]
        assert row["endpoint"]["url_template"] == "https://example.com/{city}"


async def test_a_tool_written_by_hand_into_the_documents_columns_is_a_tool(store):
    from sqlalchemy import text

    statement = """INSERT INTO tools (id, name, display_name, description, endpoint, parameters)
        VALUES ('t', 't', 'T', 'by hand', '{"url_template": "internal://time"}', '{"type": "object", "properties": {}}')"""
    async with store.tools._database.begin_write() as connection:
        await connection.execute(text(statement))
    made = await store.tools.get("t")
    assert made == HttpToolSpec(
        tool_id="t",
        display_name="T",
        description="by hand",
        category="custom",
        endpoint=EndpointConfig(url_template="internal://time"),
    )


async def test_a_row_that_is_no_tool_is_set_aside_with_the_reason(store):
    from sqlalchemy import text

    for spec in SPECS:
        await store.tools.add(spec)
    async with store.tools._database.begin_write() as connection:
        await connection.execute(text("UPDATE tools SET endpoint = '{}' WHERE id = 'weather'"))
    page = await store.tools.list()
    assert [spec.tool_id for spec in page.items] == ["skill", "sum", "计算.server"]
    assert page.unreadable_rows == {
        "weather": "The row of tool 'weather' describes no tool: http.endpoint.url_template: Field required."
    }


async def test_a_taken_tool_id_and_a_text_too_long_are_told(store):
    await store.tools.add(WEATHER)
    with pytest.raises(BadInput, match="There is a tool 'weather' already; update it, or choose another tool_id"):
        await store.tools.add(WEATHER)
    with pytest.raises(BadInput, match="version of tool 'weather' has 21 characters; at most 20 are kept"):
        await store.tools.save(WEATHER.model_copy(update={"version": "1" * 21}))


async def test_tools_are_listed_in_parts_and_by_what_they_are(store):
    for spec in SPECS:
        await store.tools.add(spec)
    first = await store.tools.list(limit=3)
    rest = await store.tools.list(limit=3, after=first.next_cursor)
    assert [[spec.tool_id for spec in page.items] for page in (first, rest)] == [
        ["skill", "sum", "weather"],
        ["计算.server"],
    ]
    assert rest.next_cursor == ""
    assert await store.tools.set_enabled("sum", False)
    assert not await store.tools.set_enabled("no such", False)
    assert [spec.tool_id for spec in (await store.tools.list(enabled=False)).items] == ["sum"]
    assert [spec.tool_id for spec in (await store.tools.list(tool_type="skill")).items] == ["skill"]


AGENT = AgentSpec(
    agent_id="helper",
    name="助手",
    instructions="Be short.",
    tools=(AgentToolBinding(tool_id="sum", config={"timeout": 3}), AgentToolBinding(tool_id="weather", enabled=False)),
)


async def test_an_agent_has_versions_and_bindings(store):
    for spec in SPECS:
        await store.tools.add(spec)
    first = await store.agents.add(AGENT)
    assert (first.spec, first.version) == (AGENT, 1)
    assert await store.agents.get("helper") == first
    assert await store.agents.update(AGENT) == first
    second_version = await store.agents.bind("helper", AgentToolBinding(tool_id="skill"))
    assert second_version.version == 2
    assert [binding.tool_id for binding in second_version.spec.tools] == ["skill", "sum", "weather"]
    third = await store.agents.unbind("helper", "sum")
    assert [(record.version, len(record.spec.tools)) for record in await store.agents.list_versions("helper")] == [
        (3, 2),
        (2, 3),
        (1, 2),
    ]
    assert (await store.agents.list()).items == (third,)
    assert (await store.agents.list_versions("helper"))[-1].spec == AGENT
    with pytest.raises(StoreConflict, match="is at version 3; the change is based on version 1"):
        await store.agents.update(AGENT, expected_version=1)
    assert await store.tools.delete("weather")
    assert [binding.tool_id for binding in (await store.agents.get("helper")).spec.tools] == ["skill"]
    assert await store.agents.delete("helper")
    assert await store.agents.get("helper") is None
    assert await store.agents.list_versions("helper") == ()
    assert await store.agents.bind("helper", AgentToolBinding(tool_id="skill")) is None


async def test_an_agent_that_cannot_be_kept_is_told(store):
    with pytest.raises(BadInput, match="not in the store. Add it first"):
        await store.agents.add(AGENT)
    assert await store.agents.get("helper") is None
    with pytest.raises(BadInput, match="the limit is 36"):
        await store.agents.add(AgentSpec(agent_id="a" * 37))
    await store.agents.add(AgentSpec(agent_id="a"))
    with pytest.raises(BadInput, match="The agent 'a' already exists"):
        await store.agents.add(AgentSpec(agent_id="a"))
    with pytest.raises(BadInput, match="not in the store. Add it first"):
        await store.agents.bind("a", AgentToolBinding(tool_id="none"))


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
async def test_any_text_comes_back(store, text):
    kept = text.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
    one = make_execution(1, arguments={text: [text, {"a": text}]}, result=text, tool_id=text, conversation_id=text)
    await store.executions.add([one])
    back = replace(one, arguments={kept: [kept, {"a": kept}]}, result=kept, tool_id=kept, conversation_id=kept)
    assert await store.executions.get("e000001") == back
    assert (await store.executions.list(ExecutionFilter(tool_id=kept, conversation_id=kept))).items == (back,)
    assert (await store.executions.list(ExecutionFilter(tool_id=kept + "'"))).items == ()


async def test_numbers_beyond_64_bits_and_no_numbers_are_kept(store):
    await store.executions.add([make_execution(1, arguments={"big": 2**70, "nan": float("nan"), "float": 1e-7})])
    assert (await store.executions.get("e000001")).arguments == {"big": 2**70, "nan": None, "float": 1e-7}


async def test_a_moment_comes_back_in_utc_and_a_naive_one_is_refused(store):
    there = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=8)))
    await store.executions.add([make_execution(1, at=there)])
    assert (await store.executions.get("e000001")).at == datetime(2026, 1, 1, 4, tzinfo=UTC)
    with pytest.raises(Exception, match="has no time zone"):
        await store.executions.add([make_execution(2, at=START.replace(tzinfo=None))])


async def test_a_call_recorded_twice_is_kept_once(store):
    await store.executions.add([make_execution(1), make_execution(2)])
    await store.executions.add([make_execution(2, result="other"), make_execution(3)])
    assert (await store.executions.list()).items == (make_execution(3), make_execution(2), make_execution(1))


async def test_executions_are_filtered(store):
    calls = [
        make_execution(1, tool_id="a", run_id="r1"),
        make_execution(2, tool_id="b", failure="timeout", agent_id="x"),
        make_execution(3, tool_id="a", failure="failed", conversation_id="c"),
    ]
    await store.executions.add(calls)
    cases = [
        (ExecutionFilter(), [3, 2, 1]),
        (ExecutionFilter(tool_id="a"), [3, 1]),
        (ExecutionFilter(run_id="r1"), [1]),
        (ExecutionFilter(agent_id="x"), [2]),
        (ExecutionFilter(conversation_id="c"), [3]),
        (ExecutionFilter(failure="any"), [3, 2]),
        (ExecutionFilter(failure="timeout"), [2]),
        (ExecutionFilter(since=seconds_after_start(2)), [3, 2]),
        (ExecutionFilter(until=seconds_after_start(2)), [1]),
        (ExecutionFilter(tool_id="a", failure="any", since=seconds_after_start(1), until=seconds_after_start(4)), [3]),
    ]
    for which, numbers in cases:
        found = (await store.executions.list(which)).items
        assert found == tuple(calls[number - 1] for number in numbers), which
    assert await store.executions.get_statistics_by_tool(START) == {
        "a": ExecutionStats(2, 1, 0.25),
        "b": ExecutionStats(1, 1, 0.25),
    }


async def test_ten_thousand_executions_are_paged_and_exported_each_once(store):
    calls = [make_execution(number, at=seconds_after_start(number // 7)) for number in range(10_000)]
    for start in range(0, 10_000, 500):
        await store.executions.add(calls[start : start + 500])
    assert [one async for one in store.executions.export()] == calls[::-1]
    after, seen = "", 0
    for _ in range(12):
        page = await store.executions.list(after=after, limit=37)
        assert list(page.items) == calls[::-1][seen : seen + 37]
        after, seen = page.next_cursor, seen + 37


@pytest.mark.parametrize("cursor", ["x", "中", "W10", "eyJhIjoxfQ", "WyIyMDI2LTAxLTAxIiwgImEiXQ"])
async def test_a_wrong_cursor_or_limit_is_told(store, cursor):
    with pytest.raises(BadInput, match="This cursor was not given out here"):
        await store.executions.list(after=cursor)
    with pytest.raises(BadInput, match="it can be from 1 to 1000"):
        await store.executions.list(limit=0)


RUN = Run("r1", START, agent_id="a", conversation_id="c", owner="k", task="做", usage=Usage(1, 2, 3))


async def test_a_run_and_its_events(store):
    await store.runs.save(RUN)
    assert await store.runs.get("r1") == RUN
    assert await store.runs.request_cancel("r1")
    done = replace(
        RUN, status="cancelled", text="t", reason="time", ended_at=seconds_after_start(5), turns=2, tool_calls=1
    )
    await store.runs.save(done)
    assert await store.runs.get("r1") == replace(done, cancel_requested=True)
    assert await store.runs.list_cancel_requested(["r1", "r2"]) == {"r1"}
    assert not await store.runs.request_cancel("r1")
    await store.runs.save(replace(RUN, run_id="r2", started_at=seconds_after_start(1), owner="other"))
    for which, found in [
        ({}, ["r2", "r1"]),
        ({"owner": "k"}, ["r1"]),
        ({"status": "running"}, ["r2"]),
        ({"agent_id": "a", "conversation_id": "c", "since": seconds_after_start(1)}, ["r2"]),
    ]:
        assert [run.run_id for run in (await store.runs.list(**which)).items] == found
    events = [RunEvent("r1", number, "text", {"content": f"片{number}"}, START) for number in range(1, 6)]
    await store.runs.add_events(events[:3])
    await store.runs.add_events(events)
    assert await store.runs.list_events("r1", after=2, limit=2) == tuple(events[2:4])
    assert await store.runs.delete("r1")
    assert await store.runs.list_events("r1") == ()


async def test_failures_are_counted_corrected_pinned_and_forgotten(store):
    one = Failure("web", "read", "timeout", "f1", message="slow", last_seen=seconds_after_start(1))
    mine = replace(one, scope="agent", kind="failed", last_seen=seconds_after_start(2))
    await store.failures.add([one, mine])
    await store.failures.add([replace(one, message="slower", last_seen=seconds_after_start(3)), one])
    again = replace(one, count=3, message="slow", first_seen=seconds_after_start(1), last_seen=seconds_after_start(1))
    [shared] = await store.failures.get_failures_for_call("web", "read", "f1")
    assert (shared.count, shared.first_seen) == (3, seconds_after_start(1))
    assert again.failure_id == shared.failure_id == one.failure_id
    assert [f.count for f in await store.failures.get_failures_for_call("web", "read", "f1", ["", "agent"])] == [3, 1]
    assert await store.failures.get_failures_for_call("web", "read", "f2") == ()
    assert await store.failures.correct(one.failure_id, {"timeout": [1, "五"]})
    assert await store.failures.set_pinned(one.failure_id, True)
    kept = await store.failures.get(one.failure_id)
    assert (kept.correction, kept.pinned) == ({"timeout": [1, "五"]}, True)
    await store.failures.add([one])
    assert (await store.failures.get(one.failure_id)).correction == {"timeout": [1, "五"]}
    found = await store.failures.get_failures_by_tool(["web", "none"], ["", "agent"])
    assert [failure.failure_id for failure in found["web"]] == [one.failure_id]  # what came once teaches nothing
    await store.failures.add([mine])
    found = await store.failures.get_failures_by_tool(["web", "none"], ["", "agent"])
    assert {tool: len(failures) for tool, failures in found.items()} == {"web": 2}
    assert await store.failures.list_by_id_prefix(one.failure_id[:6]) == (await store.failures.get(one.failure_id),)
    assert len(await store.failures.list_by_id_prefix("")) == 2
    assert await store.failures.list_by_id_prefix(f"{one.failure_id[:6]}0000") == ()
    assert len((await store.failures.list(tool_id="web", scope="agent")).items) == 1
    assert await store.failures.forget_before(seconds_after_start(100)) == 1
    assert [f.failure_id for f in (await store.failures.list()).items] == [one.failure_id]
    assert await store.failures.forget(one.failure_id)
    assert not await store.failures.set_pinned(one.failure_id, True)
    await store.failures.add([one, mine])
    assert await store.failures.forget_tool("web", "agent") == 1
    assert await store.failures.forget_tool("web") == 1


async def test_what_failures_teach_is_found_in_an_index_of_its_own(store, engine):
    if engine == "postgresql":
        return  # a table as small as a test's is read whole there
    said = []
    for query, index in (
        (_select_newest(True, 20), "ix_failures_teaching"),
        (_select_pinned(True), "ix_failures_pinned"),
    ):
        shown = str(query.compile(dialect=dialect()))
        given = ('["web"]', '["", "agent"]', 20, 0)[: shown.count("?")]
        async with store.failures._database.begin_read() as connection:
            plan = (await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {shown}", given)).all()
        said.append(any(f"USING INDEX {index} (tool_id=? AND scope=?)" in step.detail for step in plan))
    assert said == [True, True]


async def test_the_last_failures_of_many_tools_are_told_newest_first(store):
    await store.failures.add(
        [Failure(f"t{n % 120}", "a", "failed", f"f{n}", count=2, last_seen=seconds_after_start(n)) for n in range(480)]
        + [Failure("t0", "a", "failed", "f", "agent", count=2, last_seen=seconds_after_start(999))]
        + [Failure("t5", "a", "failed", f"once{n}", last_seen=seconds_after_start(999)) for n in range(9)]
        + [Failure("t5", "a", "failed", "old", pinned=True, last_seen=seconds_after_start(0))]
    )
    found = await store.failures.get_failures_by_tool([f"t{n}" for n in range(121)], limit_per_tool=3)
    assert len(found) == 120
    assert [failure.fingerprint for failure in found["t5"]] == ["f365", "f245", "f125", "old"]
    assert [
        failure.fingerprint for failure in (await store.failures.get_failures_by_tool(["t0"], ["agent"]))["t0"]
    ] == ["f"]
    assert await store.failures.get_failures_by_tool([]) == {}


async def test_pins_wait_for_acceptance(store):
    pin = ToolPin("server", "read", "a" * 64, {"name": "read"}, START, "b" * 64, {"name": "read", "x": "变"})
    await store.pins.put(pin)
    assert await store.pins.get("server", "read") == pin
    assert await store.pins.list_for_server("server") == (pin,)
    assert not await store.pins.accept("server", "read", "c" * 64)
    assert not await store.pins.accept("server", "read", "")
    assert await store.pins.accept("server", "read", "b" * 64)
    [accepted] = await store.pins.list_for_server("server")
    assert replace(accepted, pinned_at=START) == ToolPin("server", "read", "b" * 64, pin.pending, START)
    assert await store.pins.delete("server") == 1


async def test_keys_are_found_by_their_hash_spent_and_revoked(store):
    key = ApiKey("k1", "前端", "op_abc", "d" * 64, START, ("chat", "tools:read"), RateLimit(calls=3), 100)
    await store.keys.add(key)
    with pytest.raises(BadInput, match="in the store already"):
        await store.keys.add(replace(key, key_id="k2"))
    assert await store.keys.get_by_hash("d" * 64) == key
    assert await store.keys.get_by_hash("e" * 64) is None
    assert [
        await store.keys.add_token_usage("k1", 40),
        await store.keys.add_token_usage("k1", 2),
        await store.keys.add_token_usage("none", 1),
    ] == [
        40,
        42,
        0,
    ]
    assert (await store.keys.get_by_hash("d" * 64)).last_used_at is not None
    assert [await store.keys.revoke("k1"), await store.keys.revoke("k1")] == [True, False]
    [revoked] = await store.keys.list()
    assert revoked.revoked_at is not None


async def test_an_approval_is_decided_once_and_bound_to_its_arguments(store):
    arguments = {"path": "/x", "内容": [1, 2.5, None]}
    approval = Approval("p1", "r", "c", "write", arguments, canonical_sha256(arguments), START, owner="k")
    await store.approvals.add(approval)
    with pytest.raises(BadInput, match="already"):
        await store.approvals.add(approval)
    assert (await store.approvals.list(status="pending", owner="k")).items == (approval,)
    assert await store.approvals.get_for_call("r", "c", canonical_sha256({**arguments, "path": "/y"})) is None
    decided = await store.approvals.decide("p1", "approved", decided_by="ann", reason="好")
    assert replace(decided, decided_at=None) == replace(approval, status="approved", decided_by="ann", reason="好")
    assert await store.approvals.decide("p1", "denied", decided_by="bob") is None
    assert await store.approvals.get_for_call("r", "c", approval.sha256) == decided
    assert await store.approvals.get("p1") == decided


async def test_a_tools_name_is_kept_and_no_other_tool_may_have_it(store):
    named = WEATHER.model_copy(update={"name": "get_weather"})
    await store.tools.add(named)
    assert await store.tools.get("weather") == named
    twin = named.model_copy(update={"tool_id": "t"})
    for keep in (store.tools.add, store.tools.save):
        with pytest.raises(BadInput, match="another tool of the name 'get_weather'"):
            await keep(twin)
    same = WEATHER.model_copy(update={"name": "weather"})
    await store.tools.save(same)
    assert await store.tools.get("weather") == same
