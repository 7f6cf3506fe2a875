"""The tool library: register tools, find them, describe them, run them under their rules."""

import asyncio
import copy
import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import orjson

from opposable.domain.call_context import NO_CONTEXT, ApprovalHandler, CallContext
from opposable.domain.errors import BadInput, FieldProblem, InvalidArguments, ToolRegistrationError
from opposable.domain.language import Language
from opposable.domain.rate_limits import InProcessRateLimiter, RateLimiter
from opposable.domain.tools import FailureKind, ToolDefinition, ToolResult, new_call_id
from opposable.tools import failure_messages as sentences
from opposable.tools.argument_validation import compile_validator, remove_optional_nulls
from opposable.tools.base import Tool
from opposable.tools.bindings import BoundRegistry, BuildTools
from opposable.tools.call_policies import PolicyContext, ToolRetryOptions, run_once, run_with_policies
from opposable.tools.circuit_breaker import CircuitBreakerOptions, CircuitState
from opposable.tools.descriptions import Detail, describe_entries, get_examples
from opposable.tools.function import FunctionTool
from opposable.tools.invocation import InvocationResult
from opposable.tools.meta_tools import SEARCH_TOOLS, MetaTools
from opposable.tools.registry import (
    RESERVED_NAMES,
    TOOL_ID_PATTERN,
    RegisteredTool,
    Registry,
    RegistryEntry,
    ToolState,
    policy_from_spec,
)
from opposable.tools.result_cache import ResultCache
from opposable.tools.result_store import ResultStore
from opposable.tools.tool_names import find_nearest_names

if TYPE_CHECKING:  # see tools/base.py
    from opposable.domain.specs import AgentToolBinding, AnyToolSpec, Example, Registration, ToolType

DEFAULT_TIMEOUT_SECONDS = 60.0
DEFAULT_MAX_RESULT_CHARACTERS = 20_000

MAX_COMPARED_NAMES = 500
"""So many names at most are compared with an unknown one letter by letter."""


@dataclass(frozen=True, slots=True)
class ToolDisclosure:
    """How many tools a model is told of at once.

    Up to `tools` tools of about `tokens` tokens in all it is told of every one; of more, it is given a search tool and
    the `fitting` ones that fit its task best.
    """

    max_tools: int = 40
    max_tokens: int = 8_000
    max_matches: int = 8


DEFAULT_CIRCUIT_BREAKER, DEFAULT_RETRIES, DEFAULT_DISCLOSURE = (
    CircuitBreakerOptions(),
    ToolRetryOptions(),
    ToolDisclosure(),
)


@dataclass(frozen=True, slots=True)
class ToolMatch:
    """A tool that fits a need, with how well: scores compare within one search only."""

    name: str
    tool_id: str
    action: str
    description: str
    score: float
    spec: "AnyToolSpec"


@dataclass(frozen=True, slots=True)
class ToolHealthReport:
    """How a tool has done since it was registered.

    `state` is "ok", "disabled", "open" (out of service, tried again in `retry_in` seconds) or "half_open" (the next
    call decides). `seconds` is the mean wall time of a call. `missing` names dependencies that are not there any more.
    """

    tool_id: str
    state: Literal["ok", "disabled", "open", "half_open"]
    calls: int
    failures: Mapping[FailureKind, int]
    mean_seconds: float
    last_failure: str = ""
    retry_after_seconds: float = 0.0
    missing_dependencies: tuple[str, ...] = ()


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
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        max_result_characters: int = DEFAULT_MAX_RESULT_CHARACTERS,
        approve: ApprovalHandler | None = None,
        rate_limiter: RateLimiter | None = None,
        circuit_breaker: CircuitBreakerOptions | None = DEFAULT_CIRCUIT_BREAKER,
        retries: ToolRetryOptions = DEFAULT_RETRIES,
        disclosure: ToolDisclosure = DEFAULT_DISCLOSURE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.disclosure = disclosure
        self._timeout = timeout
        self._max_result_characters = max_result_characters
        self._clock = clock
        self._result_store = ResultStore()
        self._registry: Registry | BoundRegistry = Registry()
        self._meta_tools: dict[str, RegisteredTool] | None = None
        self._policy_context = PolicyContext(
            rate_limiter or InProcessRateLimiter(clock),
            ResultCache(clock),
            retries,
            circuit_breaker,
            clock,
            approve,
            self._find_alternative_names,
        )
        for one in tools:
            self.register(one)

    # What there is

    @overload
    def register(self, what: Tool | Callable[..., Any], /) -> None: ...

    @overload
    def register(self, what: "AnyToolSpec", tools: Sequence[Tool], /) -> "Registration": ...

    def register(self, tool_or_spec: Any, tools: Sequence[Tool] | None = None, /) -> "Registration | None":
        """Add a tool: one written in code, or a spec with the tools made from it.

        What is written in code is its programmer's to mend, so it raises; what came as data is told: what of it can be
        called now, and what was set aside and why.

        Raises: `ToolRegistrationError` for a function or tool whose id is taken or that cannot be described.
        """
        if tools is not None:
            return self._register_spec(tool_or_spec, tools, None)
        made = to_tool(tool_or_spec)
        if not TOOL_ID_PATTERN.fullmatch(made.tool_id):
            raise ToolRegistrationError(
                f"{made.tool_id!r} is no id of a tool: 1 to 100 letters, digits, dots, dashes and underscores."
            )
        spec = getattr(made, "spec", None)
        spec = spec if spec is not None and spec.tool_id == made.tool_id else None
        service = ToolState(enabled=spec is None or spec.enabled)
        policy = None if spec is None else policy_from_spec(spec)
        self._get_writable_registry().add(RegistryEntry(made.tool_id, service, spec), (made,), policy)
        return None

    def replace(self, spec: "AnyToolSpec", tools: Sequence[Tool]) -> "Registration":
        """Put a spec and its tools in the place of those of the same id, which stay where none of the new can be had.

        Calls that run go on; counts and circuit are kept. Adds them where there were none.
        """
        return self._register_spec(spec, tools, self._get_writable_registry().entries.get(spec.tool_id))

    def unregister(self, tool_id: str) -> bool:
        """Take a tool with all its actions out; calls that run go on. False where there is none."""
        return self._get_writable_registry().remove(tool_id) is not None

    def enable(self, tool_id: str) -> bool:
        """Offer a tool again. False where there is none."""
        return self._set_enabled(tool_id, enabled=True)

    def disable(self, tool_id: str) -> bool:
        """Keep a tool, but neither tell models of it nor run it. False where there is none."""
        return self._set_enabled(tool_id, enabled=False)

    def with_bindings(
        self, bindings: "Sequence[AgentToolBinding]", build_tools: BuildTools | None = None
    ) -> "ToolLibrary":
        """The tools one agent has: those bound, with each binding's `config` put over the spec.

        It follows this library's changes, and shares its health, circuits, allowances and kept results. `make` makes
        tools anew where a config changes what a tool is made from. `set_aside` tells which bindings cannot be had.
        """
        view = copy.copy(self)
        return view._use_registry(BoundRegistry(self._registry, bindings, build_tools))  # noqa: SLF001 - a copy of this very object

    @property
    def rejected_bindings(self) -> dict[str, str]:
        """The ids of bindings that cannot be had, each with the reason; empty for a library that is not bound."""
        return self._registry.rejected_bindings if isinstance(self._registry, BoundRegistry) else {}

    # Asking for tools

    @property
    def specs(self) -> "tuple[AnyToolSpec, ...]":
        """The specs of all tools, those that are off too, in the order they were added."""
        return tuple(entry.spec for entry in self._registry.get_current_registry().entries.values())

    def get_spec(self, tool_id: str) -> "AnyToolSpec | None":
        """The spec of a tool."""
        entry = self._registry.get_current_registry().entries.get(tool_id)
        return None if entry is None else entry.spec

    def get_specs_by_type(self, tool_type: "ToolType") -> "tuple[AnyToolSpec, ...]":
        """The specs of one type."""
        return tuple(spec for spec in self.specs if spec.tool_type == tool_type)

    def get_specs_by_tags(self, tags: Iterable[str], *, match_all: bool = False) -> "tuple[AnyToolSpec, ...]":
        """The specs that have one of the tags, or every one of them."""
        wanted = set(tags)
        return tuple(
            spec for spec in self.specs if (wanted <= set(spec.tags) if match_all else not wanted.isdisjoint(spec.tags))
        )

    def search(self, query: str, limit: int = 10) -> list[ToolMatch]:
        """The tools that fit a need best, by the words of names, descriptions, tags, actions and parameters.

        Among equals the higher `priority` comes first. Tools that are off are not found.
        """
        return [_to_match(slot, score) for slot, score in self._rank_tools(query, limit)]

    def find_alternatives(
        self, tool_id: str, query: str = "", failed_tool_ids: Iterable[str] = (), limit: int = 3
    ) -> list[ToolMatch]:
        """Tools that may do instead of one, best first, none of them failed or out of service.

        They are ranked by `need`, or by the tool's own words where that is empty. `failed` are ids of tools.
        """
        entry = self._registry.get_current_registry().entries.get(tool_id)
        if not query and entry is not None:
            query = " ".join(
                (entry.spec.description, *entry.spec.tags, *(s.definition.description for s in entry.tools))
            )
        out = {tool_id, *failed_tool_ids}
        ranked = self._rank_tools(query, limit + 20 + 4 * len(out))
        fit = [(slot, score) for slot, score in ranked if slot.entry.tool_id not in out and _is_in_service(slot)]
        return [_to_match(slot, score) for slot, score in fit[:limit]]

    def describe(self, tool_id: str = "", detail: Detail = "short", language: Language = "en") -> str:
        """A tool in words, or all that are on: a line for each action, or everything and an example in full.

        Raises: `BadInput` where there is no such tool.
        """
        catalogue = self._registry.get_current_registry()
        every = [self._get_entry(tool_id)] if tool_id else [e for e in catalogue.entries.values() if e.state.enabled]
        return describe_entries(every, detail, language)

    def get_examples(self, tool_id: str, action: str = "") -> "tuple[Example, ...]":
        """Calls that work, of one action or of all. Raises: `BadInput` where there is no such tool."""
        return get_examples(self._get_entry(tool_id).spec, action)

    def get_health(self, tool_id: str) -> ToolHealthReport:
        """How a tool is doing. Raises: `BadInput` where there is no such tool."""
        entry = self._get_entry(tool_id)
        known, service = self._registry.get_current_registry().entries, entry.state
        breaker = service.circuit_breaker
        circuit: CircuitState = "closed" if breaker is None else breaker.state
        return ToolHealthReport(
            tool_id,
            "disabled" if not service.enabled else "ok" if circuit == "closed" else circuit,
            service.calls,
            dict(service.failures),
            service.total_seconds / service.calls if service.calls else 0.0,
            service.last_failure,
            breaker.get_wait_seconds() if breaker is not None else 0.0,
            tuple(one for one in (entry.declared_spec.dependencies if entry.declared_spec else ()) if one not in known),
        )

    @property
    def version(self) -> int:
        """Grows with each change of what there is."""
        return self._registry.get_current_registry().version

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What a model is told of all tools that are on: the same object until something changes."""
        return self._registry.get_current_registry().definitions

    @property
    def is_large(self) -> bool:
        """Whether there are too many tools to tell a model of every one."""
        catalogue = self._registry.get_current_registry()
        return (
            len(catalogue.definitions) > self.disclosure.max_tools
            or catalogue.definition_tokens > self.disclosure.max_tokens
        )

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools that are on, in the order they were added."""
        return tuple(slot.effective_tool for slot in self._registry.get_current_registry().enabled_tools)

    @property
    def names(self) -> tuple[str, ...]:
        """The names models know the tools by, in the order they were added."""
        return tuple(definition.name for definition in self.definitions)

    def find_tool(self, name: str) -> Tool | None:
        """The tool meant by `name`: its name, its id, or either as models miswrite it, where only one can be meant."""
        slot = self._find_registered_tool(name)
        return None if slot is None else slot.effective_tool

    def find_problems(self, name: str, arguments: dict[str, Any]) -> tuple[FieldProblem, ...]:
        """Return what is wrong with a call's arguments; empty if they are valid, or the tool is unknown."""
        tool = self._find_registered_tool(name)
        try:
            if tool is not None:
                tool.validate(arguments)
        except InvalidArguments as error:
            return error.problems
        return ()

    def can_stream(self, name: str) -> bool:
        """Whether the tool meant by `name` may tell pieces of its result while it runs."""
        slot = self._find_registered_tool(name)
        return slot is not None and slot.streams

    def suggest_names(self, name: str) -> list[str]:
        """The names of tools most like an unknown one, best first."""
        names = self.names
        if len(names) > MAX_COMPARED_NAMES:  # letter by letter takes too long: by words
            return [slot.definition.name for slot, _ in self._rank_tools(name, 3)]
        return find_nearest_names(name, names)

    def get_unknown_tool_message(self, name: str, language: Language = "en") -> str:
        """What a model is told that called a tool which there is not: the likeliest ones, and all or how to search."""
        near = self.suggest_names(name)
        return sentences.unknown_tool_message(name, near, (SEARCH_TOOLS,) if self.is_large else self.names, language)

    def read_result(self, run_id: str, handle: str) -> str | None:
        """The whole of a result that was put aside in a run; None where it is not kept (any more)."""
        return self._result_store.get(run_id, handle)

    # Calling

    async def call(self, name: str, arguments: dict[str, Any], context: CallContext = NO_CONTEXT) -> ToolResult:
        """Run one tool and tell what came of it. Raises nothing but cancellation."""
        slot = self._find_registered_tool(name)
        if slot is None:
            return ToolResult(
                context.call_id, name, self.get_unknown_tool_message(name, context.language), "unknown_tool"
            )
        return await self._call_tool(slot, arguments, context)

    async def call_action(
        self, tool_id: str, action: str, arguments: dict[str, Any], context: CallContext = NO_CONTEXT
    ) -> ToolResult:
        """Run one action of a tool by its exact names; `action` is "" for a tool that has but one. Raises: as `call`."""
        slot = self._registry.get_current_registry().find_action(tool_id, action)
        if slot is None:
            return await self.call(f"{tool_id}.{action}" if action else tool_id, arguments, context)
        return await self._call_tool(slot, arguments, context)

    async def call_many(
        self, calls: Sequence[tuple[str, dict[str, Any]]], context: CallContext = NO_CONTEXT, max_concurrency: int = 16
    ) -> list[ToolResult]:
        """Run several calls, at most `at_once` together; the results in the calls' order, each with an id of its own."""
        gate = asyncio.Semaphore(max_concurrency)

        async def one(n: int, name: str, arguments: dict[str, Any]) -> ToolResult:
            key = context.idempotency_key and f"{context.idempotency_key}-{n}"
            own = dataclasses.replace(context, call_id=new_call_id(), idempotency_key=key)
            async with gate:
                return await self.call(name, arguments, own)

        return list(await asyncio.gather(*(one(n, *each) for n, each in enumerate(calls))))

    async def _call_tool(self, tool: RegisteredTool, arguments: dict[str, Any], context: CallContext) -> ToolResult:
        limit = tool.timeout if tool.timeout is not None else self._timeout
        service = tool.entry.state
        left_out: tuple[str, ...] = ()
        if None in arguments.values() and not _accepts_arguments(tool, arguments):
            arguments, left_out = remove_optional_nulls(arguments, tool.definition.parameters)
        started = time.perf_counter()
        if tool.policy is None and service.circuit_breaker is None:
            outcome = await run_once(tool, arguments, context, limit, self._policy_context)
        else:
            outcome = await run_with_policies(tool, arguments, context, limit, self._policy_context)
        seconds = time.perf_counter() - started
        if outcome.attempts:
            service.calls += 1
            service.total_seconds += seconds
        if outcome.failure is not None:
            service.failures[outcome.failure] = service.failures.get(outcome.failure, 0) + 1
            service.last_failure = outcome.content[:500]
        return self._to_result(tool, outcome, context, seconds, left_out)

    def _to_result(
        self,
        tool: RegisteredTool,
        outcome: InvocationResult,
        context: CallContext,
        seconds: float,
        repairs: tuple[str, ...],
    ) -> ToolResult:
        content, cut, handle = outcome.content, 0, ""
        if len(content) > self._max_result_characters:
            if context.run_id and outcome.failure is None:
                handle = self._result_store.put(context.run_id, content)
            content, cut = truncate_result(content, self._max_result_characters, context.language, handle)
        name = tool.definition.name
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

    def _use_registry(self, registry: BoundRegistry) -> "ToolLibrary":
        """This library turned into a view."""
        self._registry, self._meta_tools = registry, None
        self._policy_context = dataclasses.replace(
            self._policy_context, find_alternative_names=self._find_alternative_names
        )
        return self

    def _get_writable_registry(self) -> Registry:
        """The catalogue, to change it. Raises: `ToolRegistrationError` for a view of another's."""
        if isinstance(self._registry, BoundRegistry):
            raise ToolRegistrationError("These are the tools bound to one agent; change the library they come from.")
        return self._registry

    def _register_spec(
        self, spec: "AnyToolSpec", tools: Sequence[Tool], replaced_entry: RegistryEntry | None
    ) -> "Registration":
        from opposable.domain.specs import Registration

        catalogue = self._get_writable_registry()
        refused = _find_spec_problem(spec, tools, catalogue, replaced_entry)
        if refused:
            return Registration(tool_id=spec.tool_id, set_aside={spec.tool_id: refused})
        good: dict[str, Tool] = {}
        aside: dict[str, str] = {}
        for tool in tools:
            problem = "there is another action of this name" if tool.tool_id in good else _find_tool_problem(tool, spec)
            taken = catalogue.find_owner(tool.tool_id)
            if not problem and taken is not None and taken is not replaced_entry:
                problem = f"its id is taken by an action of {taken.tool_id!r}"
            if problem:
                aside[tool.tool_id] = problem
            else:
                good[tool.tool_id] = tool
        if not good:
            return Registration(tool_id=spec.tool_id, set_aside=aside)
        if replaced_entry is not None:
            catalogue.remove(spec.tool_id)
        service = ToolState() if replaced_entry is None else replaced_entry.state
        service.enabled = spec.enabled
        entry = RegistryEntry(spec.tool_id, service, spec)
        catalogue.add(entry, good.values(), policy_from_spec(spec))
        return Registration(
            tool_id=spec.tool_id, accepted=tuple(slot.definition.name for slot in entry.tools), set_aside=aside
        )

    def _set_enabled(self, tool_id: str, *, enabled: bool) -> bool:
        catalogue = self._get_writable_registry()
        entry = catalogue.entries.get(tool_id)
        if entry is not None:
            catalogue.set_enabled(entry, enabled)
        return entry is not None

    def _get_entry(self, tool_id: str) -> RegistryEntry:
        entry = self._registry.get_current_registry().entries.get(tool_id)
        if entry is None:
            raise BadInput(f"There is no tool with the id {tool_id!r}.")
        return entry

    def _find_registered_tool(self, name: str) -> RegisteredTool | None:
        found = self._registry.get_current_registry().find_tool(name)
        if found is None and name in RESERVED_NAMES:
            if self._meta_tools is None:
                self._meta_tools = MetaTools(
                    self._search_tools, self._result_store, self._max_result_characters
                ).to_registered_tools()
            found = self._meta_tools[name]
        return found

    def _search_tools(self, query: str) -> list[RegisteredTool]:
        return [slot for slot, _ in self._rank_tools(query, self.disclosure.max_matches)]

    def _rank_tools(self, query: str, limit: int) -> list[tuple[RegisteredTool, float]]:
        return self._registry.get_current_registry().index.search(query, limit, _get_priority_key)

    def _find_alternative_names(self, tool: RegisteredTool) -> list[str]:
        return [found.name for found in self.find_alternatives(tool.entry.tool_id)]


def to_tool(value: Any) -> Tool:
    """What was given as a tool, or a tool made of a function. Raises: `ToolRegistrationError`."""
    if hasattr(value, "definition") and hasattr(value, "run"):
        return cast("Tool", value)
    if callable(value):
        return FunctionTool(value)
    raise ToolRegistrationError(f"{value!r} is no tool: give a function, or an object with `definition` and `run`.")


def truncate_result(text: str, max_characters: int, language: str, handle: str = "") -> tuple[str, int]:
    """`text` with its middle left out where it is longer than `cap`, said in its place; and how much was left out."""
    if len(text) <= max_characters:
        return text, 0
    head = max_characters * 3 // 4
    tail = max_characters - head
    cut = len(text) - max_characters
    return f"{text[:head]}\n{sentences.truncation_note(cut, len(text), language, handle, head)}\n{text[-tail:]}", cut


def _accepts_arguments(tool: RegisteredTool, arguments: dict[str, Any]) -> bool:
    """Whether the tool itself takes the arguments; false where it cannot be asked without running it."""
    if not hasattr(tool.tool, "check"):
        return False
    try:
        tool.check(arguments)
    except InvalidArguments:
        return False
    return True


def _find_spec_problem(
    spec: "AnyToolSpec", tools: Sequence[Tool], registry: Registry, replaced_entry: RegistryEntry | None
) -> str:
    """Why a spec cannot be registered at all; "" where it can."""
    if replaced_entry is None and spec.tool_id in registry.entries:
        return f"There is a tool named {spec.tool_id!r} already; replace it, or give this one another id."
    missing = [one for one in spec.dependencies if one not in registry.entries or one == spec.tool_id]
    if missing:
        return f"It depends on {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not registered."
    return "" if tools else "It brings no tool that could be called."


def _find_tool_problem(tool: Tool, spec: "AnyToolSpec") -> str:
    """Why one of a spec's tools cannot be told to a model; "" where it can."""
    if tool.tool_id != spec.tool_id and not tool.tool_id.startswith(f"{spec.tool_id}."):
        return f"its id is to be {spec.tool_id!r} or to begin with '{spec.tool_id}.'"
    if isinstance(tool, FunctionTool):
        return ""
    try:
        compile_validator(tool.definition.parameters)
        orjson.dumps(tool.definition.parameters)
    except (BadInput, TypeError) as error:
        return str(error)
    return ""


def _to_match(tool: RegisteredTool, score: float) -> ToolMatch:
    entry, told = tool.entry, tool.definition
    return ToolMatch(told.name, entry.tool_id, tool.action, told.description, score, entry.spec)


def _get_priority_key(tool: RegisteredTool) -> tuple[float, ...]:
    spec = tool.entry.declared_spec
    return (-(spec.priority if spec is not None else 1),)


def _is_in_service(tool: RegisteredTool) -> bool:
    breaker = tool.entry.state.circuit_breaker
    return breaker is None or breaker.state == "closed"
