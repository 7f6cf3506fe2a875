"""Connection to a Valkey or Redis server that several processes share."""

import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from limits import RateLimitItem, RateLimitItemPerSecond
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from valkey.asyncio import Valkey

from opposable.domain.errors import BadInput
from opposable.domain.rate_limits import RateLimitResult
from opposable.domain.specs import RateLimit
from opposable.store.valkey_conversations import KEY_NAMESPACE, ValkeyConversationRepository, translate_valkey_errors

SOCKET_TIMEOUT_SECONDS = 5.0
"""Seconds to wait for a connection or a reply."""


class ValkeyRateLimiter:
    """A rate limiter that all processes share through one Valkey server."""

    def __init__(self, client: Valkey) -> None:
        # The storage uses the client's connection pool; the URL only names the kind of server.
        options: Any = {"connection_pool": client.connection_pool, "key_prefix": f"{KEY_NAMESPACE}:limits"}
        storage = RedisStorage("async+valkey://", **options)
        self._window = MovingWindowRateLimiter(storage)

    async def hit(self, key: str, limit: RateLimit, cost: int = 1) -> RateLimitResult:
        """Count a call, unless it exceeds the limit. Raises: `StoreUnavailable`."""
        item = _to_rate_limit_item(limit)
        with translate_valkey_errors():
            if await self._window.hit(item, key, cost=cost):
                return RateLimitResult(allowed=True)
            reset, _ = await self._window.get_window_stats(item, key)
        return RateLimitResult(allowed=False, retry_after=max(0.0, reset - time.time()))


def _to_rate_limit_item(limit: RateLimit) -> RateLimitItem:
    """Round the window up to whole seconds and the calls down, so that the rate is never exceeded."""
    seconds = math.ceil(limit.seconds)
    return RateLimitItemPerSecond(max(1, int(limit.calls * seconds / limit.seconds)), seconds)


@dataclass(frozen=True, slots=True)
class ValkeyStore:
    """The repositories of one Valkey server."""

    conversations: ValkeyConversationRepository
    limiter: ValkeyRateLimiter
    client: Valkey

    async def ping(self) -> None:
        """Check that the server answers.

        Raises:
            StoreUnavailable: It does not.
        """
        with translate_valkey_errors():
            await self.client.ping()


@asynccontextmanager
async def open_valkey(url: str) -> AsyncIterator[ValkeyStore]:
    """Open conversations and a rate limiter in a Valkey server, and close them at the end.

    Args:
        url: `valkey://HOST:PORT/NUMBER` or `redis://HOST:PORT/NUMBER`, also with TLS (`valkeys`, `rediss`).

    Raises:
        BadInput: The URL is not valid.
        StoreUnavailable: The server does not answer.
    """
    if not url.startswith(("redis://", "rediss://", "valkey://", "valkeys://")):
        raise BadInput("The Valkey URL has an unknown scheme. Pass valkey://HOST:PORT/NUMBER or redis://….")
    try:
        client = Valkey.from_url(
            _to_valkey_url(url), socket_timeout=SOCKET_TIMEOUT_SECONDS, socket_connect_timeout=SOCKET_TIMEOUT_SECONDS
        )
    except ValueError as error:
        raise BadInput("The Valkey URL is not valid. Pass valkey://HOST:PORT/NUMBER or redis://….") from error
    valkey_store = ValkeyStore(ValkeyConversationRepository(client), ValkeyRateLimiter(client), client)
    try:
        await valkey_store.ping()
        yield valkey_store
    finally:
        await client.aclose()


def _to_valkey_url(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme.replace('redis', 'valkey')}://{rest}"
