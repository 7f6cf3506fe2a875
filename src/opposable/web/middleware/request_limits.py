"""How much: the size of a request, the calls a key may make, the tokens it may use."""

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opposable.domain.errors import OpposableError
from opposable.store.keys import Keys
from opposable.store.rate_limits import Limiter
from opposable.web.errors import ApiError
from opposable.web.principal import Principal

EVERY = 1.0
"""Seconds between writes of the tokens used."""

GATEWAY = "/v1/"
"""Where the gateway counts bytes itself, and tells of too many in its own words."""

log = logging.getLogger("opposable.web")


class BodyLimit:
    """Refuses requests whose body is larger than `largest` bytes, told or not."""

    def __init__(self, app: ASGIApp, largest: int) -> None:
        self._app = app
        self._largest = largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 413, or pass the request on."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD") or scope["path"].startswith(GATEWAY):
            await self._app(scope, receive, send)
            return
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        if length.isdigit():
            if int(length) > self._largest:
                await self._refusal().response()(scope, receive, send)
                return
            await self._app(scope, receive, send)  # the server reads no more than was told
            return
        await self._counted(scope, receive, send)

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request of unknown length, and answer in place of whoever reads on beyond the limit."""
        size = 0
        refused = False

        async def counted() -> Message:
            nonlocal size, refused
            message = await receive()
            size += len(message.get("body", b""))
            if size <= self._largest:
                return message
            if not refused:
                refused = True
                await self._refusal().response()(scope, receive, send)
            return {"type": "http.disconnect"}

        async def unless_refused(message: Message) -> None:
            if not refused:
                await send(message)

        await self._app(scope, counted, unless_refused)

    def _refusal(self) -> ApiError:
        return ApiError(413, "too_large", f"The request is larger than {self._largest:,} bytes.")


class Budgets:
    """The tokens that keys use: noted at once, written to the store behind."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._noted: dict[str, int] = {}
        self._written: dict[str, int] = {}
        self._used: set[str] = set()

    def spend(self, key_id: str, tokens: int) -> None:
        """Note tokens that a key used; with 0, that it was used."""
        self._noted[key_id] = self._noted.get(key_id, 0) + tokens
        self._used.add(key_id)

    def noted(self, key_id: str) -> int:
        """Tokens of a key noted in this process, written or not."""
        return self._noted.get(key_id, 0)

    def written_of(self, key_id: str) -> int:
        """Those of them that the store knows of."""
        return self._written.get(key_id, 0)

    @asynccontextmanager
    async def written(self) -> AsyncIterator[None]:
        """Write what is noted every second, and what is left at the end."""
        task = asyncio.create_task(self._work(), name="budgets")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            with contextlib.suppress(OpposableError):
                await self.write()

    async def write(self) -> None:
        """Write what is noted. Raises: `StoreError`; what was not written stays noted."""
        for key_id in list(self._used):
            noted = self.noted(key_id)
            await self._keys.spend(key_id, noted - self.written_of(key_id))
            self._written[key_id] = noted
            if noted == self.noted(key_id):
                self._used.discard(key_id)

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                await self.write()
            except OpposableError as error:
                log.warning("Used tokens wait to be written: %s", error)


async def over_limit(principal: Principal, limiter: Limiter) -> ApiError | None:
    """The refusal of a request beyond the key's rate limit, None within it. Raises: `StoreUnavailable`."""
    limit = principal.rate_limit
    if limit is None:
        return None
    room = await limiter.hit(f"key:{principal.key_id}", limit)
    if room.allowed:
        return None
    said = f"This key may ask {limit.calls} times in {limit.seconds:g} seconds; wait a moment."
    return ApiError(429, "rate_limited", said, headers={"retry-after": str(max(1, math.ceil(room.retry_after)))})


def over_budget(principal: Principal, used: int) -> ApiError | None:
    """The refusal of a request by a key whose tokens are used up, None while there are some left."""
    if principal.token_budget is None or used < principal.token_budget:
        return None
    said = f"This key's budget of {principal.token_budget:,} tokens is used up; its owner can give another key."
    return ApiError(429, "budget_used_up", said)
