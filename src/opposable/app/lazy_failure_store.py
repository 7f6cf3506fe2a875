"""What runs of the command line learn, kept in the store: opened when there is something to read or to keep."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from opposable.agent.failure_memory import FailureMemory, Learning
from opposable.app.stored_tools import database_url, is_kept, kept_store
from opposable.domain.errors import BadInput, StoreUnavailable
from opposable.domain.records import SHARED, Failure, Tally
from opposable.settings import Settings
from opposable.store.factory import can_open

if TYPE_CHECKING:
    from opposable.store.store import Store


@asynccontextmanager
async def learning(settings: Settings) -> AsyncIterator[Learning]:
    """What all runs share of what they learnt; of a run without the extra "store", what it learns itself."""
    if not can_open(database_url(settings)):
        yield FailureMemory().of()
        return
    async with LateStore(settings) as kept, FailureMemory(kept, records=kept) as memory:
        yield memory.of()


class LateStore:
    """The failures and records of the store that the settings name: `async with LateStore(settings)`.

    A file that is not there is made when there is something to keep. Raises: `StoreError`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._opened: Store | None = None

    async def __aenter__(self) -> "LateStore":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def add(self, batch: Sequence[Failure]) -> None:
        """Remember failures."""
        if batch:
            await (await self._store()).failures.add(batch)

    async def of_tools(
        self, tool_ids: Sequence[str], scopes: Sequence[str] = (SHARED,), *, each: int = 20
    ) -> dict[str, tuple[Failure, ...]]:
        """What the last failures of each of these tools teach."""
        if not is_kept(self._settings):
            return {}
        return await (await self._store()).failures.of_tools(tool_ids, scopes, each=each)

    async def correct(self, failure_id: str, correction: dict[str, Any] | None) -> bool:
        """Keep what put a failure right."""
        return await (await self._store()).failures.correct(failure_id, correction)

    async def forget(self, failure_id: str) -> bool:
        """Forget a failure."""
        return await (await self._store()).failures.forget(failure_id)

    async def forget_before(self, moment: datetime) -> int:
        """Forget what was not seen since and is not pinned."""
        return await (await self._store()).failures.forget_before(moment) if is_kept(self._settings) else 0

    async def latest(self, tool_ids: Sequence[str], *, each: int = 50) -> dict[str, Tally]:
        """How the last calls of each of these tools ended."""
        if not is_kept(self._settings):
            return {}
        return await (await self._store()).executions.latest(tool_ids, each=each)

    async def _store(self) -> "Store":
        async with self._opening:
            if self._opened is None:
                try:
                    self._opened = await self._stack.enter_async_context(kept_store(self._settings))
                except BadInput as error:
                    raise StoreUnavailable(str(error)) from error
            return self._opened
