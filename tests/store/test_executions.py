"""Executions are stored once, filtered and exported."""

import pytest
from tests.store.records import START, make_execution, seconds_after_start

from opposable.domain.records import (
    ExecutionFilter,
    ExecutionStats,
)

pytestmark = pytest.mark.anyio


async def test_duplicate_execution_keeps_the_first_row(store):
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
    for criteria, numbers in cases:
        executions = (await store.executions.list(criteria)).items
        assert executions == tuple(calls[number - 1] for number in numbers), criteria
    assert await store.executions.get_statistics_by_tool(START) == {
        "a": ExecutionStats(2, 1, 0.25),
        "b": ExecutionStats(1, 1, 0.25),
    }


async def test_ten_thousand_executions_are_paged_and_exported_once(store):
    calls = [make_execution(number, at=seconds_after_start(number // 7)) for number in range(10_000)]
    for start in range(0, 10_000, 500):
        await store.executions.add(calls[start : start + 500])
    assert [execution async for execution in store.executions.export()] == calls[::-1]
    after, seen = "", 0
    for _ in range(12):
        page = await store.executions.list(after=after, limit=37)
        assert list(page.items) == calls[::-1][seen : seen + 37]
        after, seen = page.next_cursor, seen + 37
