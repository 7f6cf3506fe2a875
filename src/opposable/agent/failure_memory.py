"""What earlier runs teach: failures remembered by tool and arguments, with what put them right."""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from opposable.agent.failure_cache import EACH, Remembered
from opposable.agent.failure_fingerprints import UNSURE, fingerprint, given_in, message_of
from opposable.agent.failure_warnings import WARNINGS, warned, warnings_of
from opposable.domain.errors import StoreError
from opposable.domain.language import Language
from opposable.domain.records import SHARED, Failure, Tally, now
from opposable.domain.tools import FailureKind, ToolDefinition
from opposable.tools.library import ToolLibrary

LEARNT: tuple[FailureKind, ...] = ("invalid_arguments", "refused", "failed", "timeout", "unavailable")
"""Failures that are remembered: those that tell something of the tool."""
FOR_GOOD: tuple[FailureKind, ...] = ("invalid_arguments", "refused")
"""Failures that the tool itself decides on: the same arguments have them in any run."""

REDRAWN = 3600.0
"""Seconds after which it is looked again at how much each failure counts."""
DRAWN = 256
"""Scopes, and libraries, for which what was made of the memory is kept."""
TALLIED = 50
"""Calls of a tool, the last ones, that its record of success is made of."""
PATIENCE = 0.5
"""Seconds that a run waits for the store: it goes on without what that would have told."""
PARTING = 5.0
"""Seconds that what is under way gets to end when a memory is closed."""
AT_ONCE = 25
"""Tools whose failures are read at once."""
READ = 2_000
"""Failures that are read of a library's tools, or `WARNINGS` of each where that is more."""

log = logging.getLogger("opposable.learning")


class KeepsFailures(Protocol):
    """Where failures are kept across processes."""

    async def add(self, batch: Sequence[Failure]) -> None:
        """Remember failures, those that are known counting higher. Raises: `StoreError`."""
        ...

    async def of_tools(
        self, tool_ids: Sequence[str], scopes: Sequence[str] = (SHARED,), *, each: int = 20
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


class KeepsRecords(Protocol):
    """Where it is kept how calls ended."""

    async def latest(self, tool_ids: Sequence[str], *, each: int = 50) -> dict[str, Tally]:
        """How the last calls of each of these tools ended. Raises: `StoreError`."""
        ...


@dataclass(frozen=True, slots=True)
class Remembering:
    """How failures are remembered.

    One counts half as much after `half_life` days without it. `known` runs must have had a failure of the sort that a
    tool decides on before the same call is refused, as long as it still counts for half of that. What other processes
    learnt is read every `refresh` seconds, what this one did is written every `every` seconds. What was not seen for
    `forgotten` days is forgotten, unless it is pinned.
    """

    half_life: float = 14.0
    known: int = 3
    refresh: float = 30.0
    every: float = 0.5
    forgotten: float = 180.0


@dataclass(frozen=True, slots=True)
class Patterns:
    """What is known of a library's tools as a run begins. Both maps are by the tool's id with its action.

    `warnings` are the lines a model is told with a tool, in English and in Chinese.
    """

    failures: Mapping[str, tuple[Failure, ...]] = field(default_factory=dict)
    warnings: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def exactly(self, tool_id: str, arguments: dict[str, Any]) -> Failure | None:
        """What is known of this very call."""
        known = self.failures.get(tool_id)
        if not known:
            return None
        print_of = fingerprint(arguments)
        return next((one for one in known if one.fingerprint == print_of), None)

    def like(self, tool_id: str, arguments: dict[str, Any]) -> Failure | None:
        """A failure that was put right, and was about arguments this call has too."""
        for one in self.failures.get(tool_id, ()):
            given = given_in(one.message) if one.correction else {}
            if given and all(arguments.get(name, one) == value for name, value in given.items()):
                return one
        return None


NOTHING_KNOWN = Patterns()


@dataclass(frozen=True, slots=True)
class _Told:
    """Definitions with their warnings, as they were made last."""

    definitions: tuple[ToolDefinition, ...]
    patterns: Patterns
    by_name: Mapping[str, str]
    made: tuple[ToolDefinition, ...]


@dataclass(slots=True)
class _Reading:
    """What was read for a scope's runs with a library: as of which version, when, and by which task."""

    library: ToolLibrary
    version: int
    at: float
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
        failures: KeepsFailures | None = None,
        how: Remembering = Remembering(),
        *,
        records: KeepsRecords | None = None,
    ) -> None:
        self.how = how
        self._store = failures
        self._records = records
        self._kept = Remembered()
        self._new: dict[str, Failure] = {}
        self._corrected: dict[str, dict[str, Any]] = {}
        self._forgotten: set[str] = set()
        self._under_way: frozenset[str] = frozenset()  # what is being written
        self._drawings: dict[str, tuple[float, Patterns]] = {}
        self._told: dict[tuple[int, Language], _Told] = {}
        self._readings: dict[tuple[str, int], _Reading] = {}
        self._known: dict[str, set[str]] = {}  # tools that were read, by scope
        self._tallies: dict[str, tuple[float, Tally | None]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closing = asyncio.Event()

    def of(self, scope: str = SHARED) -> "Learning":
        """The memory as one agent has it (`scope` is its id), or as all share it."""
        return Learning(self, scope)

    async def __aenter__(self) -> "FailureMemory":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Write what waits. What is under way ends first, since a write cut short holds the store against the last one."""
        self._closing.set()
        if tasks := list(self._tasks.values()):
            _, late = await asyncio.wait(tasks, timeout=PARTING)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._write()

    def renew(self) -> None:
        """Have the next runs wait for what the store knows: something was pinned or forgotten there."""
        self._readings.clear()
        self._known.clear()

    async def patterns(self, library: ToolLibrary, scope: str) -> Patterns:
        """What is known of the tools; it waits, not for long, for the store where it was never asked about them."""
        if self._store is not None:
            await self._refreshed(library, scope)
        return self._drawn(scope) if self._kept else NOTHING_KNOWN

    async def records(self, tool_ids: Sequence[str]) -> dict[str, Tally]:
        """How the last calls of these tools ended, in whatever process; of what is not known in time, nothing."""
        if self._records is None:
            return {}
        moment = time.monotonic()
        asked = [one for one in tool_ids if self._tallies.get(one, (-REDRAWN, None))[0] < moment - self.how.refresh]
        if asked:
            try:
                async with asyncio.timeout(PATIENCE):
                    found = await self._records.latest(asked, each=TALLIED)
            except (StoreError, TimeoutError) as error:
                log.warning("How earlier calls ended cannot be read now: %s", error)
                return {}
            self._tallies |= {one: (moment, found.get(one)) for one in asked}
        told = {one: self._tallies[one][1] for one in tool_ids}
        return {one: tally for one, tally in told.items() if tally is not None}

    def told(
        self, definitions: tuple[ToolDefinition, ...], patterns: Patterns, library: ToolLibrary, language: Language
    ) -> tuple[ToolDefinition, ...]:
        """The definitions with warnings; the same object again while nothing changes, so that wire forms are kept."""
        kept = self._told.get((id(definitions), language))
        if kept is not None and kept.definitions is definitions and kept.patterns is patterns:
            return kept.made
        by_name: dict[str, str] = {}
        for tool_id, lines in patterns.warnings.items():
            tool = library.find(tool_id)
            if tool is not None and tool.tool_id == tool_id:
                by_name[tool.definition.name] = lines[language == "zh"]
        made = definitions
        if kept is not None and kept.definitions is definitions and kept.by_name == by_name:
            made = kept.made
        elif not by_name.keys().isdisjoint(one.name for one in definitions):
            made = tuple(warned(one, by_name.get(one.name, "")) for one in definitions)
        if len(self._told) >= 64:
            self._told.clear()
        self._told[id(definitions), language] = _Told(definitions, patterns, by_name, made)
        return made

    def add(self, failure: Failure) -> str:
        """Remember a failure; its id."""
        failure_id = failure.failure_id  # a hash: made once
        known = self._kept.get(failure_id)
        count = failure.count + (known.count if known else 0)
        newer = replace(known or failure, count=count, message=failure.message, last_seen=failure.last_seen)
        self._kept.put(failure_id, newer)
        if self._store is not None:
            waiting = self._new.get(failure_id)
            self._new[failure_id] = replace(failure, count=failure.count + (waiting.count if waiting else 0))
            self._forgotten.discard(failure_id)
            self._soon("write", self._writing)
        return failure_id

    def correct(self, failure_id: str, correction: dict[str, Any]) -> None:
        """Remember what put a failure right."""
        known = self._kept.get(failure_id)
        if known is not None and known.correction == correction:
            return
        if known is not None:
            self._kept.put(failure_id, replace(known, correction=correction))
        if self._store is not None:
            self._corrected[failure_id] = correction
            self._soon("write", self._writing)

    def forget(self, failure_id: str) -> None:
        """Forget a failure that is none any more; a pinned one stays."""
        known = self._kept.get(failure_id)
        if known is None or known.pinned:
            return
        self._kept.drop(failure_id)
        if self._store is not None:
            self._new.pop(failure_id, None)
            self._corrected.pop(failure_id, None)
            self._forgotten.add(failure_id)
            self._soon("write", self._writing)

    def _drawn(self, scope: str) -> Patterns:
        """The patterns of a scope; of tools about which nothing new was learnt they are as they were."""
        drawn_at, drawn = self._drawings.get(scope, (0.0, NOTHING_KNOWN))
        changed = self._kept.changes(scope)
        moment = time.monotonic()
        if moment - drawn_at > REDRAWN:  # what was learnt grows old
            drawn_at, changed = moment, self._kept.tools(scope)
        if not changed:
            return drawn
        failures, warnings = dict(drawn.failures), dict(drawn.warnings)
        for tool_id in changed:
            failures[tool_id] = self._kept.of_tool(scope, tool_id)
            warnings[tool_id] = warnings_of(failures[tool_id], self.weight)
            if not failures[tool_id]:
                del failures[tool_id]
            if not warnings[tool_id][0]:
                del warnings[tool_id]
        if scope not in self._drawings and len(self._drawings) >= DRAWN:
            oldest = next(iter(self._drawings))
            del self._drawings[oldest]
            self._kept.unfollow(oldest)
        drawn = Patterns(failures, warnings)
        self._drawings[scope] = (drawn_at, drawn)
        return drawn

    def weight(self, failure: Failure) -> float:
        """How much a failure counts today."""
        if failure.pinned or failure.last_seen is None:
            return float(failure.count)
        days = (now() - failure.last_seen) / timedelta(days=1)
        return float(failure.count * 0.5 ** (max(days, 0.0) / self.how.half_life))

    async def _refreshed(self, library: ToolLibrary, scope: str) -> None:
        """See to it that what the store knows of the tools is known: at once of new ones, now and then of all."""
        clock = asyncio.get_running_loop().time
        key = (scope, id(library))
        reading = self._readings.get(key)
        if reading is None or reading.library is not library or reading.version != library.version:
            ids = _owners(library)
            unread = [one for one in ids if one not in self._known.get(scope, ())]
            if not self._readings:
                self._soon("tidy", self._tidy)
            if len(self._readings) >= DRAWN:
                del self._readings[next(iter(self._readings))]
            task = self._soon(f"read {key}", lambda: self._load(unread, scope))
            reading = self._readings[key] = _Reading(library, library.version, clock(), task)
        elif clock() - reading.at > self.how.refresh:
            reading.at = clock()
            self._soon(f"read {key}", lambda: self._load(_owners(library), scope))
        if not reading.task.done():
            await asyncio.wait({reading.task}, timeout=PATIENCE)  # not awaited itself: who leaves would take it along

    async def _load(self, tool_ids: Sequence[str], scope: str) -> None:
        """Read what is known of the tools, some at a time: nobody waits long for the loop meanwhile."""
        scopes = tuple(dict.fromkeys((scope, SHARED)))
        each = max(WARNINGS, min(EACH, READ // (max(len(tool_ids), 1) * len(scopes))))
        try:
            for start in range(0, len(tool_ids), AT_ONCE):
                await self._load_some(tool_ids[start : start + AT_ONCE], scopes, each)
        except StoreError as error:
            log.warning("What earlier runs learnt cannot be read now: %s", error)
            return
        self._known.setdefault(scope, set()).update(tool_ids)

    async def _load_some(self, tool_ids: Sequence[str], scopes: Sequence[str], each: int) -> None:
        assert self._store is not None
        waiting = self._under_way | self._new.keys() | self._corrected.keys() | self._forgotten
        held = set(self._kept.teaching(scopes, tool_ids)) - waiting
        found = await self._store.of_tools(tool_ids, scopes, each=each)
        read = {one.failure_id: one for known in found.values() for one in reversed(known)}  # the last one last
        waiting |= self._under_way | self._new.keys() | self._corrected.keys() | self._forgotten
        for failure_id in held - read.keys() - waiting:
            if self._kept.get(failure_id) is not None:
                self._kept.drop(failure_id)
        for failure_id, one in read.items():
            if failure_id not in waiting and self._kept.get(failure_id) != one:
                self._kept.put(failure_id, one)

    async def _tidy(self) -> None:
        """Forget in the store what nobody had for long."""
        assert self._store is not None
        try:
            await self._store.forget_before(now() - timedelta(days=self.how.forgotten))
        except StoreError as error:
            log.warning("What is old cannot be forgotten now: %s", error)

    def _soon(self, name: str, work: Any) -> "asyncio.Task[None]":
        task = self._tasks.get(name)
        if task is None or task.done():
            task = self._tasks[name] = asyncio.get_running_loop().create_task(work(), name=f"failures: {name}")
            task.add_done_callback(lambda done: self._tasks.pop(name, None) if self._tasks.get(name) is done else None)
        return task

    async def _writing(self) -> None:
        while (self._new or self._corrected or self._forgotten) and not self._closing.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self.how.every)
            await self._write()

    async def _write(self) -> None:
        """Write what waits; where the store is away, or this is cut short, it goes on waiting."""
        if self._store is None or not (self._new or self._corrected or self._forgotten):
            return
        new, corrected, forgotten = self._new, self._corrected, self._forgotten
        self._new, self._corrected, self._forgotten = {}, {}, set()
        self._under_way = frozenset(new.keys() | corrected.keys() | forgotten)
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
                later = self._new.get(failure_id)
                self._new[failure_id] = one if later is None else replace(later, count=later.count + one.count)
            self._corrected = {**corrected, **self._corrected}
            self._forgotten |= forgotten
            self._under_way = frozenset()


@dataclass(frozen=True, slots=True)
class Learning:
    """A memory of failures as one agent has it: what it learns is kept under `scope`; what all share it knows too."""

    memory: FailureMemory
    scope: str = SHARED

    async def patterns(self, library: ToolLibrary) -> Patterns:
        """What is known of the tools."""
        return await self.memory.patterns(library, self.scope)

    def failed(self, tool_id: str, action: str, kind: FailureKind, arguments: dict[str, Any], said: str) -> str:
        """Remember a failure; its id, "" where it is of a sort that teaches nothing."""
        if kind not in LEARNT:
            return ""
        of_all = kind == "unavailable"  # whatever was asked of it
        failure = Failure(
            tool_id,
            action,
            kind,
            "*" if of_all else fingerprint(arguments),
            self.scope,
            message_of({} if of_all else arguments, said),
            last_seen=now(),
        )
        return self.memory.add(failure)

    def is_hopeless(self, known: Failure) -> bool:
        """Whether a call known for this failure is not to be made: an owner pinned it, or it had it again and again."""
        if known.fingerprint.startswith(UNSURE):
            return False
        how = self.memory.how
        if known.pinned:
            return True
        return known.kind in FOR_GOOD and known.count >= how.known and self.memory.weight(known) >= how.known / 2


def _owners(library: ToolLibrary) -> tuple[str, ...]:
    """The ids of a library's tools, and of what may be the tools whose actions they are."""
    return tuple({prefix: None for tool in library.tools for prefix in _prefixes(tool.tool_id)})


def _prefixes(tool_id: str) -> Iterable[str]:
    """An id and what may be the id of the tool whose action it is."""
    parts = tool_id.split(".")
    return [".".join(parts[:size]) for size in range(1, len(parts) + 1)]
