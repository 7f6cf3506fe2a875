"""How much: the size of a request, the calls a key may make, the tokens it may use."""

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opposable.domain.errors import OpposableError
from opposable.domain.rate_limits import RateLimiter
from opposable.store.keys import ApiKeyRepository
from opposable.web.errors import ApiError
from opposable.web.principal import Principal

TOKEN_WRITE_SECONDS = 1.0
"""Seconds between writes of the tokens used."""

GATEWAY_PREFIX = "/v1/"
"""Where the gateway counts bytes itself, and tells of too many in its own words."""

log = logging.getLogger("opposable.web")


class BodyLimitMiddleware:
    """Refuses requests whose body is larger than `largest` bytes, told or not."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 413, or pass the request on."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD") or scope["path"].startswith(GATEWAY_PREFIX):
            await self._app(scope, receive, send)
            return
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        if length.isdigit():
            if int(length) > self._max_bytes:
                await self._too_large_error().to_response()(scope, receive, send)
                return
            await self._app(scope, receive, send)  # the server reads no more than was told
            return
        await self._pass_counted(scope, receive, send)

    async def _pass_counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request of unknown length, and answer in place of whoever reads on beyond the limit."""
        size = 0
        refused = False

        async def counted() -> Message:
            nonlocal size, refused
            message = await receive()
            size += len(message.get("body", b""))
            if size <= self._max_bytes:
                return message
            if not refused:
                refused = True
                await self._too_large_error().to_response()(scope, receive, send)
            return {"type": "http.disconnect"}

        async def unless_refused(message: Message) -> None:
            if not refused:
                await send(message)

        await self._app(scope, counted, unless_refused)

    def _too_large_error(self) -> ApiError:
        return ApiError(413, "too_large", f"The request is larger than {self._max_bytes:,} bytes.")


class TokenUsageRecorder:
    """The tokens that keys use: noted at once, written to the store behind."""

    def __init__(self, keys: ApiKeyRepository) -> None:
        self._keys = keys
        self._recorded_tokens: dict[str, int] = {}
        self._stored_tokens: dict[str, int] = {}
        self._unsaved_keys: set[str] = set()

    def record_tokens(self, key_id: str, tokens: int) -> None:
        """Note tokens that a key used; with 0, that it was used."""
        self._recorded_tokens[key_id] = self._recorded_tokens.get(key_id, 0) + tokens
        self._unsaved_keys.add(key_id)

    def get_recorded_tokens(self, key_id: str) -> int:
        """Tokens of a key noted in this process, written or not."""
        return self._recorded_tokens.get(key_id, 0)

    def get_stored_tokens(self, key_id: str) -> int:
        """Those of them that the store knows of."""
        return self._stored_tokens.get(key_id, 0)

    @asynccontextmanager
    async def write_periodically(self) -> AsyncIterator[None]:
        """Write what is noted every second, and what is left at the end."""
        task = asyncio.create_task(self._run(), name="budgets")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            with contextlib.suppress(OpposableError):
                await self.write()

    async def write(self) -> None:
        """Write what is noted. Raises: `StoreError`; what was not written stays noted."""
        for key_id in list(self._unsaved_keys):
            noted = self.get_recorded_tokens(key_id)
            await self._keys.add_token_usage(key_id, noted - self.get_stored_tokens(key_id))
            self._stored_tokens[key_id] = noted
            if noted == self.get_recorded_tokens(key_id):
                self._unsaved_keys.discard(key_id)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(TOKEN_WRITE_SECONDS)
            try:
                await self.write()
            except OpposableError as error:
                log.warning("Used tokens wait to be written: %s", error)


async def check_rate_limit(principal: Principal, limiter: RateLimiter) -> ApiError | None:
    """The refusal of a request beyond the key's rate limit, None within it. Raises: `StoreUnavailable`."""
    limit = principal.rate_limit
    if limit is None:
        return None
    room = await limiter.hit(f"key:{principal.key_id}", limit)
    if room.allowed:
        return None
    said = f"This key may ask {limit.calls} times in {limit.seconds:g} seconds; wait a moment."
    return ApiError(429, "rate_limited", said, headers={"retry-after": str(max(1, math.ceil(room.retry_after)))})


def check_token_budget(principal: Principal, tokens_used: int) -> ApiError | None:
    """The refusal of a request by a key whose tokens are used up, None while there are some left."""
    if principal.token_budget is None or tokens_used < principal.token_budget:
        return None
    said = f"This key's budget of {principal.token_budget:,} tokens is used up; its owner can give another key."
    return ApiError(429, "budget_used_up", said)
