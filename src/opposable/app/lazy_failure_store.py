"""Failure memory of the command line, whose store is opened on first use."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from opposable.agent.failure_memory import FailureMemory, ScopedMemory
from opposable.app.default_store import database_url, open_default_store
from opposable.domain.errors import BadInput, StoreMissing, StoreUnavailable
from opposable.domain.records import Failure
from opposable.settings import Settings
from opposable.store.creation import StoreCreation
from opposable.store.factory import is_store_installed

if TYPE_CHECKING:
    from opposable.store.store import Store


COMMAND_LINE_SCOPE = "command line"
"""The scope of the runs of commands. No agent has this id: it has a space."""


@asynccontextmanager
async def open_failure_memory(settings: Settings) -> AsyncIterator[ScopedMemory]:
    """Open the failure memory of commands, which the agents of the service do not use.

    Without the extra "store", it lasts for one run.
    """
    if not is_store_installed(database_url(settings)):
        yield FailureMemory().with_scope()
        return
    async with LazyFailureStore(settings) as store, FailureMemory(store) as memory:
        yield memory.with_scope(COMMAND_LINE_SCOPE)


class LazyFailureStore:
    """The stored failures, opened on first use.

    A missing store is created when there is something to write.

    Raises:
        StoreError: The store cannot be opened.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._open_lock = asyncio.Lock()
        self._exit_stack = AsyncExitStack()
        self._opened_store: Store | None = None

    async def __aenter__(self) -> "LazyFailureStore":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exit_stack.aclose()

    async def add(self, new_failures: Sequence[Failure]) -> None:
        """Store failures."""
        if new_failures:
            await (await self._get_store()).failures.add(new_failures)

    async def get_failures_by_tool(
        self, tool_ids: Sequence[str], scopes: Sequence[str] = ("",), *, limit_per_tool: int = 20
    ) -> dict[str, tuple[Failure, ...]]:
        """Return the latest failures of each tool."""
        if (store := await self._get_existing_store()) is None:
            return {}
        return await store.failures.get_failures_by_tool(tool_ids, scopes, limit_per_tool=limit_per_tool)

    async def correct(self, failure_id: str, correction: dict[str, Any] | None) -> bool:
        """Store the correction of a failure."""
        return await (await self._get_store()).failures.correct(failure_id, correction)

    async def forget(self, failure_id: str) -> bool:
        """Delete a failure."""
        return await (await self._get_store()).failures.forget(failure_id)

    async def forget_before(self, moment: datetime) -> int:
        """Delete failures last seen before `moment` that are not pinned."""
        store = await self._get_existing_store()
        return await store.failures.forget_before(moment) if store is not None else 0

    async def _get_existing_store(self) -> "Store | None":
        try:
            return await self._get_store(create="never")
        except StoreMissing:
            return None

    async def _get_store(self, create: StoreCreation = "if_empty") -> "Store":
        async with self._open_lock:
            if self._opened_store is None:
                try:
                    self._opened_store = await self._exit_stack.enter_async_context(
                        open_default_store(self._settings, create=create)
                    )
                except BadInput as error:
                    raise StoreUnavailable(str(error)) from error
            return self._opened_store
