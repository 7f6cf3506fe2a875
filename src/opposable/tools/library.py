"""The tool library: register tools, find them, describe them, run them under their rules."""

import asyncio
import copy
import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import orjson

from opposable.domain.call_context import NO_CONTEXT, Approve, CallContext
from opposable.domain.errors import BadInput, InvalidArguments, ToolRegistrationError
from opposable.domain.language import Language
from opposable.domain.tools import FailureKind, ToolDefinition, ToolResult, new_call_id
from opposable.tools import failure_messages as sentences
from opposable.tools.argument_validation import checker, without_nulls
from opposable.tools.base import Tool
from opposable.tools.bindings import Bound, Make
from opposable.tools.call_policies import Governance, Retrying, governed, once
from opposable.tools.circuit_breaker import Breaking, Circuit
from opposable.tools.descriptions import Detail, described, examples_of
from opposable.tools.function import FunctionTool
from opposable.tools.invocation import Outcome
from opposable.tools.meta_tools import SEARCH_TOOLS, OwnTools
from opposable.tools.rate_limiter import Limiter, LocalLimiter
from opposable.tools.registry import ID, RESERVED, Catalogue, Entry, Service, Slot, policy_of
from opposable.tools.result_cache import Cache
from opposable.tools.result_store import Shelf
from opposable.tools.tool_names import nearest

if TYPE_CHECKING:  # see tools/base.py
    from opposable.domain.specs import AgentToolBinding, AnyToolSpec, Example, Registration, ToolType

DEFAULT_TIMEOUT = 60.0
DEFAULT_CAP = 20_000

MOST_COMPARED = 500
"""So many names at most are compared with an unknown one letter by letter."""


@dataclass(frozen=True, slots=True)
class Showing:
    """How many tools a model is told of at once.

    Up to `tools` tools of about `tokens` tokens in all it is told of every one; of more, it is given a search tool and
    the `fitting` ones that fit its task best.
    """

    tools: int = 40
    tokens: int = 8_000
    fitting: int = 8


BREAKING, RETRYING, SHOWING = Breaking(), Retrying(), Showing()


@dataclass(frozen=True, slots=True)
class Found:
    """A tool that fits a need, with how well: scores compare within one search only."""

    name: str
    tool_id: str
    action: str
    description: str
    score: float
    spec: "AnyToolSpec"


@dataclass(frozen=True, slots=True)
class Health:
    """How a tool has done since it was registered.

    `state` is "ok", "disabled", "open" (out of service, tried again in `retry_in` seconds) or "half_open" (the next
    call decides). `seconds` is the mean wall time of a call. `missing` names dependencies that are not there any more.
    """

    tool_id: str
    state: Literal["ok", "disabled", "open", "half_open"]
    calls: int
    failures: Mapping[FailureKind, int]
    seconds: float
    last_failure: str = ""
    retry_in: float = 0.0
    missing: tuple[str, ...] = ()


class ToolLibrary:
    """Tools by name.

    `timeout` is in seconds for tools that set none, `cap` the most characters of a result a model is told at once.
    `approve` asks a person about tools that need it, where the call's context names nobody. `limiter` counts calls
    against rate limits (by default within this process), `breaking` says when a tool that does not answer is out of
    service (None: never), `retrying` how idempotent ones are tried again, `showing` when a model is told of some tools
    only. `clock` gives seconds for all of this. A failing tool never raises out of `call`: the failure is in the
    result.
    """

    def __init__(
        self,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        *,
        timeout: float = DEFAULT_TIMEOUT,
        cap: int = DEFAULT_CAP,
        approve: Approve | None = None,
        limiter: Limiter | None = None,
        breaking: Breaking | None = BREAKING,
        retrying: Retrying = RETRYING,
        showing: Showing = SHOWING,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.showing = showing
        self._timeout = timeout
        self._cap = cap
        self._clock = clock
        self._shelf = Shelf()
        self._source: Catalogue | Bound = Catalogue()
        self._own: dict[str, Slot] | None = None
        self._governance = Governance(
            limiter or LocalLimiter(clock), Cache(clock), retrying, breaking, clock, approve, self._instead
        )
        for one in tools:
            self.register(one)

    # What there is

    @overload
    def register(self, what: Tool | Callable[..., Any], /) -> None: ...

    @overload
    def register(self, what: "AnyToolSpec", tools: Sequence[Tool], /) -> "Registration": ...

    def register(self, what: Any, tools: Sequence[Tool] | None = None, /) -> "Registration | None":
        """Add a tool: one written in code, or a spec with the tools made from it.

        What is written in code is its programmer's to mend, so it raises; what came as data is told: what of it can be
        called now, and what was set aside and why.

        Raises: `ToolRegistrationError` for a function or tool whose id is taken or that cannot be described.
        """
        if tools is not None:
            return self._registered(what, tools, None)
        made = as_tool(what)
        if not ID.fullmatch(made.tool_id):
            raise ToolRegistrationError(
                f"{made.tool_id!r} is no id of a tool: 1 to 100 letters, digits, dots, dashes and underscores."
            )
        spec = getattr(made, "spec", None)
        spec = spec if spec is not None and spec.tool_id == made.tool_id else None
        service = Service(enabled=spec is None or spec.enabled)
        policy = None if spec is None else policy_of(spec)
        self._catalogue().add(Entry(made.tool_id, service, spec), (made,), policy)
        return None

    def replace(self, spec: "AnyToolSpec", tools: Sequence[Tool]) -> "Registration":
        """Put a spec and its tools in the place of those of the same id, which stay where none of the new can be had.

        Calls that run go on; counts and circuit are kept. Adds them where there were none.
        """
        return self._registered(spec, tools, self._catalogue().entries.get(spec.tool_id))

    def unregister(self, tool_id: str) -> bool:
        """Take a tool with all its actions out; calls that run go on. False where there is none."""
        return self._catalogue().remove(tool_id) is not None

    def enable(self, tool_id: str) -> bool:
        """Offer a tool again. False where there is none."""
        return self._switched(tool_id, enabled=True)

    def disable(self, tool_id: str) -> bool:
        """Keep a tool, but neither tell models of it nor run it. False where there is none."""
        return self._switched(tool_id, enabled=False)

    def bound(self, bindings: "Sequence[AgentToolBinding]", make: Make | None = None) -> "ToolLibrary":
        """The tools one agent has: those bound, with each binding's `config` put over the spec.

        It follows this library's changes, and shares its health, circuits, allowances and kept results. `make` makes
        tools anew where a config changes what a tool is made from. `set_aside` tells which bindings cannot be had.
        """
        view = copy.copy(self)
        return view._over(Bound(self._source, bindings, make))  # noqa: SLF001 - a copy of this very object

    @property
    def set_aside(self) -> dict[str, str]:
        """The ids of bindings that cannot be had, each with the reason; empty for a library that is not bound."""
        return self._source.set_aside if isinstance(self._source, Bound) else {}

    # Asking for tools

    @property
    def specs(self) -> "tuple[AnyToolSpec, ...]":
        """The specs of all tools, those that are off too, in the order they were added."""
        return tuple(entry.spec for entry in self._source.current().entries.values())

    def get(self, tool_id: str) -> "AnyToolSpec | None":
        """The spec of a tool."""
        entry = self._source.current().entries.get(tool_id)
        return None if entry is None else entry.spec

    def by_type(self, tool_type: "ToolType") -> "tuple[AnyToolSpec, ...]":
        """The specs of one type."""
        return tuple(spec for spec in self.specs if spec.tool_type == tool_type)

    def by_tags(self, tags: Iterable[str], *, every: bool = False) -> "tuple[AnyToolSpec, ...]":
        """The specs that have one of the tags, or every one of them."""
        wanted = set(tags)
        return tuple(
            spec for spec in self.specs if (wanted <= set(spec.tags) if every else not wanted.isdisjoint(spec.tags))
        )

    def search(self, need: str, most: int = 10) -> list[Found]:
        """The tools that fit a need best, by the words of names, descriptions, tags, actions and parameters.

        Among equals the higher `priority` comes first. Tools that are off are not found.
        """
        return [_found(slot, score) for slot, score in self._ranked(need, most)]

    def alternatives(self, tool_id: str, need: str = "", failed: Iterable[str] = (), most: int = 3) -> list[Found]:
        """Tools that may do instead of one, best first, none of them failed or out of service.

        They are ranked by `need`, or by the tool's own words where that is empty. `failed` are ids of tools.
        """
        entry = self._source.current().entries.get(tool_id)
        if not need and entry is not None:
            need = " ".join(
                (entry.spec.description, *entry.spec.tags, *(s.definition.description for s in entry.slots))
            )
        out = {tool_id, *failed}
        ranked = self._ranked(need, most + 20 + 4 * len(out))
        fit = [(slot, score) for slot, score in ranked if slot.entry.tool_id not in out and _in_service(slot)]
        return [_found(slot, score) for slot, score in fit[:most]]

    def describe(self, tool_id: str = "", detail: Detail = "short", language: Language = "en") -> str:
        """A tool in words, or all that are on: a line for each action, or everything and an example in full.

        Raises: `BadInput` where there is no such tool.
        """
        catalogue = self._source.current()
        every = [self._entry(tool_id)] if tool_id else [e for e in catalogue.entries.values() if e.service.enabled]
        return described(every, detail, language)

    def examples(self, tool_id: str, action: str = "") -> "tuple[Example, ...]":
        """Calls that work, of one action or of all. Raises: `BadInput` where there is no such tool."""
        return examples_of(self._entry(tool_id).spec, action)

    def health(self, tool_id: str) -> Health:
        """How a tool is doing. Raises: `BadInput` where there is no such tool."""
        entry = self._entry(tool_id)
        known, service = self._source.current().entries, entry.service
        breaker = service.breaker
        circuit: Circuit = "closed" if breaker is None else breaker.state
        return Health(
            tool_id,
            "disabled" if not service.enabled else "ok" if circuit == "closed" else circuit,
            service.calls,
            dict(service.failures),
            service.seconds / service.calls if service.calls else 0.0,
            service.last_failure,
            breaker.wait() if breaker is not None else 0.0,
            tuple(one for one in (entry.given.dependencies if entry.given else ()) if one not in known),
        )

    @property
    def version(self) -> int:
        """Grows with each change of what there is."""
        return self._source.current().version

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What a model is told of all tools that are on: the same object until something changes."""
        return self._source.current().definitions

    @property
    def is_large(self) -> bool:
        """Whether there are too many tools to tell a model of every one."""
        catalogue = self._source.current()
        return len(catalogue.definitions) > self.showing.tools or catalogue.tokens > self.showing.tokens

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools that are on, in the order they were added."""
        return tuple(slot.offered for slot in self._source.current().slots)

    @property
    def names(self) -> tuple[str, ...]:
        """The names models know the tools by, in the order they were added."""
        return tuple(definition.name for definition in self.definitions)

    def find(self, name: str) -> Tool | None:
        """The tool meant by `name`: its name, its id, or either as models miswrite it, where only one can be meant."""
        slot = self._slot(name)
        return None if slot is None else slot.offered

    def streams(self, name: str) -> bool:
        """Whether the tool meant by `name` may tell pieces of its result while it runs."""
        slot = self._slot(name)
        return slot is not None and slot.streams

    def nearest(self, name: str) -> list[str]:
        """The names of tools most like an unknown one, best first."""
        names = self.names
        if len(names) > MOST_COMPARED:  # letter by letter takes too long: by words
            return [slot.definition.name for slot, _ in self._ranked(name, 3)]
        return nearest(name, names)

    def unknown(self, name: str, language: Language = "en") -> str:
        """What a model is told that called a tool which there is not: the likeliest ones, and all or how to search."""
        near = self.nearest(name)
        return sentences.unknown_tool(name, near, (SEARCH_TOOLS,) if self.is_large else self.names, language)

    def read(self, run_id: str, handle: str) -> str | None:
        """The whole of a result that was put aside in a run; None where it is not kept (any more)."""
        return self._shelf.get(run_id, handle)

    # Calling

    async def call(self, name: str, arguments: dict[str, Any], context: CallContext = NO_CONTEXT) -> ToolResult:
        """Run one tool and tell what came of it. Raises nothing but cancellation."""
        slot = self._slot(name)
        if slot is None:
            return ToolResult(context.call_id, name, self.unknown(name, context.language), "unknown_tool")
        return await self._called(slot, arguments, context)

    async def call_action(
        self, tool_id: str, action: str, arguments: dict[str, Any], context: CallContext = NO_CONTEXT
    ) -> ToolResult:
        """Run one action of a tool by its exact names; `action` is "" for a tool that has but one. Raises: as `call`."""
        slot = self._source.current().action(tool_id, action)
        if slot is None:
            return await self.call(f"{tool_id}.{action}" if action else tool_id, arguments, context)
        return await self._called(slot, arguments, context)

    async def call_many(
        self, calls: Sequence[tuple[str, dict[str, Any]]], context: CallContext = NO_CONTEXT, at_once: int = 16
    ) -> list[ToolResult]:
        """Run several calls, at most `at_once` together; the results in the calls' order, each with an id of its own."""
        gate = asyncio.Semaphore(at_once)

        async def one(n: int, name: str, arguments: dict[str, Any]) -> ToolResult:
            key = context.idempotency_key and f"{context.idempotency_key}-{n}"
            own = dataclasses.replace(context, call_id=new_call_id(), idempotency_key=key)
            async with gate:
                return await self.call(name, arguments, own)

        return list(await asyncio.gather(*(one(n, *each) for n, each in enumerate(calls))))

    async def _called(self, slot: Slot, arguments: dict[str, Any], context: CallContext) -> ToolResult:
        limit = slot.timeout if slot.timeout is not None else self._timeout
        service = slot.entry.service
        left_out: tuple[str, ...] = ()
        if None in arguments.values() and not _fit(slot, arguments):
            arguments, left_out = without_nulls(arguments, slot.definition.parameters)
        started = time.perf_counter()
        if slot.policy is None and service.breaker is None:
            outcome = await once(slot, arguments, context, limit, self._governance)
        else:
            outcome = await governed(slot, arguments, context, limit, self._governance)
        seconds = time.perf_counter() - started
        if outcome.attempts:
            service.calls += 1
            service.seconds += seconds
        if outcome.failure is not None:
            service.failures[outcome.failure] = service.failures.get(outcome.failure, 0) + 1
            service.last_failure = outcome.content[:500]
        return self._told(slot, outcome, context, seconds, left_out)

    def _told(
        self, slot: Slot, outcome: Outcome, context: CallContext, seconds: float, repairs: tuple[str, ...]
    ) -> ToolResult:
        content, cut, handle = outcome.content, 0, ""
        if len(content) > self._cap:
            if context.run_id and outcome.failure is None:
                handle = self._shelf.put(context.run_id, content)
            content, cut = capped(content, self._cap, context.language, handle)
        name = slot.definition.name
        return ToolResult(
            context.call_id,
            name,
            content,
            outcome.failure,
            outcome.data,
            cut,
            seconds,
            repairs,
            outcome.attempts,
            outcome.cached,
            handle,
        )

    # Inside

    def _over(self, source: Bound) -> "ToolLibrary":
        """This library turned into a view."""
        self._source, self._own = source, None
        self._governance = dataclasses.replace(self._governance, alternatives=self._instead)
        return self

    def _catalogue(self) -> Catalogue:
        """The catalogue, to change it. Raises: `ToolRegistrationError` for a view of another's."""
        if isinstance(self._source, Bound):
            raise ToolRegistrationError("These are the tools bound to one agent; change the library they come from.")
        return self._source

    def _registered(self, spec: "AnyToolSpec", tools: Sequence[Tool], old: Entry | None) -> "Registration":
        from opposable.domain.specs import Registration

        catalogue = self._catalogue()
        refused = _refusal(spec, tools, catalogue, old)
        if refused:
            return Registration(tool_id=spec.tool_id, set_aside={spec.tool_id: refused})
        good: dict[str, Tool] = {}
        aside: dict[str, str] = {}
        for tool in tools:
            problem = "there is another action of this name" if tool.tool_id in good else _problem(tool, spec)
            taken = catalogue.owner(tool.tool_id)
            if not problem and taken is not None and taken is not old:
                problem = f"its id is taken by an action of {taken.tool_id!r}"
            if problem:
                aside[tool.tool_id] = problem
            else:
                good[tool.tool_id] = tool
        if not good:
            return Registration(tool_id=spec.tool_id, set_aside=aside)
        if old is not None:
            catalogue.remove(spec.tool_id)
        service = Service() if old is None else old.service
        service.enabled = spec.enabled
        entry = Entry(spec.tool_id, service, spec)
        catalogue.add(entry, good.values(), policy_of(spec))
        return Registration(
            tool_id=spec.tool_id, accepted=tuple(slot.definition.name for slot in entry.slots), set_aside=aside
        )

    def _switched(self, tool_id: str, *, enabled: bool) -> bool:
        catalogue = self._catalogue()
        entry = catalogue.entries.get(tool_id)
        if entry is not None:
            catalogue.switch(entry, enabled)
        return entry is not None

    def _entry(self, tool_id: str) -> Entry:
        entry = self._source.current().entries.get(tool_id)
        if entry is None:
            raise BadInput(f"There is no tool with the id {tool_id!r}.")
        return entry

    def _slot(self, name: str) -> Slot | None:
        found = self._source.current().slot(name)
        if found is None and name in RESERVED:
            if self._own is None:
                self._own = OwnTools(self._fitting, self._shelf, self._cap).slots()
            found = self._own[name]
        return found

    def _fitting(self, need: str) -> list[Slot]:
        return [slot for slot, _ in self._ranked(need, self.showing.fitting)]

    def _ranked(self, need: str, most: int) -> list[tuple[Slot, float]]:
        return self._source.current().index.search(need, most, _rank)

    def _instead(self, slot: Slot) -> list[str]:
        return [found.name for found in self.alternatives(slot.entry.tool_id)]


def as_tool(given: Any) -> Tool:
    """What was given as a tool, or a tool made of a function. Raises: `ToolRegistrationError`."""
    if hasattr(given, "definition") and hasattr(given, "run"):
        return cast("Tool", given)
    if callable(given):
        return FunctionTool(given)
    raise ToolRegistrationError(f"{given!r} is no tool: give a function, or an object with `definition` and `run`.")


def capped(text: str, cap: int, language: str, handle: str = "") -> tuple[str, int]:
    """`text` with its middle left out where it is longer than `cap`, said in its place; and how much was left out."""
    if len(text) <= cap:
        return text, 0
    head = cap * 3 // 4
    tail = cap - head
    cut = len(text) - cap
    return f"{text[:head]}\n{sentences.left_out(cut, len(text), language, handle, head)}\n{text[-tail:]}", cut


def _fit(slot: Slot, arguments: dict[str, Any]) -> bool:
    """Whether the tool itself takes the arguments; false where it cannot be asked without running it."""
    if not hasattr(slot.tool, "check"):
        return False
    try:
        slot.check(arguments)
    except InvalidArguments:
        return False
    return True


def _refusal(spec: "AnyToolSpec", tools: Sequence[Tool], catalogue: Catalogue, old: Entry | None) -> str:
    """Why a spec cannot be registered at all; "" where it can."""
    if old is None and spec.tool_id in catalogue.entries:
        return f"There is a tool named {spec.tool_id!r} already; replace it, or give this one another id."
    missing = [one for one in spec.dependencies if one not in catalogue.entries or one == spec.tool_id]
    if missing:
        return f"It depends on {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not registered."
    return "" if tools else "It brings no tool that could be called."


def _problem(tool: Tool, spec: "AnyToolSpec") -> str:
    """Why one of a spec's tools cannot be told to a model; "" where it can."""
    if tool.tool_id != spec.tool_id and not tool.tool_id.startswith(f"{spec.tool_id}."):
        return f"its id is to be {spec.tool_id!r} or to begin with '{spec.tool_id}.'"
    if isinstance(tool, FunctionTool):
        return ""
    try:
        checker(tool.definition.parameters)
        orjson.dumps(tool.definition.parameters)
    except (BadInput, TypeError) as error:
        return str(error)
    return ""


def _found(slot: Slot, score: float) -> Found:
    entry, told = slot.entry, slot.definition
    return Found(told.name, entry.tool_id, slot.action, told.description, score, entry.spec)


def _rank(slot: Slot) -> tuple[float, ...]:
    spec = slot.entry.given
    return (-(spec.priority if spec is not None else 1),)


def _in_service(slot: Slot) -> bool:
    breaker = slot.entry.service.breaker
    return breaker is None or breaker.state == "closed"
