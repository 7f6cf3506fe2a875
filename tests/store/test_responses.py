"""Stored responses are found by their id, and the first one with an id stays."""

from dataclasses import replace
from datetime import timedelta

import pytest

from opposable.domain.records import StoredResponse, get_utc_now
from opposable.store.retention import RetentionLimits, RetentionResult

pytestmark = pytest.mark.anyio


async def test_responses_are_stored_read_and_deleted(store):
    items = ({"id": "msg_1", "content": "标题\x00"},)
    own = StoredResponse("r1", "ann", "m", "", items, {"id": "r1", "output": []}, get_utc_now())
    relayed = StoredResponse("r2", "ann", "m", "https://api.example/v1/responses", (), None, get_utc_now())
    await store.responses.add(own)
    await store.responses.add(relayed)
    await store.responses.add(replace(relayed, owner="bob"))
    assert await store.responses.get("r2") == relayed
    stored = await store.responses.get("r1")
    assert (stored.owner, stored.body) == ("ann", own.body)
    assert stored.items[0]["content"].startswith("标题")
    await store.responses.delete("r1")
    assert await store.responses.get("r1") is None


async def test_old_responses_are_deleted(store):
    old = StoredResponse("old", "", "m", "", (), {}, get_utc_now() - timedelta(days=3))
    await store.responses.add(old)
    await store.responses.add(replace(old, response_id="new", created_at=get_utc_now()))
    assert await store.retention.enforce(RetentionLimits(max_age=timedelta(days=1))) == RetentionResult(0, 0, 1)
    assert await store.responses.get("old") is None
    assert await store.responses.get("new") is not None
