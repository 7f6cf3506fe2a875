"""API keys are found by their hash, charged and revoked."""

from dataclasses import replace

import pytest
from tests.store.records import START

from opposable.domain.errors import BadInput
from opposable.domain.records import (
    ApiKey,
)
from opposable.domain.specs import (
    RateLimit,
)

pytestmark = pytest.mark.anyio


async def test_key_is_found_by_hash_charged_and_revoked(store):
    key = ApiKey("k1", "前端", "op_abc", "d" * 64, START, ("chat", "tools:read"), RateLimit(calls=3), 100)
    await store.keys.add(key)
    with pytest.raises(BadInput, match="already exists"):
        await store.keys.add(replace(key, key_id="k2"))
    assert await store.keys.get_by_hash("d" * 64) == key
    assert await store.keys.get_by_hash("e" * 64) is None
    assert [await store.keys.get("k1"), await store.keys.get("none")] == [key, None]
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
