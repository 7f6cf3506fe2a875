"""Limits of requests: body size, rate limit and token budget of an API key."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opposable.domain.rate_limits import RateLimiter
from opposable.domain.records import ApiKey
from opposable.store.keys import ApiKeyRepository
from opposable.web.background_writes import write_periodically
from opposable.web.errors import ApiError
from opposable.web.openai_errors import GATEWAY_PREFIX
from opposable.web.principal import Principal

TOKEN_WRITE_SECONDS = 1.0
"""Seconds between writes of the used tokens."""


class BodyLimitMiddleware:
    """Rejects requests with a body of more than `max_bytes`, declared or not. The gateway checks its requests itself."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with 413, or pass the request on."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD") or scope["path"].startswith(GATEWAY_PREFIX):
            await self._app(scope, receive, send)
            return
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        if length.isdigit():
            if int(length) > self._max_bytes:
                await self._too_large_error().to_response()(scope, receive, send)
                return
            await self._app(scope, receive, send)  # the server reads no more than the declared length
            return
        await self._pass_counted(scope, receive, send)

    async def _pass_counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request of unknown length; respond with 413 beyond the limit."""
        size = 0
        is_rejected = False

        async def receive_counted() -> Message:
            nonlocal size, is_rejected
            message = await receive()
            size += len(message.get("body", b""))
            if size <= self._max_bytes:
                return message
            if not is_rejected:
                is_rejected = True
                await self._too_large_error().to_response()(scope, receive, send)
            return {"type": "http.disconnect"}

        async def send_unless_rejected(message: Message) -> None:
            if not is_rejected:
                await send(message)

        await self._app(scope, receive_counted, send_unless_rejected)

    def _too_large_error(self) -> ApiError:
        return ApiError(413, "too_large", f"The request body is larger than {self._max_bytes:,} bytes.")


class TokenUsageRecorder:
    """Counts the tokens of API keys, and writes them to the store in the background."""

    def __init__(self, keys: ApiKeyRepository) -> None:
        self._keys = keys
        self._write_lock = asyncio.Lock()
        self._write_count = 0
        self._last_writes: dict[str, float] = {}  # the number of the last write of a key, infinity during a write
        self._recorded_tokens: dict[str, int] = {}
        self._stored_tokens: dict[str, int] = {}
        self._unsaved_keys: set[str] = set()

    def record_tokens(self, key_id: str, tokens: int) -> None:
        """Record tokens that a key used; 0 records only that the key was used."""
        self._recorded_tokens[key_id] = self._recorded_tokens.get(key_id, 0) + tokens
        self._unsaved_keys.add(key_id)

    def get_recorded_tokens(self, key_id: str) -> int:
        """Return the tokens of a key recorded in this process, stored or not."""
        return self._recorded_tokens.get(key_id, 0)

    async def load_key(self, load: Callable[[], Awaitable[ApiKey | None]]) -> tuple[ApiKey | None, int]:
        """Load a key, and return it with the tokens that other processes have recorded for it.

        A key that is written meanwhile is loaded again: it may have the written tokens, or not.

        Raises:
            StoreUnavailable: If the store cannot be read.
        """
        while True:
            write_count = self._write_count
            key = await load()
            if key is None:
                return None, 0
            if self._last_writes.get(key.key_id, 0) <= write_count:
                return key, key.tokens_used - self._stored_tokens.get(key.key_id, 0)
            async with self._write_lock:  # wait for the end of the write
                pass

    def write_periodically(self) -> AbstractAsyncContextManager[None]:
        """Write the tokens every second while the block runs, and once at its end."""
        return write_periodically(self.write, TOKEN_WRITE_SECONDS, "the used tokens")

    async def write(self) -> None:
        """Write the recorded tokens.

        Raises:
            StoreError: If the store fails; tokens that were not written stay recorded.
        """
        for key_id in list(self._unsaved_keys):
            async with self._write_lock:
                await self._write_key(key_id)

    async def _write_key(self, key_id: str) -> None:
        recorded = self.get_recorded_tokens(key_id)
        self._last_writes[key_id] = math.inf
        try:
            await self._keys.add_token_usage(key_id, recorded - self._stored_tokens.get(key_id, 0))
            self._stored_tokens[key_id] = recorded
        finally:
            self._write_count += 1
            self._last_writes[key_id] = self._write_count
        if recorded == self.get_recorded_tokens(key_id):
            self._unsaved_keys.discard(key_id)


async def check_rate_limit(principal: Principal, limiter: RateLimiter) -> ApiError | None:
    """Return the error for a request beyond the rate limit of its key, else None.

    Raises:
        StoreUnavailable: If the rate limit cannot be checked.
    """
    limit = principal.rate_limit
    if limit is None:
        return None
    result = await limiter.hit(f"key:{principal.key_id}", limit)
    if result.allowed:
        return None
    retry_after = max(1, math.ceil(result.retry_after))
    message = (
        f"This API key allows {limit.calls} requests in {limit.seconds:g} seconds. Try again in {retry_after} seconds."
    )
    return ApiError(429, "rate_limited", message, headers={"retry-after": str(retry_after)})


def check_token_budget(principal: Principal, tokens_used: int) -> ApiError | None:
    """Return the error for a key that has used its token budget, else None."""
    if principal.token_budget is None or tokens_used < principal.token_budget:
        return None
    message = f"This API key has used its budget of {principal.token_budget:,} tokens. Ask its owner for another key."
    return ApiError(429, "budget_used_up", message)
