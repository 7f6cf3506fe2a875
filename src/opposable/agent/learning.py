"""What earlier runs teach: failures remembered by tool and arguments, with what put them right."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Protocol

from opposable.agent.fingerprints import UNSURE, fingerprint, given_in, in_words, message_of, named
from opposable.domain.errors import StoreError
from opposable.domain.language import Language
from opposable.domain.records import Failure, now
from opposable.domain.tools import FailureKind, ToolDefinition
from opposable.tools.library import ToolLibrary

SHARED = ""
"""The scope of what all agents share."""
LEARNT: tuple[FailureKind, ...] = ("invalid_arguments", "refused", "failed", "timeout", "unavailable")
"""Failures that are remembered: those that tell something of the tool."""
TAUGHT: tuple[FailureKind, ...] = ("invalid_arguments", "refused", "failed", "timeout")
"""Failures that a model is warned of: those its arguments may have caused."""
FOR_GOOD: tuple[FailureKind, ...] = ("invalid_arguments", "refused")
"""Failures that the tool itself decides on: the same arguments have them in any run."""

WARNINGS = 3
"""Warnings of one tool at most."""
ROOM = 10_000
"""Failures kept in the process."""
EACH = 20
"""Failures of one tool that are kept there, the last ones."""
REDRAWN = 3600.0
"""Seconds after which it is looked again at how much each failure counts."""

log = logging.getLogger("opposable.learning")


class KeepsFailures(Protocol):
    """Where failures are kept across processes."""

    async def add(self, batch: Sequence[Failure]) -> None:
        """Remember failures, those that are known counting higher. Raises: `StoreError`."""
        ...

    async def of_tools(
        self, tool_ids: Sequence[str], scopes: Sequence[str] = (SHARED,), *, each: int = 20
    ) -> dict[str, tuple[Failure, ...]]:
        """The last failures of each of these tools. Raises: `StoreError`."""
        ...

    async def correct(self, failure_id: str, correction: dict[str, Any] | None) -> bool:
        """Keep what put a failure right. Raises: `StoreError`."""
        ...

    async def forget(self, failure_id: str) -> bool:
        """Forget a failure. Raises: `StoreError`."""
        ...


@dataclass(frozen=True, slots=True)
class Remembering:
    """How failures are remembered.

    One counts half as much after `half_life` days without it. `known` runs must have had a failure of the sort that a
    tool decides on before the same call is refused, as long as it still counts for half of that. What other processes
    learnt is read every `refresh` seconds, what this one did is written every `every` seconds.
    """

    half_life: float = 14.0
    known: int = 3
    refresh: float = 30.0
    every: float = 0.5


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


class FailureMemory:
    """Failures remembered in this process and, where there is a store for them, across processes.

    Reading and writing never hold up a call: what is learnt is known here at once and written soon after. With a store
    it is used in `async with`, or closed with `aclose`, so that the last of it is written. A store that is away costs
    nothing but what it would have told.
    """

    def __init__(self, failures: KeepsFailures | None = None, how: Remembering = Remembering()) -> None:
        self.how = how
        self._store = failures
        self._kept: OrderedDict[str, Failure] = OrderedDict()
        self._new: dict[str, Failure] = {}
        self._corrected: dict[str, dict[str, Any]] = {}
        self._forgotten: set[str] = set()
        self._by_tool: dict[str, dict[str, Failure]] = {}
        self._made: dict[str, tuple[float, Patterns]] = {}
        self._changed: dict[str, set[str]] = {}
        self._told: dict[tuple[int, Language], _Told] = {}
        self._read: dict[str, tuple[object, float]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def of(self, scope: str = SHARED) -> "Learning":
        """The memory as one agent has it (`scope` is its id), or as all share it."""
        return Learning(self, scope)

    async def __aenter__(self) -> "FailureMemory":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Write what waits."""
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._write()

    async def patterns(self, library: ToolLibrary, scope: str) -> Patterns:
        """What is known of the tools; it waits for the store the first time alone."""
        if self._store is not None:
            await self._refreshed(library, scope)
        if not self._kept:
            return NOTHING_KNOWN
        return self._drawn(scope)

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
            made = tuple(_warned(one, by_name.get(one.name, "")) for one in definitions)
        if len(self._told) >= 64:
            self._told.clear()
        self._told[id(definitions), language] = _Told(definitions, patterns, by_name, made)
        return made

    def add(self, failure: Failure) -> str:
        """Remember a failure; its id."""
        failure_id = failure.failure_id  # a hash: made once
        known = self._kept.get(failure_id)
        count = failure.count + (known.count if known else 0)
        self._keep(
            failure_id, replace(known or failure, count=count, message=failure.message, last_seen=failure.last_seen)
        )
        if self._store is not None:
            waiting = self._new.get(failure_id)
            self._new[failure_id] = replace(failure, count=failure.count + (waiting.count if waiting else 0))
            self._forgotten.discard(failure_id)
            self._soon("write", self._writing)
        return failure_id

    def correct(self, failure_id: str, correction: dict[str, Any]) -> None:
        """Remember what put a failure right."""
        known = self._kept.get(failure_id)
        if known is None or known.correction == correction:
            return
        self._keep(failure_id, replace(known, correction=correction))
        if self._store is not None:
            self._corrected[failure_id] = correction
            self._soon("write", self._writing)

    def forget(self, failure_id: str) -> None:
        """Forget a failure that is none any more; a pinned one stays."""
        known = self._kept.get(failure_id)
        if known is None or known.pinned:
            return
        self._drop(failure_id)
        if self._store is not None:
            self._new.pop(failure_id, None)
            self._corrected.pop(failure_id, None)
            self._forgotten.add(failure_id)
            self._soon("write", self._writing)

    def _keep(self, failure_id: str, failure: Failure) -> None:
        tool_id = _whole_id(failure)
        self._kept[failure_id] = failure
        self._kept.move_to_end(failure_id)
        own = self._by_tool.setdefault(tool_id, {})
        own.pop(failure_id, None)
        own[failure_id] = failure
        self._note(tool_id)
        if len(own) > EACH:
            self._drop(next(iter(own)))
        if len(self._kept) > ROOM:
            self._drop(next(iter(self._kept)))

    def _drop(self, failure_id: str) -> None:
        tool_id = _whole_id(self._kept.pop(failure_id))
        del self._by_tool[tool_id][failure_id]
        self._note(tool_id)

    def _note(self, tool_id: str) -> None:
        for changed in self._changed.values():
            changed.add(tool_id)

    def _drawn(self, scope: str) -> Patterns:
        """The patterns of a scope; of tools about which nothing new was learnt they are as they were."""
        drawn_at, drawn = self._made.get(scope, (0.0, NOTHING_KNOWN))
        moment = time.monotonic()
        changed = self._changed.setdefault(scope, set())
        if drawn is NOTHING_KNOWN or moment - drawn_at > REDRAWN:  # what was learnt grows old
            drawn_at, changed = moment, self._changed.setdefault(scope, set()) | self._by_tool.keys()
        if changed:
            failures, warnings = dict(drawn.failures), dict(drawn.warnings)
            for tool_id in changed:
                known = [one for one in self._by_tool.get(tool_id, {}).values() if one.scope in (scope, SHARED)]
                failures[tool_id], warnings[tool_id] = tuple(reversed(known)), self._lines(known[::-1])
                if not warnings[tool_id][0]:
                    del warnings[tool_id]
            self._made[scope] = (drawn_at, Patterns(failures, warnings))
            self._changed[scope] = set()
        return self._made[scope][1]

    def _lines(self, known: Sequence[Failure]) -> tuple[str, str]:
        """The warnings of one tool: of its own making, with nothing in them that a tool said."""
        told: dict[tuple[str, str], None] = {}
        for one in known:
            weight = self.weight(one)
            given, right = in_words(one.correction)
            if one.kind not in TAUGHT or weight < (0.25 if right else 1.0):
                continue
            if not right and one.count < 2 and not one.pinned:
                continue
            told[given or named(given_in(one.message).items()), right] = None
        pairs = [pair for pair in told if any(pair)][:WARNINGS]
        return "\n".join(_line(*pair, "en") for pair in pairs), "\n".join(_line(*pair, "zh") for pair in pairs)

    def weight(self, failure: Failure) -> float:
        """How much a failure counts today."""
        if failure.pinned or failure.last_seen is None:
            return float(failure.count)
        days = (now() - failure.last_seen) / timedelta(days=1)
        return float(failure.count * 0.5 ** (max(days, 0.0) / self.how.half_life))

    async def _refreshed(self, library: ToolLibrary, scope: str) -> None:
        loop = asyncio.get_running_loop()
        last = self._read.get(scope)
        what = (id(library), library.version)
        if last is None:
            self._read[scope] = (what, loop.time())
            await self._load(library, scope)
        elif last[0] != what or loop.time() - last[1] > self.how.refresh:
            self._read[scope] = (what, loop.time())
            self._soon(f"read {scope}", lambda: self._load(library, scope))

    async def _load(self, library: ToolLibrary, scope: str) -> None:
        assert self._store is not None
        ids = {prefix: None for tool in library.tools for prefix in _prefixes(tool.tool_id)}
        try:
            found = await self._store.of_tools(tuple(ids), tuple({scope, SHARED}))
        except StoreError as error:
            log.warning("What earlier runs learnt cannot be read now: %s", error)
            return
        read = {one.failure_id: one for known in found.values() for one in known}
        gone = [
            failure_id
            for failure_id, one in self._kept.items()
            if one.tool_id in ids and one.scope in (scope, SHARED) and failure_id not in self._new
        ]
        for failure_id in gone:
            if failure_id not in read:
                self._drop(failure_id)
        for failure_id, one in read.items():
            if failure_id not in self._new and failure_id not in self._forgotten and self._kept.get(failure_id) != one:
                self._keep(failure_id, one)

    def _soon(self, name: str, work: Any) -> None:
        task = self._tasks.get(name)
        if task is None or task.done():
            self._tasks[name] = asyncio.get_running_loop().create_task(work(), name=f"failures: {name}")

    async def _writing(self) -> None:
        while self._new or self._corrected or self._forgotten:
            await asyncio.sleep(self.how.every)
            await self._write()

    async def _write(self) -> None:
        """Write what waits; where the store is away it goes on waiting."""
        if self._store is None or not (self._new or self._corrected or self._forgotten):
            return
        new, corrected, forgotten = self._new, self._corrected, self._forgotten
        self._new, self._corrected, self._forgotten = {}, {}, set()
        try:
            await self._store.add(tuple(new.values()))
            for failure_id, correction in corrected.items():
                await self._store.correct(failure_id, correction)
            for failure_id in forgotten:
                await self._store.forget(failure_id)
        except StoreError as error:
            log.warning("What was learnt waits: %s", error)
            self._new = {**new, **self._new}
            self._corrected = {**corrected, **self._corrected}
            self._forgotten |= forgotten


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


def _warned(definition: ToolDefinition, lines: str) -> ToolDefinition:
    if not lines:
        return definition
    return ToolDefinition(definition.name, f"{definition.description}\n{lines}", definition.parameters)


def _line(given: str, right: str, language: Language) -> str:
    if language == "zh":
        tried = f"{given} 曾经失败" if given else "曾经失败"
        return f"以往经验：{tried}" + (f"；可行的是 {right}。" if right else "。")
    tried = f"{given} failed" if given else "a call failed"
    return f"Known from before: {tried}" + (f"; {right} worked." if right else ".")


def _whole_id(failure: Failure) -> str:
    return f"{failure.tool_id}.{failure.action}" if failure.action else failure.tool_id


def _prefixes(tool_id: str) -> Iterable[str]:
    """An id and what may be the id of the tool whose action it is."""
    parts = tool_id.split(".")
    return [".".join(parts[:size]) for size in range(1, len(parts) + 1)]
