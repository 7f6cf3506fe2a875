"""What earlier runs teach: failures remembered by tool and arguments, with what put them right."""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from opposable.agent.failure_cache import MAX_FAILURES_PER_TOOL, FailureCache
from opposable.agent.failure_fingerprints import (
    UNCERTAIN_PREFIX,
    compute_fingerprint,
    format_failure_message,
    parse_failed_arguments,
)
from opposable.agent.failure_warnings import MAX_WARNINGS_PER_TOOL, add_warnings, format_warnings
from opposable.domain.errors import StoreError
from opposable.domain.language import Language
from opposable.domain.records import SHARED_SCOPE, ExecutionStats, Failure, get_utc_now
from opposable.domain.tools import FailureKind, ToolDefinition
from opposable.tools.library import ToolLibrary

STORED_FAILURE_KINDS: tuple[FailureKind, ...] = ("invalid_arguments", "refused", "failed", "timeout", "unavailable")
"""Failures that are remembered: those that tell something of the tool."""
DETERMINISTIC_FAILURE_KINDS: tuple[FailureKind, ...] = ("invalid_arguments", "refused")
"""Failures that the tool itself decides on: the same arguments have them in any run."""

REWEIGH_INTERVAL_SECONDS = 3600.0
"""Seconds after which it is looked again at how much each failure counts."""
MAX_CACHED_SCOPES = 256
"""Scopes, and libraries, for which what was made of the memory is kept."""
CALLS_PER_TOOL_STATS = 50
"""Calls of a tool, the last ones, that its record of success is made of."""
STORE_TIMEOUT_SECONDS = 0.5
"""Seconds that a run waits for the store: it goes on without what that would have told."""
CLOSE_TIMEOUT_SECONDS = 5.0
"""Seconds that what is under way gets to end when a memory is closed."""
TOOLS_PER_READ = 25
"""Tools whose failures are read at once."""
MAX_FAILURES_READ = 2_000
"""Failures that are read of a library's tools, or `WARNINGS` of each where that is more."""

log = logging.getLogger("opposable.learning")


class FailureStore(Protocol):
    """Where failures are kept across processes."""

    async def add(self, new_failures: Sequence[Failure]) -> None:
        """Remember failures, those that are known counting higher. Raises: `StoreError`."""
        ...

    async def get_failures_by_tool(
        self, tool_ids: Sequence[str], scopes: Sequence[str] = (SHARED_SCOPE,), *, limit_per_tool: int = 20
    ) -> dict[str, tuple[Failure, ...]]:
        """What the last failures of each of these tools teach. Raises: `StoreError`."""
        ...

    async def correct(self, failure_id: str, correction: dict[str, Any] | None) -> bool:
        """Keep what put a failure right. Raises: `StoreError`."""
        ...

    async def forget(self, failure_id: str) -> bool:
        """Forget a failure. Raises: `StoreError`."""
        ...

    async def forget_before(self, moment: datetime) -> int:
        """Forget what was not seen since and is not pinned. Raises: `StoreError`."""
        ...


class ExecutionStatsStore(Protocol):
    """Where it is kept how calls ended."""

    async def get_call_statistics(
        self, tool_ids: Sequence[str], *, calls_per_tool: int = 50
    ) -> dict[str, ExecutionStats]:
        """How the last calls of each of these tools ended. Raises: `StoreError`."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """How failures are remembered.

    One counts half as much after `half_life` days without it. `known` runs must have had a failure of the sort that a
    tool decides on before the same call is refused, as long as it still counts for half of that. What other processes
    learnt is read every `refresh` seconds, what this one did is written every `every` seconds. What was not seen for
    `forgotten` days is forgotten, unless it is pinned.
    """

    half_life_days: float = 14.0
    block_after_runs: int = 3
    refresh_seconds: float = 30.0
    write_interval_seconds: float = 0.5
    forget_after_days: float = 180.0


@dataclass(frozen=True, slots=True)
class FailurePatterns:
    """What is known of a library's tools as a run begins. Both maps are by the tool's id with its action.

    `warnings` are the lines a model is told with a tool, in English and in Chinese.
    """

    failures: Mapping[str, tuple[Failure, ...]] = field(default_factory=dict)
    warnings: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def find_exact(self, tool_id: str, arguments: dict[str, Any]) -> Failure | None:
        """What is known of this very call."""
        known = self.failures.get(tool_id)
        if not known:
            return None
        print_of = compute_fingerprint(arguments)
        return next((one for one in known if one.fingerprint == print_of), None)

    def find_similar(self, tool_id: str, arguments: dict[str, Any]) -> Failure | None:
        """A failure that was put right, and was about arguments this call has too."""
        for one in self.failures.get(tool_id, ()):
            given = parse_failed_arguments(one.message) if one.correction else {}
            if given and all(arguments.get(name, one) == value for name, value in given.items()):
                return one
        return None


NO_PATTERNS = FailurePatterns()


@dataclass(frozen=True, slots=True)
class _AnnotatedDefinitions:
    """Definitions with their warnings, as they were made last."""

    definitions: tuple[ToolDefinition, ...]
    patterns: FailurePatterns
    warnings_by_name: Mapping[str, str]
    annotated: tuple[ToolDefinition, ...]


@dataclass(slots=True)
class _LibraryLoad:
    """What was read for a scope's runs with a library: as of which version, when, and by which task."""

    library: ToolLibrary
    version: int
    started_at: float
    task: "asyncio.Task[None]"


class FailureMemory:
    """Failures remembered in this process and, where there is a store for them, across processes.

    Reading and writing never hold up a call: what is learnt is known here at once and written soon after. With a store
    it is used in `async with`, or closed with `aclose`, so that the last of it is written. A store that is away costs
    nothing but what it would have told. `records` is where it is kept how calls ended: by it other tools are ranked
    where one fails.
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
        self._unwritten_failures: dict[str, Failure] = {}
        self._unwritten_corrections: dict[str, dict[str, Any]] = {}
        self._unwritten_deletions: set[str] = set()
        self._ids_being_written: frozenset[str] = frozenset()  # what is being written
        self._patterns_by_scope: dict[str, tuple[float, FailurePatterns]] = {}
        self._annotated_definitions: dict[tuple[int, Language], _AnnotatedDefinitions] = {}
        self._library_loads: dict[tuple[str, int], _LibraryLoad] = {}
        self._loaded_tools: dict[str, set[str]] = {}  # tools that were read, by scope
        self._cached_stats: dict[str, tuple[float, ExecutionStats | None]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closing = asyncio.Event()

    def scoped(self, scope: str = SHARED_SCOPE) -> "ScopedMemory":
        """The memory as one agent has it (`scope` is its id), or as all share it."""
        return ScopedMemory(self, scope)

    async def __aenter__(self) -> "FailureMemory":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Write what waits. What is under way ends first, since a write cut short holds the store against the last one."""
        self._closing.set()
        if tasks := list(self._tasks.values()):
            _, late = await asyncio.wait(tasks, timeout=CLOSE_TIMEOUT_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._write()

    def invalidate(self) -> None:
        """Have the next runs wait for what the store knows: something was pinned or forgotten there."""
        self._library_loads.clear()
        self._loaded_tools.clear()

    async def get_patterns(self, library: ToolLibrary, scope: str) -> FailurePatterns:
        """What is known of the tools; it waits, not for long, for the store where it was never asked about them."""
        if self._store is not None:
            await self._refresh(library, scope)
        return self._build_patterns(scope) if self._cache else NO_PATTERNS

    async def tally_recent_calls(self, tool_ids: Sequence[str]) -> dict[str, ExecutionStats]:
        """How the last calls of these tools ended, in whatever process; of what is not known in time, nothing."""
        if self._statistics_store is None:
            return {}
        moment = time.monotonic()
        asked = [
            one
            for one in tool_ids
            if self._cached_stats.get(one, (-REWEIGH_INTERVAL_SECONDS, None))[0] < moment - self.options.refresh_seconds
        ]
        if asked:
            try:
                async with asyncio.timeout(STORE_TIMEOUT_SECONDS):
                    found = await self._statistics_store.get_call_statistics(asked, calls_per_tool=CALLS_PER_TOOL_STATS)
            except (StoreError, TimeoutError) as error:
                log.warning("How earlier calls ended cannot be read now: %s", error)
                return {}
            self._cached_stats |= {one: (moment, found.get(one)) for one in asked}
        told = {one: self._cached_stats[one][1] for one in tool_ids}
        return {one: tally for one, tally in told.items() if tally is not None}

    def add_warnings(
        self,
        definitions: tuple[ToolDefinition, ...],
        patterns: FailurePatterns,
        library: ToolLibrary,
        language: Language,
    ) -> tuple[ToolDefinition, ...]:
        """The definitions with warnings; the same object again while nothing changes, so that wire forms are kept."""
        kept = self._annotated_definitions.get((id(definitions), language))
        if kept is not None and kept.definitions is definitions and kept.patterns is patterns:
            return kept.annotated
        by_name: dict[str, str] = {}
        for tool_id, lines in patterns.warnings.items():
            tool = library.find_tool(tool_id)
            if tool is not None and tool.tool_id == tool_id:
                by_name[tool.definition.name] = lines[language == "zh"]
        made = definitions
        if kept is not None and kept.definitions is definitions and kept.warnings_by_name == by_name:
            made = kept.annotated
        elif not by_name.keys().isdisjoint(one.name for one in definitions):
            made = tuple(add_warnings(one, by_name.get(one.name, "")) for one in definitions)
        if len(self._annotated_definitions) >= 64:
            self._annotated_definitions.clear()
        self._annotated_definitions[id(definitions), language] = _AnnotatedDefinitions(
            definitions, patterns, by_name, made
        )
        return made

    def add(self, failure: Failure) -> str:
        """Remember a failure; its id."""
        failure_id = failure.failure_id  # a hash: made once
        known = self._cache.get(failure_id)
        count = failure.count + (known.count if known else 0)
        newer = replace(known or failure, count=count, message=failure.message, last_seen=failure.last_seen)
        self._cache.put(failure_id, newer)
        if self._store is not None:
            waiting = self._unwritten_failures.get(failure_id)
            self._unwritten_failures[failure_id] = replace(
                failure, count=failure.count + (waiting.count if waiting else 0)
            )
            self._unwritten_deletions.discard(failure_id)
            self._spawn("write", self._write_periodically)
        return failure_id

    def correct(self, failure_id: str, correction: dict[str, Any]) -> None:
        """Remember what put a failure right."""
        known = self._cache.get(failure_id)
        if known is not None and known.correction == correction:
            return
        if known is not None:
            self._cache.put(failure_id, replace(known, correction=correction))
        if self._store is not None:
            self._unwritten_corrections[failure_id] = correction
            self._spawn("write", self._write_periodically)

    def forget(self, failure_id: str) -> None:
        """Forget a failure that is none any more; a pinned one stays."""
        known = self._cache.get(failure_id)
        if known is None or known.pinned:
            return
        self._cache.drop(failure_id)
        if self._store is not None:
            self._unwritten_failures.pop(failure_id, None)
            self._unwritten_corrections.pop(failure_id, None)
            self._unwritten_deletions.add(failure_id)
            self._spawn("write", self._write_periodically)

    def _build_patterns(self, scope: str) -> FailurePatterns:
        """The patterns of a scope; of tools about which nothing new was learnt they are as they were."""
        drawn_at, drawn = self._patterns_by_scope.get(scope, (0.0, NO_PATTERNS))
        changed = self._cache.take_changed_tools(scope)
        moment = time.monotonic()
        if moment - drawn_at > REWEIGH_INTERVAL_SECONDS:  # what was learnt grows old
            drawn_at, changed = moment, self._cache.list_tools(scope)
        if not changed:
            return drawn
        failures, warnings = dict(drawn.failures), dict(drawn.warnings)
        for tool_id in changed:
            failures[tool_id] = self._cache.list_for_tool(scope, tool_id)
            warnings[tool_id] = format_warnings(failures[tool_id], self.compute_weight)
            if not failures[tool_id]:
                del failures[tool_id]
            if not warnings[tool_id][0]:
                del warnings[tool_id]
        if scope not in self._patterns_by_scope and len(self._patterns_by_scope) >= MAX_CACHED_SCOPES:
            oldest = next(iter(self._patterns_by_scope))
            del self._patterns_by_scope[oldest]
            self._cache.stop_tracking(oldest)
        drawn = FailurePatterns(failures, warnings)
        self._patterns_by_scope[scope] = (drawn_at, drawn)
        return drawn

    def compute_weight(self, failure: Failure) -> float:
        """How much a failure counts today."""
        if failure.pinned or failure.last_seen is None:
            return float(failure.count)
        days = (get_utc_now() - failure.last_seen) / timedelta(days=1)
        return float(failure.count * 0.5 ** (max(days, 0.0) / self.options.half_life_days))

    async def _refresh(self, library: ToolLibrary, scope: str) -> None:
        """See to it that what the store knows of the tools is known: at once of new ones, now and then of all."""
        clock = asyncio.get_running_loop().time
        key = (scope, id(library))
        reading = self._library_loads.get(key)
        if reading is None or reading.library is not library or reading.version != library.version:
            ids = _list_owner_ids(library)
            unread = [one for one in ids if one not in self._loaded_tools.get(scope, ())]
            if not self._library_loads:
                self._spawn("tidy", self._forget_expired)
            if len(self._library_loads) >= MAX_CACHED_SCOPES:
                del self._library_loads[next(iter(self._library_loads))]
            task = self._spawn(f"read {key}", lambda: self._load(unread, scope))
            reading = self._library_loads[key] = _LibraryLoad(library, library.version, clock(), task)
        elif clock() - reading.started_at > self.options.refresh_seconds:
            reading.started_at = clock()
            self._spawn(f"read {key}", lambda: self._load(_list_owner_ids(library), scope))
        if not reading.task.done():
            await asyncio.wait(
                {reading.task}, timeout=STORE_TIMEOUT_SECONDS
            )  # not awaited itself: who leaves would take it along

    async def _load(self, tool_ids: Sequence[str], scope: str) -> None:
        """Read what is known of the tools, some at a time: nobody waits long for the loop meanwhile."""
        scopes = tuple(dict.fromkeys((scope, SHARED_SCOPE)))
        each = max(
            MAX_WARNINGS_PER_TOOL,
            min(MAX_FAILURES_PER_TOOL, MAX_FAILURES_READ // (max(len(tool_ids), 1) * len(scopes))),
        )
        try:
            for start in range(0, len(tool_ids), TOOLS_PER_READ):
                await self._load_batch(tool_ids[start : start + TOOLS_PER_READ], scopes, each)
        except StoreError as error:
            log.warning("What earlier runs learnt cannot be read now: %s", error)
            return
        self._loaded_tools.setdefault(scope, set()).update(tool_ids)

    async def _load_batch(self, tool_ids: Sequence[str], scopes: Sequence[str], limit_per_tool: int) -> None:
        assert self._store is not None
        waiting = (
            self._ids_being_written
            | self._unwritten_failures.keys()
            | self._unwritten_corrections.keys()
            | self._unwritten_deletions
        )
        held = set(self._cache.iter_useful_ids(scopes, tool_ids)) - waiting
        found = await self._store.get_failures_by_tool(tool_ids, scopes, limit_per_tool=limit_per_tool)
        read = {one.failure_id: one for known in found.values() for one in reversed(known)}  # the last one last
        waiting |= (
            self._ids_being_written
            | self._unwritten_failures.keys()
            | self._unwritten_corrections.keys()
            | self._unwritten_deletions
        )
        for failure_id in held - read.keys() - waiting:
            if self._cache.get(failure_id) is not None:
                self._cache.drop(failure_id)
        for failure_id, one in read.items():
            if failure_id not in waiting and self._cache.get(failure_id) != one:
                self._cache.put(failure_id, one)

    async def _forget_expired(self) -> None:
        """Forget in the store what nobody had for long."""
        assert self._store is not None
        try:
            await self._store.forget_before(get_utc_now() - timedelta(days=self.options.forget_after_days))
        except StoreError as error:
            log.warning("What is old cannot be forgotten now: %s", error)

    def _spawn(self, name: str, start_work: Any) -> "asyncio.Task[None]":
        task = self._tasks.get(name)
        if task is None or task.done():
            task = self._tasks[name] = asyncio.get_running_loop().create_task(start_work(), name=f"failures: {name}")
            task.add_done_callback(lambda done: self._tasks.pop(name, None) if self._tasks.get(name) is done else None)
        return task

    async def _write_periodically(self) -> None:
        while (
            self._unwritten_failures or self._unwritten_corrections or self._unwritten_deletions
        ) and not self._closing.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self.options.write_interval_seconds)
            await self._write()

    async def _write(self) -> None:
        """Write what waits; where the store is away, or this is cut short, it goes on waiting."""
        if self._store is None or not (
            self._unwritten_failures or self._unwritten_corrections or self._unwritten_deletions
        ):
            return
        new, corrected, forgotten = self._unwritten_failures, self._unwritten_corrections, self._unwritten_deletions
        self._unwritten_failures, self._unwritten_corrections, self._unwritten_deletions = {}, {}, set()
        self._ids_being_written = frozenset(new.keys() | corrected.keys() | forgotten)
        try:
            await self._store.add(tuple(new.values()))
            new = {}
            while corrected:
                failure_id, correction = next(iter(corrected.items()))
                await self._store.correct(failure_id, correction)
                del corrected[failure_id]
            while forgotten:
                failure_id = next(iter(forgotten))
                await self._store.forget(failure_id)
                forgotten.discard(failure_id)
        except StoreError as error:
            log.warning("What was learnt waits: %s", error)
        finally:
            for failure_id, one in new.items():
                later = self._unwritten_failures.get(failure_id)
                self._unwritten_failures[failure_id] = (
                    one if later is None else replace(later, count=later.count + one.count)
                )
            self._unwritten_corrections = {**corrected, **self._unwritten_corrections}
            self._unwritten_deletions |= forgotten
            self._ids_being_written = frozenset()


@dataclass(frozen=True, slots=True)
class ScopedMemory:
    """A memory of failures as one agent has it: what it learns is kept under `scope`; what all share it knows too."""

    memory: FailureMemory
    scope: str = SHARED_SCOPE

    async def get_patterns(self, library: ToolLibrary) -> FailurePatterns:
        """What is known of the tools."""
        return await self.memory.get_patterns(library, self.scope)

    def record_failure(
        self, tool_id: str, action: str, kind: FailureKind, arguments: dict[str, Any], error_text: str
    ) -> str:
        """Remember a failure; its id, "" where it is of a sort that teaches nothing."""
        if kind not in STORED_FAILURE_KINDS:
            return ""
        of_all = kind == "unavailable"  # whatever was asked of it
        failure = Failure(
            tool_id,
            action,
            kind,
            "*" if of_all else compute_fingerprint(arguments),
            self.scope,
            format_failure_message({} if of_all else arguments, error_text),
            last_seen=get_utc_now(),
        )
        return self.memory.add(failure)

    def is_known_to_fail(self, failure: Failure) -> bool:
        """Whether a call known for this failure is not to be made: an owner pinned it, or it had it again and again."""
        if failure.fingerprint.startswith(UNCERTAIN_PREFIX):
            return False
        how = self.memory.options
        if failure.pinned:
            return True
        return (
            failure.kind in DETERMINISTIC_FAILURE_KINDS
            and failure.count >= how.block_after_runs
            and self.memory.compute_weight(failure) >= how.block_after_runs / 2
        )


def _list_owner_ids(library: ToolLibrary) -> tuple[str, ...]:
    """The ids of a library's tools, and of what may be the tools whose actions they are."""
    return tuple({prefix: None for tool in library.tools for prefix in _list_id_prefixes(tool.tool_id)})


def _list_id_prefixes(tool_id: str) -> Iterable[str]:
    """An id and what may be the id of the tool whose action it is."""
    parts = tool_id.split(".")
    return [".".join(parts[:size]) for size in range(1, len(parts) + 1)]
