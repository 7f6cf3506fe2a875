"""Several processes share conversations and rate limits in Valkey."""

import asyncio

import pytest
from tests.store.records import MESSAGES

from opposable.domain.errors import BadInput, StoreUnavailable
from opposable.domain.records import Conversation, ConversationTurn
from opposable.domain.specs import (
    RateLimit,
)
from opposable.store import open_store

pytestmark = pytest.mark.anyio


async def test_two_stores_share_conversations_and_rate_limits_in_valkey(valkey_url, tmp_path):
    first = open_store(f"sqlite:///{tmp_path}/a.db", valkey_url=valkey_url)
    second = open_store(f"sqlite:///{tmp_path}/b.db", valkey_url=valkey_url.replace("valkey:", "redis:"))
    async with first as first_store, second as second_store:
        await second_store.conversations.append_turns([ConversationTurn("t", Conversation("c"), MESSAGES)])
        assert await first_store.conversations.list_messages("c") == MESSAGES
        limit = RateLimit(calls=5)
        hits = await asyncio.gather(*((first_store, second_store)[n % 2].limiter.hit("k", limit) for n in range(12)))
        assert sum(hit.allowed for hit in hits) == 5
        assert await first_store.check_health() == {"database": "", "valkey": ""}


@pytest.mark.parametrize("url", ["http://127.0.0.1", "valkey", "redis://127.0.0.1:port"])
async def test_invalid_valkey_url_is_reported(url, tmp_path):
    with pytest.raises(BadInput, match="valkey://HOST:PORT/NUMBER"):
        async with open_store(f"sqlite:///{tmp_path}/a.db", valkey_url=url):
            pytest.fail("opened")


async def test_missing_valkey_server_is_reported_without_the_password(tmp_path):
    with pytest.raises(StoreUnavailable, match=r"The Valkey server does not answer: .*127\.0\.0\.1:9\b") as caught:
        async with open_store(f"sqlite:///{tmp_path}/a.db", valkey_url="redis://:hunter2@127.0.0.1:9"):
            pytest.fail("opened")
    assert "hunter2" not in str(caught.value)
