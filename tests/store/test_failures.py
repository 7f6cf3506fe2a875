"""Failures are counted, corrected, pinned and deleted."""

from dataclasses import replace

import pytest
from sqlalchemy.dialects.sqlite import dialect
from tests.store.records import seconds_after_start

from opposable.domain.records import (
    Failure,
)
from opposable.store.failures import _select_newest, _select_pinned

pytestmark = pytest.mark.anyio


async def test_failures_are_counted_corrected_pinned_and_deleted(store):
    shared_failure = Failure("web", "read", "timeout", "f1", message="slow", last_seen=seconds_after_start(1))
    agent_failure = replace(shared_failure, scope="agent", kind="failed", last_seen=seconds_after_start(2))
    await store.failures.add([shared_failure, agent_failure])
    await store.failures.add(
        [replace(shared_failure, message="slower", last_seen=seconds_after_start(3)), shared_failure]
    )
    counted = replace(
        shared_failure, count=3, message="slow", first_seen=seconds_after_start(1), last_seen=seconds_after_start(1)
    )
    shared = await store.failures.get(shared_failure.failure_id)
    assert (shared.count, shared.first_seen) == (3, seconds_after_start(1))
    assert counted.failure_id == shared.failure_id == shared_failure.failure_id
    assert (await store.failures.get(agent_failure.failure_id)).count == 1
    assert await store.failures.get(replace(shared_failure, fingerprint="f2").failure_id) is None
    assert await store.failures.correct(shared_failure.failure_id, {"timeout": [1, "五"]})
    assert await store.failures.set_pinned(shared_failure.failure_id, True)
    stored = await store.failures.get(shared_failure.failure_id)
    assert (stored.correction, stored.pinned) == ({"timeout": [1, "五"]}, True)
    await store.failures.add([shared_failure])
    assert (await store.failures.get(shared_failure.failure_id)).correction == {"timeout": [1, "五"]}
    failures_by_tool = await store.failures.get_failures_by_tool(["web", "none"], ["", "agent"])
    assert [failure.failure_id for failure in failures_by_tool["web"]] == [
        shared_failure.failure_id
    ]  # what came once teaches nothing
    await store.failures.add([agent_failure])
    failures_by_tool = await store.failures.get_failures_by_tool(["web", "none"], ["", "agent"])
    assert {tool: len(failures) for tool, failures in failures_by_tool.items()} == {"web": 2}
    assert await store.failures.list_by_id_prefix(shared_failure.failure_id[:6]) == (
        await store.failures.get(shared_failure.failure_id),
    )
    assert len(await store.failures.list_by_id_prefix("")) == 2
    assert await store.failures.list_by_id_prefix(f"{shared_failure.failure_id[:6]}0000") == ()
    assert len((await store.failures.list(tool_id="web", scope="agent")).items) == 1
    assert await store.failures.forget_before(seconds_after_start(100)) == 1
    assert [f.failure_id for f in (await store.failures.list()).items] == [shared_failure.failure_id]
    assert await store.failures.forget(shared_failure.failure_id)
    assert not await store.failures.set_pinned(shared_failure.failure_id, True)
    await store.failures.add([shared_failure, agent_failure])
    assert await store.failures.forget_tool("web", "agent") == 1
    assert await store.failures.forget_tool("web") == 1


async def test_informative_failures_are_read_from_partial_indexes(store, engine):
    if engine == "postgresql":
        pytest.skip("PostgreSQL scans a table of this size instead of using an index")
    index_uses = []
    for query, index in (
        (_select_newest(True, 20), "ix_failures_teaching"),
        (_select_pinned(True), "ix_failures_pinned"),
    ):
        sql = str(query.compile(dialect=dialect()))
        parameters = ('["web"]', '["", "agent"]', 20, 0)[: sql.count("?")]
        async with store.failures._database.begin_read() as connection:
            plan = (await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", parameters)).all()
        index_uses.append(any(f"USING INDEX {index} (tool_id=? AND scope=?)" in step.detail for step in plan))
    assert index_uses == [True, True]


async def test_last_failures_of_many_tools_are_returned_newest_first(store):
    await store.failures.add(
        [Failure(f"t{n % 120}", "a", "failed", f"f{n}", count=2, last_seen=seconds_after_start(n)) for n in range(480)]
        + [Failure("t0", "a", "failed", "f", "agent", count=2, last_seen=seconds_after_start(999))]
        + [Failure("t5", "a", "failed", f"once{n}", last_seen=seconds_after_start(999)) for n in range(9)]
        + [Failure("t5", "a", "failed", "old", pinned=True, last_seen=seconds_after_start(0))]
    )
    failures_by_tool = await store.failures.get_failures_by_tool([f"t{n}" for n in range(121)], limit_per_tool=3)
    assert len(failures_by_tool) == 120
    assert [failure.fingerprint for failure in failures_by_tool["t5"]] == ["f365", "f245", "f125", "old"]
    assert [
        failure.fingerprint for failure in (await store.failures.get_failures_by_tool(["t0"], ["agent"]))["t0"]
    ] == ["f"]
    assert await store.failures.get_failures_by_tool([]) == {}
