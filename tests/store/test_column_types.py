"""Columns store any text, number and datetime the same way on both databases."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from tests.store.records import HOSTILE_TEXTS, START, make_execution

from opposable.domain.records import (
    ExecutionFilter,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
async def test_any_text_is_stored(store, text):
    stored_text = text.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
    execution = make_execution(
        1, arguments={text: [text, {"a": text}]}, result=text, tool_id=text, conversation_id=text
    )
    await store.executions.add([execution])
    stored = replace(
        execution,
        arguments={stored_text: [stored_text, {"a": stored_text}]},
        result=stored_text,
        tool_id=stored_text,
        conversation_id=stored_text,
    )
    assert await store.executions.get("e000001") == stored
    assert (await store.executions.list(ExecutionFilter(tool_id=stored_text, conversation_id=stored_text))).items == (
        stored,
    )
    assert (await store.executions.list(ExecutionFilter(tool_id=stored_text + "'"))).items == ()


async def test_large_integers_and_nan_are_stored(store):
    await store.executions.add([make_execution(1, arguments={"big": 2**70, "nan": float("nan"), "float": 1e-7})])
    assert (await store.executions.get("e000001")).arguments == {"big": 2**70, "nan": None, "float": 1e-7}


async def test_datetime_is_returned_in_utc_and_a_naive_one_is_rejected(store):
    local_time = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=8)))
    await store.executions.add([make_execution(1, at=local_time)])
    assert (await store.executions.get("e000001")).at == datetime(2026, 1, 1, 4, tzinfo=UTC)
    with pytest.raises(Exception, match="has no time zone"):
        await store.executions.add([make_execution(2, at=START.replace(tzinfo=None))])


async def test_deep_arguments_are_stored_to_a_depth_of_200(store):
    value = [1]
    for _ in range(1000):
        value = [value]
    await store.executions.add([make_execution(1, arguments={"value": value})])
    stored = (await store.executions.get("e000001")).arguments["value"]
    for _ in range(200):
        [stored] = stored
    assert stored.startswith("[[[")
