"""The tokens of API keys, in this process and in the store."""

import asyncio
from dataclasses import replace

import pytest

from opposable.domain.rate_limits import InProcessRateLimiter
from opposable.store.keys import generate_key
from opposable.web.middleware.authentication import ApiKeyCache
from opposable.web.middleware.request_limits import TokenUsageRecorder

pytestmark = pytest.mark.anyio


class SlowKeys:
    """A repository with one key, whose writes are stored before they return."""

    def __init__(self, stored_key):
        self.stored_key = stored_key
        self.may_return = asyncio.Event()

    async def add_token_usage(self, key_id, tokens):
        self.stored_key = replace(self.stored_key, tokens_used=self.stored_key.tokens_used + tokens)
        await self.may_return.wait()

    async def get_by_hash(self, sha256):
        return self.stored_key


async def test_tokens_of_a_write_in_progress_count_once():
    key, stored_key = generate_key("front end", ("chat",), token_budget=8)
    keys = SlowKeys(stored_key)
    usage = TokenUsageRecorder(keys)
    usage.record_tokens(stored_key.key_id, 5)
    writing = asyncio.create_task(usage.write())
    await asyncio.sleep(0)
    cached_key = asyncio.create_task(ApiKeyCache(keys, InProcessRateLimiter(), usage).find(key))
    await asyncio.sleep(0.01)
    keys.may_return.set()
    assert (await cached_key).stored_tokens_used == 0
    await writing
