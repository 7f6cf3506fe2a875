"""Memory of failed calls across runs, and of the corrections that worked."""

import asyncio
import logging
import time
from collections.abc import Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from opposable.agent.failure_fingerprints import compute_fingerprint, format_failure_message, parse_failed_arguments
from opposable.agent.failure_warnings import MAX_WARNINGS_PER_TOOL, format_warnings
from opposable.domain.errors import StoreError
from opposable.domain.language import Language
from opposable.domain.records import SHARED_SCOPE, Failure, get_utc_now
from opposable.domain.tools import FailureKind
from opposable.tools.library import ToolLibrary

STORED_FAILURE_KINDS: tuple[FailureKind, ...] = ("invalid_arguments", "refused", "failed", "timeout", "unavailable")
"""Failures that are stored: those that say something about the tool."""

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

OWNER_SCOPE_PREFIX = "owner:"
"""The beginning of the scopes of an API key's owner, whose values no one else may see."""

log = logging.getLogger("opposable.learning")


def get_owner_scope(owner: str, agent_id: str = "") -> str:
    """Return the scope of an owner's failures, of all their agents or of one; the shared one without an owner."""
    if not owner:
        return agent_id or SHARED_SCOPE
    return f"{OWNER_SCOPE_PREFIX}{owner}/{agent_id}" if agent_id else f"{OWNER_SCOPE_PREFIX}{owner}"


def list_read_scopes(scope: str) -> tuple[str, ...]:
    """Return the scopes whose failures a run reads: its own, and the shared one unless a key's owner asks."""
    if scope == SHARED_SCOPE or scope.startswith(OWNER_SCOPE_PREFIX):
        return (scope,)
    return (scope, SHARED_SCOPE)


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


ScopeFailures = dict[str, Mapping[str, Failure]]
"""The failures of a scope by qualified tool id and failure id, the latest first. Runs share the inner mappings."""


@dataclass(frozen=True, slots=True)
class FailurePatterns:
    """The failures known when a run starts: those of its own scope, then the shared ones."""

    scopes: tuple[ScopeFailures, ...] = ()

    def get_failures(self, tool_id: str) -> tuple[Failure, ...]:
        """Return the failures of a tool, the latest ones of each scope first."""
        return tuple(failure for scope in self.scopes for failure in scope.get(tool_id, {}).values())

    def get_warnings(self, tool_id: str, language: Language) -> str:
        """Return the warnings about a tool for the model, "" for none."""
        return format_warnings(self.get_failures(tool_id), language)

    def find_exact(self, tool_id: str, arguments: dict[str, Any]) -> Failure | None:
        """Return the failure of this exact call, if known."""
        failures = self.get_failures(tool_id)
        fingerprint = compute_fingerprint(arguments) if failures else ""
        return next((failure for failure in failures if failure.fingerprint == fingerprint), None)

    def find_correction(self, tool_id: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Return what corrected this exact call, else one whose wrong arguments this call has too."""
        exact = self.find_exact(tool_id, arguments)
        if exact is not None and exact.correction:
            return exact.correction
        for failure in self.get_failures(tool_id):
            wrong_arguments = parse_failed_arguments(failure.message) if failure.correction else {}
            if wrong_arguments and wrong_arguments.items() <= arguments.items():
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
        self._scopes: dict[str, ScopeFailures] = {SHARED_SCOPE: {}}
        self._reads: dict[tuple[str, tuple[str, ...]], _ToolsRead] = {}  # by scope and names of tools
        self._unwritten: dict[str, Failure | None] = {}  # changes by failure id, as `_merge_changes` describes them
        self._write_lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def with_scope(self, scope: str = SHARED_SCOPE) -> "ScopedMemory":
        """Return the memory of one agent (`scope` is its id), or the shared one."""
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
        """Return what is known of the tools.

        Wait briefly for the store at the first use of these tools.
        """
        if self._store is not None:
            await self._refresh(library, scope)
        return FailurePatterns(tuple(dict(self._get_scope(one)) for one in list_read_scopes(scope)))

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
            scope, tool_id = self._get_scope(failure.scope), _get_qualified_tool_id(failure)
            scope[tool_id] = {one: other for one, other in scope[tool_id].items() if other is not known}
            self._write_soon(failure.failure_id, None)

    def _get_scope(self, name: str) -> ScopeFailures:
        if name not in self._scopes:
            if len(self._scopes) > MAX_CACHED_SCOPES:
                oldest = next(one for one in self._scopes if one != SHARED_SCOPE)
                del self._scopes[oldest]
                self._reads = {key: one for key, one in self._reads.items() if key[0] != oldest}
            self._scopes[name] = {}
        return self._scopes[name]

    def _find(self, failure: Failure) -> Failure | None:
        """Return the known failure with this id."""
        return self._get_scope(failure.scope).get(_get_qualified_tool_id(failure), {}).get(failure.failure_id)

    def _put(self, failure: Failure) -> None:
        """Make a failure the latest one of its tool; drop the least useful of too many."""
        scope, tool_id = self._get_scope(failure.scope), _get_qualified_tool_id(failure)
        latest = {failure.failure_id: failure}
        of_tool = {**latest, **scope.get(tool_id, {}), **latest}
        unpinned = [other_id for other_id, other in of_tool.items() if not other.pinned]
        if len(unpinned) > MAX_FAILURES_PER_TOOL:
            useless = (one for one in reversed(unpinned[1:]) if not _is_useful(of_tool[one]))
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
        tools, scopes = map(library.find_registered_tool, library.names), list_read_scopes(scope)
        tool_ids = tuple({tool.entry.tool_id: None for tool in tools if tool is not None})
        limit_per_tool = max(
            MAX_WARNINGS_PER_TOOL,
            min(MAX_FAILURES_PER_TOOL, MAX_FAILURES_READ // (max(len(tool_ids), 1) * len(scopes))),
        )
        try:
            for first in range(0, len(tool_ids), TOOLS_PER_READ):
                batch = tool_ids[first : first + TOOLS_PER_READ]
                async with self._write_lock:
                    stored = await self._store.get_failures_by_tool(batch, scopes, limit_per_tool=limit_per_tool)
                    self._take_stored(set(batch), scopes, [one for known in stored.values() for one in reversed(known)])
        except StoreError as error:
            log.warning("Stored failures cannot be read now: %s", error)

    def _take_stored(self, tool_ids: Collection[str], scopes: Sequence[str], stored: Sequence[Failure]) -> None:
        """Replace the useful failures of tools by the stored ones, except those with changes to be written."""
        current = {failure.failure_id for failure in stored} | self._unwritten.keys()
        for scope in map(self._get_scope, scopes):
            for tool_id, of_tool in scope.items():
                scope[tool_id] = {
                    failure_id: failure
                    for failure_id, failure in of_tool.items()
                    if failure_id in current or failure.tool_id not in tool_ids or not _is_useful(failure)
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
    """A failure memory that stores under its scope and also reads shared failures."""

    memory: FailureMemory
    scope: str = SHARED_SCOPE

    async def get_patterns(self, library: ToolLibrary) -> FailurePatterns:
        """Return what is known of the tools."""
        return await self.memory.get_patterns(library, self.scope)

    def record_failure(
        self, tool_id: str, action: str, kind: FailureKind, arguments: dict[str, Any], error_text: str
    ) -> Failure | None:
        """Add a failure and return it; None for a kind that is not stored."""
        if kind not in STORED_FAILURE_KINDS:
            return None
        is_for_all_calls = kind == "unavailable"  # its arguments do not matter
        failure = Failure(
            tool_id,
            action,
            kind,
            "*" if is_for_all_calls else compute_fingerprint(arguments),
            self.scope,
            format_failure_message({} if is_for_all_calls else arguments, error_text),
            last_seen=get_utc_now(),
        )
        self.memory.add(failure)
        return failure


def _merge_changes(earlier: Failure | None, later: Failure | None) -> Failure | None:
    """Return two changes of one failure as one.

    A change has the number of new occurrences as `count`, and the new correction; None is a deletion.
    """
    if earlier is None or later is None:
        return later
    return replace(later, count=earlier.count + later.count, correction=later.correction or earlier.correction)


def _is_useful(failure: Failure) -> bool:
    return failure.count > 1 or failure.correction is not None or failure.pinned


def _get_qualified_tool_id(failure: Failure) -> str:
    """Return the id of the tool with its action."""
    return f"{failure.tool_id}.{failure.action}" if failure.action else failure.tool_id
