"""Validation of the keys of MCP clients: the key of the server, and the API keys of the store."""

import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from opposable.web.errors import missing_scope_error
from opposable.web.mcp.http import CheckKey
from opposable.web.middleware.authentication import ApiKeyCache
from opposable.web.middleware.request_limits import TokenUsageRecorder
from opposable.web.principal import CALL_SCOPE, OWNER, Principal

if TYPE_CHECKING:
    from opposable.store.store import Store


@asynccontextmanager
async def open_key_check(server_key: str, store: "Store | None") -> AsyncIterator[CheckKey | None]:
    """Open the check of keys; None if there is neither a key of the server nor a stored key.

    Args:
        server_key: A key that is always accepted, "" for none.
        store: The store with the API keys, None for none.

    Yields:
        The check. It raises `ApiError` for a stored key without the scope "tools:write" or beyond its limits.
    """
    if store is None or not await store.keys.list():

        async def check_server_key(candidate: str) -> Principal | None:
            return OWNER if hmac.compare_digest(candidate.encode(), server_key.encode()) else None

        yield check_server_key if server_key else None
        return

    usage = TokenUsageRecorder(store.keys)
    key_cache = ApiKeyCache(store.keys, store.limiter, usage)

    async def check(candidate: str) -> Principal | None:
        if server_key and hmac.compare_digest(candidate.encode(), server_key.encode()):
            return OWNER
        cached_key = await key_cache.find(candidate)
        if cached_key is None:
            return None
        if not cached_key.principal.has_scope(CALL_SCOPE):
            raise missing_scope_error(CALL_SCOPE)
        error = await key_cache.check_limits(cached_key)
        if error is not None:
            raise error
        return cached_key.principal

    async with usage.write_periodically():
        yield check
