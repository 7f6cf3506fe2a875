"""Writes changes of failures to a store in the background."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from opposable.domain.errors import StoreError
from opposable.domain.records import SHARED_SCOPE, Failure

CLOSE_TIMEOUT_SECONDS = 5.0
"""Seconds that a running write gets to finish when a writer is closed."""

log = logging.getLogger("opposable.learning")


class FailureStore(Protocol):
    """A store of failures shared by processes."""

    async def add(self, new_failures: Sequence[Failure]) -> None:
        """Add failures, or increase the count of known ones. Raises: `StoreError`."""
        ...

    async def get_failures_by_tool(
        self, tool_ids: Sequence[str], scopes: Sequence[str] = (SHARED_SCOPE,), *, limit_per_tool: int = 20
    ) -> dict[str, tuple[Failure, ...]]:
        """Return the latest failures of each of these tools. Raises: `StoreError`."""
        ...

    async def correct(self, failure_id: str, correction: dict[str, Any] | None) -> bool:
        """Store the correction of a failure. Raises: `StoreError`."""
        ...

    async def forget(self, failure_id: str) -> bool:
        """Delete a failure. Raises: `StoreError`."""
        ...

    async def forget_before(self, moment: datetime) -> int:
        """Delete unpinned failures last seen before `moment`. Raises: `StoreError`."""
        ...


@dataclass(slots=True)
class _Change:
    """What happened to a failure: `added` counts the new occurrences. A deletion is the only change."""

    added: Failure | None = None
    correction: dict[str, Any] | None = None
    is_deletion: bool = False

    def merge(self, newer: "_Change") -> "_Change":
        """Return this change followed by a newer one."""
        if newer.is_deletion:
            return newer
        added = newer.added or self.added
        if newer.added is not None and self.added is not None:
            added = replace(newer.added, count=newer.added.count + self.added.count)
        return _Change(added, newer.correction or self.correction)


class FailureWriter:
    """Collects changes and writes them together; those that fail or are interrupted are written the next time."""

    def __init__(self, store: FailureStore, interval_seconds: float) -> None:
        self._store = store
        self._interval_seconds = interval_seconds
        self._changes: dict[str, _Change] = {}
        self._being_written: dict[str, _Change] = {}
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    @property
    def pending_ids(self) -> set[str]:
        """The ids of the failures with changes that the store does not have yet."""
        return self._changes.keys() | self._being_written.keys()

    def add(self, failure_id: str, failure: Failure) -> None:
        """Count new occurrences of a failure."""
        self._put(failure_id, _Change(added=failure))

    def correct(self, failure_id: str, correction: dict[str, Any]) -> None:
        """Set the correction of a failure."""
        self._put(failure_id, _Change(correction=correction))

    def forget(self, failure_id: str) -> None:
        """Delete a failure."""
        self._put(failure_id, _Change(is_deletion=True))

    async def aclose(self) -> None:
        """Finish the running write, then write the rest."""
        self._closing.set()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=CLOSE_TIMEOUT_SECONDS)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._write()

    def _put(self, failure_id: str, change: _Change) -> None:
        self._changes[failure_id] = self._changes.get(failure_id, _Change()).merge(change)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._write_periodically(), name="failures: write")

    async def _write_periodically(self) -> None:
        while self._changes and not self._closing.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self._interval_seconds)
            await self._write()

    async def _write(self) -> None:
        changes, self._changes = self._changes, {}
        self._being_written = changes
        try:
            if added := tuple(change.added for change in changes.values() if change.added is not None):
                await self._store.add(added)
                for change in changes.values():
                    change.added = None
            for failure_id, change in list(changes.items()):
                if change.correction is not None:
                    await self._store.correct(failure_id, change.correction)
                if change.is_deletion:
                    await self._store.forget(failure_id)
                del changes[failure_id]
        except StoreError as error:
            log.warning("Failures cannot be written now and will be retried: %s", error)
        finally:
            for failure_id, change in changes.items():
                self._changes[failure_id] = change.merge(self._changes.get(failure_id, _Change()))
            self._being_written = {}
