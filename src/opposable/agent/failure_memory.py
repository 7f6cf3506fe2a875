"""Memory of failed calls across runs, and of the corrections that worked."""

import asyncio
import logging
import time
from collections.abc import Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from opposable.agent.failure_fingerprints import (
    compute_error_fingerprint,
    compute_fingerprint,
    describe_shapes,
    format_failure_message,
    parse_failed_arguments,
)
from opposable.agent.failure_warnings import MAX_WARNINGS_PER_TOOL, STORED_FAILURE_KINDS, format_warnings
from opposable.domain.errors import StoreError
from opposable.domain.language import Language
from opposable.domain.records import Failure, get_utc_now
from opposable.domain.tools import FailureKind
from opposable.tools.library import ToolLibrary

EXPIRY_DAYS = 180.0
"""Days after which a failure that did not occur again is deleted, unless it is pinned."""
MAX_FAILURES_PER_TOOL = 20
"""Failures of one tool and scope, the latest ones; pinned failures do not count.

Failures that occurred once and have no correction are dropped first.
"""
MAX_CACHED_SCOPES = 256
"""Scopes with cached failures, and sets of tools whose failures were read."""
STORE_TIMEOUT_SECONDS = 0.5
"""Seconds that a run waits for the store before it continues without stored failures."""
CLOSE_TIMEOUT_SECONDS = 5.0
"""Seconds that the last write gets when a memory is closed."""
TOOLS_PER_READ = 25
"""Tools whose failures are read in one query."""
MAX_FAILURES_READ = 2_000
"""Failures read for the tools of a library. Every tool gets at least `MAX_WARNINGS_PER_TOOL`."""

SHARED_SCOPE_PREFIX = "shared:"
"""The beginning of the scopes that several agents share. They have names of arguments and shapes, never values."""

log = logging.getLogger("opposable.learning")


def get_owner_scope(owner: str, agent_id: str = "") -> str:
    """Return the scope of an agent of a key's owner, or the one that all agents of the owner share."""
    if not agent_id:
        return SHARED_SCOPE_PREFIX + owner
    return f"owner:{owner}/{agent_id}" if owner else agent_id


class FailureStore(Protocol):
    """A store of failures shared by processes."""

    async def add(self, new_failures: Sequence[Failure]) -> None:
        """Add failures, or increase the count of known ones. Raises: `StoreError`."""

    async def get_failures_by_tool(
        self, tool_ids: Sequence[str], scopes: Sequence[str] = ("",), *, limit_per_tool: int = 20
    ) -> dict[str, tuple[Failure, ...]]:
        """Return the latest failures of each of these tools. Raises: `StoreError`."""

    async def correct(self, failure_id: str, correction: dict[str, Any] | None) -> bool:
        """Store the correction of a failure. Raises: `StoreError`."""

    async def forget(self, failure_id: str) -> bool:
        """Delete a failure. Raises: `StoreError`."""

    async def forget_before(self, moment: datetime) -> int:
        """Delete unpinned failures last seen before `moment`. Raises: `StoreError`."""


ScopeFailures = dict[str, Mapping[str, Failure]]
"""The failures of a scope by qualified tool id and failure id, the latest first. Runs share the inner mappings."""


@dataclass(frozen=True, slots=True)
class FailurePatterns:
    """The failures of a scope that are known when a run starts."""

    failures: ScopeFailures = field(default_factory=dict)
    shapes_only: bool = False

    def get_failures(self, tool_id: str) -> tuple[Failure, ...]:
        """Return the failures of a tool, the latest ones first."""
        return tuple(self.failures.get(tool_id, {}).values())

    def get_warnings(self, tool_id: str, language: Language) -> str:
        """Return the warnings about a tool for the model, "" for none."""
        return format_warnings(self.get_failures(tool_id), language)

    def find_exact(self, tool_id: str, arguments: dict[str, Any]) -> tuple[Failure, ...]:
        """Return the failures of this exact call, one for each error."""
        failures = self.get_failures(tool_id)
        fingerprint = _compute_fingerprint(arguments, self.shapes_only) if failures else ""
        return tuple(failure for failure in failures if failure.fingerprint.partition(":")[0] == fingerprint)

    def find_correction(
        self, tool_id: str, kind: FailureKind, arguments: dict[str, Any], error_text: str
    ) -> dict[str, Any] | None:
        """Return what corrected the same error of this exact call, else of one whose wrong arguments it has too."""
        error = (kind, compute_error_fingerprint(arguments, error_text))
        visible = describe_shapes(arguments) if self.shapes_only else arguments
        exact = self.find_exact(tool_id, arguments)
        for failure in (*exact, *self.get_failures(tool_id)):
            wrong_arguments = parse_failed_arguments(failure.message)
            is_same_call = failure in exact or (wrong_arguments and wrong_arguments.items() <= visible.items())
            if failure.correction and is_same_call and error == (failure.kind, failure.fingerprint.partition(":")[2]):
                return failure.correction
        return None


NO_PATTERNS = FailurePatterns()


@dataclass(slots=True)
class _ToolsRead:
    """The first and the latest read of the stored failures of some tools."""

    first: "asyncio.Task[None]"
    latest: "asyncio.Task[None]"
    started_at: float


class FailureMemory:
    """A memory of failures: in this process, and across processes if there is a store.

    Reads and writes of the store never delay a call. An unavailable store is logged, and the memory works without it.
    With a store, use it in `async with` or close it with `aclose`, so that the last failures are written.

    Args:
        store: Where failures are stored across processes.
        refresh_seconds: The interval between reads of failures written by other processes.
        write_interval_seconds: The interval between writes.
    """

    def __init__(
        self, store: FailureStore | None = None, *, refresh_seconds: float = 30.0, write_interval_seconds: float = 0.5
    ) -> None:
        self._store = store
        self._refresh_seconds = refresh_seconds
        self._write_interval_seconds = write_interval_seconds
        self._scopes: dict[str, ScopeFailures] = {}
        self._reads: dict[tuple[str, tuple[str, ...]], _ToolsRead] = {}  # by scope and names of tools
        self._unwritten: dict[str, Failure | None] = {}  # changes by failure id, as `_merge_changes` describes them
        self._write_lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def with_scope(self, scope: str = "") -> "ScopedMemory":
        """Return the memory of one agent (`scope` is its id; "" for the only one), or of `get_owner_scope`."""
        return ScopedMemory(self, scope)

    async def __aenter__(self) -> "FailureMemory":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Write what is not written yet, and end running reads."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_SECONDS):
                await self._write()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def invalidate(self) -> None:
        """Make the next runs read the store again."""
        self._reads.clear()

    async def get_patterns(self, library: ToolLibrary, scope: str) -> FailurePatterns:
        """Return what is known of the tools. Wait briefly for the store at the first use of these tools."""
        if self._store is not None:
            await self._refresh(library, scope)
        return FailurePatterns(dict(self._get_scope(scope)), scope.startswith(SHARED_SCOPE_PREFIX))

    def add(self, failure: Failure) -> None:
        """Add a failure, or an occurrence of a known one."""
        known = self._find(failure)
        count = failure.count + (known.count if known else 0)
        self._put(replace(known or failure, count=count, message=failure.message, last_seen=failure.last_seen))
        self._write_soon(failure.failure_id, failure)

    def correct(self, failure: Failure, correction: dict[str, Any]) -> None:
        """Set the correction of a failure."""
        known = self._find(failure)
        if known is not None and known.correction == correction:
            return
        if known is not None:
            self._put(replace(known, correction=correction))
        self._write_soon(failure.failure_id, replace(failure, count=0, correction=correction))

    def forget(self, failure: Failure) -> None:
        """Delete a failure that no longer occurs, unless it is pinned."""
        known = self._find(failure)
        if known is not None and not known.pinned:
            scope, tool_id = self._get_scope(failure.scope), failure.qualified_tool_id
            scope[tool_id] = {one: other for one, other in scope[tool_id].items() if other is not known}
            self._write_soon(failure.failure_id, None)

    def _get_scope(self, name: str) -> ScopeFailures:
        if name not in self._scopes:
            if len(self._scopes) > MAX_CACHED_SCOPES:
                oldest = next(iter(self._scopes))
                del self._scopes[oldest]
                self._reads = {key: one for key, one in self._reads.items() if key[0] != oldest}
            self._scopes[name] = {}
        return self._scopes[name]

    def _find(self, failure: Failure) -> Failure | None:
        """Return the known failure with this id."""
        return self._get_scope(failure.scope).get(failure.qualified_tool_id, {}).get(failure.failure_id)

    def _put(self, failure: Failure) -> None:
        """Make a failure the latest one of its tool; drop the least useful of too many."""
        scope, tool_id = self._get_scope(failure.scope), failure.qualified_tool_id
        latest = {failure.failure_id: failure}
        of_tool = {**latest, **scope.get(tool_id, {}), **latest}
        unpinned = [other_id for other_id, other in of_tool.items() if not other.pinned]
        if len(unpinned) > MAX_FAILURES_PER_TOOL:
            useless = (one for one in reversed(unpinned[1:]) if not of_tool[one].is_informative)
            del of_tool[next(useless, unpinned[-1])]
        scope[tool_id] = of_tool

    async def _refresh(self, library: ToolLibrary, scope: str) -> None:
        """Read stored failures: at once for new tools, and periodically."""
        key, now = (scope, library.names), time.monotonic()
        read = self._reads.get(key)
        if read is None:
            if not self._reads:
                self._spawn(self._forget_expired())
            if len(self._reads) >= MAX_CACHED_SCOPES:
                del self._reads[next(iter(self._reads))]
            task = self._spawn(self._read(library, scope))
            read = self._reads[key] = _ToolsRead(task, task, now)
        elif read.latest.done() and now - read.started_at > self._refresh_seconds:
            read.started_at, read.latest = now, self._spawn(self._read(library, scope))
        if not read.first.done():  # awaiting the task itself would cancel it with its caller
            await asyncio.wait({read.first}, timeout=STORE_TIMEOUT_SECONDS)

    async def _read(self, library: ToolLibrary, scope: str) -> None:
        """Read the failures of tools in batches, so that the event loop stays responsive."""
        assert self._store is not None
        tools = map(library.find_registered_tool, library.names)
        tool_ids = tuple({tool.entry.tool_id: None for tool in tools if tool is not None})
        limit_per_tool = max(
            MAX_WARNINGS_PER_TOOL, min(MAX_FAILURES_PER_TOOL, MAX_FAILURES_READ // max(len(tool_ids), 1))
        )
        try:
            for first in range(0, len(tool_ids), TOOLS_PER_READ):
                batch = tool_ids[first : first + TOOLS_PER_READ]
                async with self._write_lock:
                    stored = await self._store.get_failures_by_tool(batch, (scope,), limit_per_tool=limit_per_tool)
                    self._take_stored(set(batch), scope, [one for known in stored.values() for one in reversed(known)])
        except StoreError as error:
            log.warning("Stored failures cannot be read now: %s", error)

    def _take_stored(self, tool_ids: Collection[str], scope: str, stored: Sequence[Failure]) -> None:
        """Replace the useful failures of tools by the stored ones, except those with changes to be written."""
        current = {failure.failure_id for failure in stored} | self._unwritten.keys()
        failures = self._get_scope(scope)
        for tool_id, of_tool in failures.items():
            failures[tool_id] = {
                failure_id: failure
                for failure_id, failure in of_tool.items()
                if failure_id in current or failure.tool_id not in tool_ids or not failure.is_informative
            }
        for failure in stored:
            if failure.failure_id not in self._unwritten and self._find(failure) != failure:
                self._put(failure)

    async def _forget_expired(self) -> None:
        """Delete expired failures from the store."""
        assert self._store is not None
        try:
            await self._store.forget_before(get_utc_now() - timedelta(days=EXPIRY_DAYS))
        except StoreError as error:
            log.warning("Expired failures cannot be deleted now: %s", error)

    def _write_soon(self, failure_id: str, change: Failure | None) -> None:
        """Write a change in the background, with those that follow soon."""
        if self._store is None:
            return
        if not self._unwritten:
            self._spawn(self._write_later())
        self._unwritten[failure_id] = _merge_changes(self._unwritten.get(failure_id), change)

    async def _write_later(self) -> None:
        await asyncio.sleep(self._write_interval_seconds)
        await self._write()

    async def _write(self) -> None:
        """Write the changes; what cannot be written now is written later."""
        if self._store is None:
            return
        async with self._write_lock:
            changes, self._unwritten = self._unwritten, {}
            try:
                if added := [change for change in changes.values() if change is not None and change.count]:
                    await self._store.add(added)
                    changes |= {change.failure_id: replace(change, count=0) for change in added}
                for failure_id, change in list(changes.items()):
                    if change is None:
                        await self._store.forget(failure_id)
                    elif change.correction is not None:
                        await self._store.correct(failure_id, change.correction)
                    del changes[failure_id]
            except StoreError as error:
                log.warning("Failures cannot be written now and will be retried: %s", error)
                later, self._unwritten = self._unwritten, changes
                for failure_id, change in later.items():
                    self._write_soon(failure_id, change)
                self._spawn(self._write_later())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


@dataclass(frozen=True, slots=True)
class ScopedMemory:
    """A failure memory that reads and stores under its scope: of a shared one names and shapes, not the values."""

    memory: FailureMemory
    scope: str = ""

    @property
    def shapes_only(self) -> bool:
        """Whether agents share the scope, so that no values are stored."""
        return self.scope.startswith(SHARED_SCOPE_PREFIX)

    async def get_patterns(self, library: ToolLibrary) -> FailurePatterns:
        """Return what is known of the tools."""
        return await self.memory.get_patterns(library, self.scope)

    def record_failure(
        self, tool_id: str, action: str, kind: FailureKind, arguments: dict[str, Any], error_text: str
    ) -> Failure | None:
        """Add a failure and return it; None for a kind that is not stored."""
        if kind not in STORED_FAILURE_KINDS:
            return None
        error = compute_error_fingerprint(arguments, error_text)
        fingerprint = f"{_compute_fingerprint(arguments, self.shapes_only)}:{error}"
        message = format_failure_message(arguments, error_text, shapes_only=self.shapes_only)
        failure = Failure(tool_id, action, kind, fingerprint, self.scope, message, last_seen=get_utc_now())
        self.memory.add(failure)
        return failure

    def record_correction(self, failure: Failure, correction: dict[str, Any]) -> None:
        """Set the correction of a failure; where agents share it, the changed shapes."""
        if self.shapes_only:
            correction = {side: describe_shapes(arguments) for side, arguments in correction.items()}
        if correction["given"] != correction["right"]:
            self.memory.correct(failure, correction)


def _compute_fingerprint(arguments: dict[str, Any], shapes_only: bool) -> str:
    return compute_fingerprint(describe_shapes(arguments) if shapes_only else arguments)


def _merge_changes(earlier: Failure | None, later: Failure | None) -> Failure | None:
    """Return two changes of one failure as one.

    A change has the number of new occurrences as `count`, and the new correction; None is a deletion.
    """
    if earlier is None or later is None:
        return later
    return replace(later, count=earlier.count + later.count, correction=later.correction or earlier.correction)
