"""Memory of failed calls across runs, and of the corrections that worked."""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Protocol

from opposable.agent.failure_cache import MAX_FAILURES_PER_TOOL, FailureCache, list_read_scopes
from opposable.agent.failure_fingerprints import (
    compute_fingerprint,
    format_failure_message,
    parse_failed_arguments,
)
from opposable.agent.failure_warnings import MAX_WARNINGS_PER_TOOL, add_warnings, format_warnings
from opposable.agent.failure_writer import CLOSE_TIMEOUT_SECONDS, FailureStore, FailureWriter
from opposable.domain.errors import StoreError
from opposable.domain.language import Language
from opposable.domain.records import SHARED_SCOPE, ExecutionStats, Failure, get_utc_now
from opposable.domain.tools import FailureKind, ToolDefinition
from opposable.tools.library import ToolLibrary

STORED_FAILURE_KINDS: tuple[FailureKind, ...] = ("invalid_arguments", "refused", "failed", "timeout", "unavailable")
"""Failures that are stored: those that say something about the tool."""

REWEIGH_INTERVAL_SECONDS = 3600.0
"""Seconds after which the weight of each failure is computed again."""
MAX_CACHED_SCOPES = 256
"""Scopes and libraries with cached patterns."""
CALLS_PER_TOOL_STATS = 50
"""Latest calls of a tool that its success rate is computed from."""
STORE_TIMEOUT_SECONDS = 0.5
"""Seconds that a run waits for the store before it continues without stored failures."""
TOOLS_PER_READ = 25
"""Tools whose failures are read in one query."""
MAX_FAILURES_READ = 2_000
"""Failures read for the tools of a library. Every tool gets at least `MAX_WARNINGS_PER_TOOL`."""

Definitions = tuple[ToolDefinition, ...]

log = logging.getLogger("opposable.learning")


class ExecutionStatsStore(Protocol):
    """A store of call outcomes."""

    async def get_call_statistics(
        self, tool_ids: Sequence[str], *, calls_per_tool: int = 50
    ) -> dict[str, ExecutionStats]:
        """Return the statistics of the latest calls of each of these tools.

        Raises: `StoreError`.
        """
        ...


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """How failures are remembered.

    Attributes:
        half_life_days: Days without the failure after which it counts half as much.
        refresh_seconds: The interval between reads of failures written by other processes.
        write_interval_seconds: The interval between writes.
        forget_after_days: Days after which a failure that did not occur again is deleted, unless it is pinned.
    """

    half_life_days: float = 14.0
    refresh_seconds: float = 30.0
    write_interval_seconds: float = 0.5
    forget_after_days: float = 180.0


@dataclass(frozen=True, slots=True)
class FailurePatterns:
    """The failures known for the tools of a library when a run starts.

    Attributes:
        failures: The failures by qualified tool id.
        warnings: The warnings for the model by qualified tool id, in English and in Chinese.
    """

    failures: Mapping[str, tuple[Failure, ...]] = field(default_factory=dict)
    warnings: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def find_exact(self, tool_id: str, arguments: dict[str, Any]) -> Failure | None:
        """Return the failure of this exact call, if known."""
        failures = self.failures.get(tool_id)
        if not failures:
            return None
        wanted_fingerprint = compute_fingerprint(arguments)
        return next((failure for failure in failures if failure.fingerprint == wanted_fingerprint), None)

    def find_similar(self, tool_id: str, arguments: dict[str, Any]) -> Failure | None:
        """Return a failure with a correction whose wrong arguments this call has too."""
        for failure in self.failures.get(tool_id, ()):
            wrong_arguments = parse_failed_arguments(failure.message) if failure.correction else {}
            if wrong_arguments and all(
                arguments.get(name, failure) == value for name, value in wrong_arguments.items()
            ):
                return failure
        return None


NO_PATTERNS = FailurePatterns()


@dataclass(slots=True)
class _LibraryLoad:
    """The latest load of stored failures for a scope and a library."""

    library: ToolLibrary
    version: int
    started_at: float
    task: "asyncio.Task[None]"


class FailureMemory:
    """A memory of failures: in this process, and across processes if there is a store.

    Reads and writes of the store never delay a call. An unavailable store is logged, and the memory works without it.
    With a store, use it in `async with` or close it with `aclose`, so that the last failures are written.

    Args:
        store: Where failures are stored across processes.
        options: How failures are remembered.
        statistics_store: The outcomes of earlier calls. Alternatives to a failing tool are ranked by them.
    """

    def __init__(
        self,
        store: FailureStore | None = None,
        options: MemoryOptions = MemoryOptions(),
        *,
        statistics_store: ExecutionStatsStore | None = None,
    ) -> None:
        self.options = options
        self._store = store
        self._statistics_store = statistics_store
        self._cache = FailureCache()
        self._writer = None if store is None else FailureWriter(store, options.write_interval_seconds)
        self._patterns_by_scope: dict[str, tuple[float, FailurePatterns]] = {}
        self._annotated_definitions: dict[tuple[int, Language], tuple[Definitions, dict[str, str], Definitions]] = {}
        self._library_loads: dict[tuple[str, int], _LibraryLoad] = {}
        self._loaded_tools: dict[str, set[str]] = {}  # tools whose failures were loaded, by scope
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def with_scope(self, scope: str = SHARED_SCOPE) -> "ScopedMemory":
        """Return the memory of one agent (`scope` is its id), or the shared one."""
        return ScopedMemory(self, scope)

    async def __aenter__(self) -> "FailureMemory":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Finish running reads and writes, then write the rest."""
        if tasks := list(self._tasks.values()):
            _, late = await asyncio.wait(tasks, timeout=CLOSE_TIMEOUT_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        if self._writer is not None:
            await self._writer.aclose()

    def invalidate(self) -> None:
        """Make the next runs read the store again."""
        self._library_loads.clear()
        self._loaded_tools.clear()

    async def get_patterns(self, library: ToolLibrary, scope: str) -> FailurePatterns:
        """Return what is known of the tools.

        Wait briefly for the store at the first use of a library.
        """
        if self._store is not None:
            await self._refresh(library, scope)
        return self._build_patterns(scope) if self._cache else NO_PATTERNS

    async def get_call_statistics(self, tool_ids: Sequence[str]) -> dict[str, ExecutionStats]:
        """Return the statistics of the latest calls of these tools in all processes."""
        if self._statistics_store is None:
            return {}
        try:
            async with asyncio.timeout(STORE_TIMEOUT_SECONDS):
                return await self._statistics_store.get_call_statistics(tool_ids, calls_per_tool=CALLS_PER_TOOL_STATS)
        except (StoreError, TimeoutError) as error:
            log.warning("The call statistics cannot be read now: %s", error)
            return {}

    def add_warnings(
        self, definitions: Definitions, patterns: FailurePatterns, library: ToolLibrary, language: Language
    ) -> Definitions:
        """Return the definitions with warnings, the same object while nothing changes."""
        tools = {tool_id: library.find_tool(tool_id) for tool_id in patterns.warnings}
        warnings = {
            tool.definition.name: patterns.warnings[tool_id][language == "zh"]
            for tool_id, tool in tools.items()
            if tool is not None and tool.tool_id == tool_id
        }
        key = (id(definitions), language)
        cached = self._annotated_definitions.get(key)
        if cached is not None and cached[0] is definitions and cached[1] == warnings:
            return cached[2]
        annotated = definitions
        if not warnings.keys().isdisjoint(definition.name for definition in definitions):
            annotated = tuple(add_warnings(definition, warnings.get(definition.name, "")) for definition in definitions)
        if len(self._annotated_definitions) >= 64:
            self._annotated_definitions.clear()
        self._annotated_definitions[key] = (definitions, warnings, annotated)
        return annotated

    def add(self, failure: Failure) -> str:
        """Add a failure and return its id."""
        failure_id = failure.failure_id  # a hash: computed once
        cached = self._cache.get(failure_id)
        count = failure.count + (cached.count if cached else 0)
        updated = replace(cached or failure, count=count, message=failure.message, last_seen=failure.last_seen)
        self._cache.put(failure_id, updated)
        if self._writer is not None:
            self._writer.add(failure_id, failure)
        return failure_id

    def correct(self, failure_id: str, correction: dict[str, Any]) -> None:
        """Set the correction of a failure."""
        cached = self._cache.get(failure_id)
        if cached is not None and cached.correction == correction:
            return
        if cached is not None:
            self._cache.put(failure_id, replace(cached, correction=correction))
        if self._writer is not None:
            self._writer.correct(failure_id, correction)

    def forget(self, failure_id: str) -> None:
        """Delete a failure that no longer occurs, unless it is pinned."""
        cached = self._cache.get(failure_id)
        if cached is None or cached.pinned:
            return
        self._cache.drop(failure_id)
        if self._writer is not None:
            self._writer.forget(failure_id)

    def _build_patterns(self, scope: str) -> FailurePatterns:
        """Return the patterns of a scope; only tools with new failures are computed again."""
        built_at, patterns = self._patterns_by_scope.get(scope, (0.0, NO_PATTERNS))
        changed_tools = self._cache.take_changed_tools(scope)
        now_seconds = time.monotonic()
        if now_seconds - built_at > REWEIGH_INTERVAL_SECONDS:  # failures lose weight with time
            built_at, changed_tools = now_seconds, self._cache.list_tools(scope)
        if not changed_tools:
            return patterns
        failures, warnings = dict(patterns.failures), dict(patterns.warnings)
        for tool_id in changed_tools:
            failures[tool_id] = self._cache.list_for_tool(scope, tool_id)
            warnings[tool_id] = format_warnings(failures[tool_id], self.compute_weight)
            if not failures[tool_id]:
                del failures[tool_id]
            if not warnings[tool_id][0]:
                del warnings[tool_id]
        if scope not in self._patterns_by_scope and len(self._patterns_by_scope) >= MAX_CACHED_SCOPES:
            oldest_scope = next(iter(self._patterns_by_scope))
            del self._patterns_by_scope[oldest_scope]
            self._cache.stop_tracking(oldest_scope)
        patterns = FailurePatterns(failures, warnings)
        self._patterns_by_scope[scope] = (built_at, patterns)
        return patterns

    def compute_weight(self, failure: Failure) -> float:
        """Return the weight of a failure today."""
        if failure.pinned or failure.last_seen is None:
            return float(failure.count)
        days = (get_utc_now() - failure.last_seen) / timedelta(days=1)
        return float(failure.count * 0.5 ** (max(days, 0.0) / self.options.half_life_days))

    async def _refresh(self, library: ToolLibrary, scope: str) -> None:
        """Load stored failures: at once for new tools, periodically for all."""
        clock = asyncio.get_running_loop().time
        key = (scope, id(library))
        load = self._library_loads.get(key)
        if load is None or load.library is not library or load.version != library.version:
            owner_ids = _list_owner_ids(library)
            new_ids = [owner_id for owner_id in owner_ids if owner_id not in self._loaded_tools.get(scope, ())]
            if not self._library_loads:
                self._spawn("tidy", self._forget_expired)
            if len(self._library_loads) >= MAX_CACHED_SCOPES:
                del self._library_loads[next(iter(self._library_loads))]
            task = self._spawn(f"read {key}", lambda: self._load(new_ids, scope))
            load = self._library_loads[key] = _LibraryLoad(library, library.version, clock(), task)
        elif clock() - load.started_at > self.options.refresh_seconds:
            load.started_at = clock()
            self._spawn(f"read {key}", lambda: self._load(_list_owner_ids(library), scope))
        if not load.task.done():
            await asyncio.wait(
                {load.task}, timeout=STORE_TIMEOUT_SECONDS
            )  # awaiting the task itself would cancel it with its caller

    async def _load(self, tool_ids: Sequence[str], scope: str) -> None:
        """Load the failures of tools in batches, so that the event loop stays responsive."""
        scopes = list_read_scopes(scope)
        limit_per_tool = max(
            MAX_WARNINGS_PER_TOOL,
            min(MAX_FAILURES_PER_TOOL, MAX_FAILURES_READ // (max(len(tool_ids), 1) * len(scopes))),
        )
        try:
            for first in range(0, len(tool_ids), TOOLS_PER_READ):
                await self._load_batch(tool_ids[first : first + TOOLS_PER_READ], scopes, limit_per_tool)
        except StoreError as error:
            log.warning("Stored failures cannot be read now: %s", error)
            return
        self._loaded_tools.setdefault(scope, set()).update(tool_ids)

    async def _load_batch(self, tool_ids: Sequence[str], scopes: Sequence[str], limit_per_tool: int) -> None:
        assert self._store is not None
        assert self._writer is not None
        pending_ids = self._writer.pending_ids
        cached_ids = set(self._cache.iter_useful_ids(scopes, tool_ids))
        stored = await self._store.get_failures_by_tool(tool_ids, scopes, limit_per_tool=limit_per_tool)
        failures_by_id = {
            failure.failure_id: failure for failures in stored.values() for failure in reversed(failures)
        }  # the latest last
        pending_ids |= self._writer.pending_ids
        for failure_id in cached_ids - failures_by_id.keys() - pending_ids:
            if self._cache.get(failure_id) is not None:
                self._cache.drop(failure_id)
        for failure_id, failure in failures_by_id.items():
            if failure_id not in pending_ids and self._cache.get(failure_id) != failure:
                self._cache.put(failure_id, failure)

    async def _forget_expired(self) -> None:
        """Delete expired failures from the store."""
        assert self._store is not None
        try:
            await self._store.forget_before(get_utc_now() - timedelta(days=self.options.forget_after_days))
        except StoreError as error:
            log.warning("Expired failures cannot be deleted now: %s", error)

    def _spawn(self, name: str, start_work: Any) -> "asyncio.Task[None]":
        task = self._tasks.get(name)
        if task is None or task.done():
            task = self._tasks[name] = asyncio.get_running_loop().create_task(start_work(), name=f"failures: {name}")
            task.add_done_callback(lambda done: self._tasks.pop(name, None) if self._tasks.get(name) is done else None)
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
    ) -> str:
        """Add a failure and return its id; "" for a kind that is not stored."""
        if kind not in STORED_FAILURE_KINDS:
            return ""
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
        return self.memory.add(failure)


def _list_owner_ids(library: ToolLibrary) -> tuple[str, ...]:
    """Return the tool ids of a library with their prefixes, which may own actions."""
    return tuple({prefix: None for tool in library.tools for prefix in _list_id_prefixes(tool.tool_id)})


def _list_id_prefixes(tool_id: str) -> Iterable[str]:
    """Return the prefixes of a dotted id, the id itself last."""
    levels = tool_id.split(".")
    return [".".join(levels[:size]) for size in range(1, len(levels) + 1)]
