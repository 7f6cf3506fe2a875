"""The registry of a library: specs by id, tools by the names that models use."""

import functools
import itertools
import re
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from opposable.domain.call_context import CallContext
from opposable.domain.errors import BadInput, ToolRegistrationError
from opposable.domain.json_text import dump_json
from opposable.domain.text_normalization import split_camel_case
from opposable.domain.tools import FailureKind, ToolDefinition
from opposable.tools.base import Tool, ToolOutline, get_outline
from opposable.tools.circuit_breaker import CircuitBreaker
from opposable.tools.json_schema_validation import ValidateArguments, compile_validator
from opposable.tools.tool_names import SAFE_NAME_PATTERN, normalize_name, to_hashed_name
from opposable.tools.tool_search import SearchIndex
from opposable.tools.traits import NO_TRAITS, ToolTraits, get_traits

if TYPE_CHECKING:  # pydantic is loaded only where specs are used
    from opposable.domain.specs import AnyToolSpec, RateLimit

_SEPARATORS = re.compile(r"[._-]+")
TOOL_ID_PATTERN = re.compile(r"[\w.\-]{1,100}")

RESERVED_NAMES = frozenset({"search_tools", "read_result"})
"""Names of the library's meta tools. A registered tool with such a name gets a hashed name."""


@dataclass(slots=True, eq=False)
class ToolState:
    """Whether a tool is enabled, and how its calls went. All views of a tool share its state.

    `calls` and `failures` count every call, also one that was refused before the tool ran. `total_seconds` is the
    wall time of all calls together. A circuit breaker is created with the first call that is not answered. The one with
    the key "" is shared by all actions, since their connection is. An action that takes too long has one of its own.
    """

    enabled: bool = True
    calls: int = 0
    total_seconds: float = 0.0
    failures: dict[FailureKind, int] = field(default_factory=dict)
    last_failure: str = ""
    circuit_breakers: dict[str, CircuitBreaker] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """The rules for each call of a tool.

    `rate_limits` are pairs of a key and a limit; a call must be within all of them. `cache_variant` separates the
    cached results of a binding that changes the spec.
    """

    needs_approval: bool = False
    rate_limits: "tuple[tuple[str, RateLimit], ...]" = ()
    cache_seconds: float = 0.0
    cache_variant: str = ""


@dataclass(slots=True, eq=False)
class RegistryEntry:
    """A spec and the tools made from it.

    `declared_spec` is None for a tool that was registered in code without a spec, until `spec` is read. `serial` is unique
    to a registration, and shared by its views: results that an earlier tool of the id returned are not its results.
    """

    tool_id: str
    state: ToolState
    declared_spec: "AnyToolSpec | None"
    tools: "list[RegisteredTool]" = field(default_factory=list)
    serial: int = field(default_factory=itertools.count().__next__)

    @property
    def spec(self) -> "AnyToolSpec":
        """The spec, with the tool's current `enabled`."""
        spec = self.declared_spec or _spec_from_tool(self.tool_id, self.tools[0].tool)
        if spec.enabled != self.state.enabled:
            spec = spec.model_copy(update={"enabled": self.state.enabled})
        self.declared_spec = spec
        return spec


@dataclass(slots=True, eq=False)
class RegisteredTool:
    """A tool with its entry, its rules and the outline of the definition that models get. It is itself a `Tool`.

    `policy` is None for a tool without rules.
    """

    tool: Tool
    outline: ToolOutline
    entry: RegistryEntry
    timeout: float | None
    policy: CallPolicy | None
    traits: ToolTraits = NO_TRAITS
    failure_when: Mapping[str, Any] = field(default_factory=dict)
    _definition: ToolDefinition | None = field(default=None, init=False, repr=False)
    _schema_check: ValidateArguments | None = field(default=None, init=False, repr=False)

    @property
    def name(self) -> str:
        """The name that models know the tool by."""
        return self.outline.name

    @property
    def definition(self) -> ToolDefinition:
        """The definition that models get, made when it is first needed."""
        if self._definition is None:
            own, outline = self.tool.definition, self.outline
            is_own = (own.name, own.description) == (outline.name, outline.description)
            self._definition = own if is_own else ToolDefinition(outline.name, outline.description, own.parameters)
        return self._definition

    @property
    def tool_id(self) -> str:
        """The tool's id."""
        return self.tool.tool_id

    @property
    def action(self) -> str:
        """The action's name without the spec's id; "" for the only tool of a spec."""
        return self.tool.tool_id[len(self.entry.tool_id) + 1 :]

    @property
    def circuit_breakers(self) -> dict[str, CircuitBreaker]:
        """The circuit breakers of the tool, by their keys in the state."""
        breakers = self.entry.state.circuit_breakers
        return {key: breakers[key] for key in ("", self.action) if key in breakers} if breakers else {}

    @property
    def streams(self) -> bool:
        """Whether the tool reports deltas of its result."""
        spec = self.entry.declared_spec
        return bool(getattr(self.tool, "streams", False)) or (spec is not None and spec.mode == "streamable")

    @property
    def takes_context(self) -> bool:
        """Whether the results of the tool may depend on the context of a call."""
        return bool(getattr(self.tool, "takes_context", True))

    @property
    def has_check(self) -> bool:
        """Whether the tool can validate arguments without running."""
        return self.tool.has_check if isinstance(self.tool, RegisteredTool) else hasattr(self.tool, "check")

    @property
    def effective_tool(self) -> Tool:
        """The tool, or this object if models get another definition than the tool's own."""
        own = getattr(self.tool, "outline", None) or self.tool.definition
        is_own = (own.name, own.description) == (self.outline.name, self.outline.description)
        return self.tool if is_own else self

    def check(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments for `run`, as the tool's `check` does; unchanged if it has none.

        Raises:
            InvalidArguments: The arguments do not fit.
        """
        check = getattr(self.tool, "check", None)
        return arguments if check is None else check(arguments)

    def check_schema(self, arguments: dict[str, Any]) -> None:
        """Validate arguments by the definition's JSON Schema if the tool has no `check`. Raises: `InvalidArguments`."""
        if self.has_check:
            return
        check = self._schema_check
        if check is None:
            try:
                check = compile_validator(self.definition.parameters)
            except BadInput:
                check = dict  # a schema that cannot be compiled rejects nothing
            self._schema_check = check
        check(arguments)

    def run(self, arguments: dict[str, Any], context: CallContext) -> Coroutine[Any, Any, Any]:
        """Run the tool."""
        return self.tool.run(arguments, context)


def _get_own_tool(tool: Tool) -> Tool:
    """Return the tool that a view, or a tool with another definition, was made from."""
    while isinstance(tool, RegisteredTool):
        tool = tool.tool
    return tool


class Registry:
    """Entries and their tools. `version` grows with each change."""

    def __init__(self) -> None:
        self.version = 0
        self.entries: dict[str, RegistryEntry] = {}
        self.tools_by_name: dict[str, RegisteredTool] = {}
        self._tools_by_id: dict[str, RegisteredTool] = {}
        self._index: SearchIndex[RegisteredTool] | None = None

    def get_current_registry(self) -> "Registry":
        """Return this registry. `BoundRegistry` has the same method."""
        return self

    def add(self, entry: RegistryEntry, tools: Iterable[Tool], policies: Iterable[CallPolicy | None]) -> None:
        """Add an entry with its tools and the policy of each.

        Raises:
            ToolRegistrationError: Its id or the id of a tool is taken.
        """
        if entry.tool_id in self.entries:
            raise ToolRegistrationError(
                f"There is already a tool named {entry.tool_id!r}. Give this one another name, or replace that one."
            )
        spec = entry.declared_spec
        for tool, policy in zip(tools, policies, strict=True):
            outline = self._choose_name(tool, spec)
            timeout = tool.timeout if spec is None or spec.timeout is None else spec.timeout
            own_tool = _get_own_tool(tool)
            failure_when: Mapping[str, Any] = {}
            if spec is not None and spec.tool_type != "http":  # see `HttpTool`
                failure_when = spec.failure_when or getattr(getattr(own_tool, "spec", None), "failure_when", {})
            traits = get_traits(own_tool, spec)
            registered_tool = RegisteredTool(tool, outline, entry, timeout, policy, traits, failure_when)
            entry.tools.append(registered_tool)
            self.tools_by_name[outline.name] = self._tools_by_id[tool.tool_id] = registered_tool
        self.entries[entry.tool_id] = entry
        self._invalidate_caches()
        if self._index is not None and entry.state.enabled:
            self._add_to_index(entry.tools)

    def remove(self, tool_id: str) -> RegistryEntry | None:
        """Remove and return an entry, None if there is no such one. Its running calls go on."""
        entry = self.entries.pop(tool_id, None)
        if entry is None:
            return None
        for tool in entry.tools:
            del self.tools_by_name[tool.name]
            del self._tools_by_id[tool.tool_id]
            if self._index is not None:
                self._index.remove(tool)
        self._invalidate_caches()
        return entry

    def set_enabled(self, entry: RegistryEntry, enabled: bool) -> None:
        """Enable or disable an entry."""
        if entry.state.enabled == enabled:
            return
        entry.state.enabled = enabled
        self._invalidate_caches()
        if self._index is None:
            return
        if enabled:
            self._add_to_index(entry.tools)
            return
        for tool in entry.tools:
            self._index.remove(tool)

    @property
    def enabled_tools(self) -> list[RegisteredTool]:
        """The tools of enabled entries, in the order they were added."""
        return [tool for entry in self.entries.values() if entry.state.enabled for tool in entry.tools]

    @functools.cached_property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The definitions of the enabled tools: the same object until something changes."""
        return tuple(tool.definition for tool in self.enabled_tools)

    @functools.cached_property
    def min_definition_tokens(self) -> int:
        """A lower bound of `definition_tokens`, for which no definition is made."""
        return sum(tool.outline.count_min_bytes() for tool in self.enabled_tools) // 4

    @functools.cached_property
    def definition_tokens(self) -> int:
        """The approximate number of tokens of the definitions: a quarter of their bytes."""
        return sum(map(count_definition_bytes, self.definitions)) // 4

    def find_tool(self, name: str) -> RegisteredTool | None:
        """Return the enabled tool with this name, else with this id, else the only one that a misspelled name can mean."""
        tool = (
            self.tools_by_name.get(name)
            or self._tools_by_id.get(name)
            or self._tools_by_normalized_name.get(normalize_name(name))
        )
        return tool if tool is not None and tool.entry.state.enabled else None

    def find_action(self, tool_id: str, action: str) -> RegisteredTool | None:
        """Return the enabled tool with exactly this id and action; `action` is "" for the only tool of a spec."""
        tool = self._tools_by_id.get(f"{tool_id}.{action}" if action else tool_id)
        return tool if tool is not None and tool.entry.state.enabled else None

    def find_owner(self, tool_id: str) -> RegistryEntry | None:
        """Return the entry of the tool with exactly this id."""
        tool = self._tools_by_id.get(tool_id)
        return None if tool is None else tool.entry

    @property
    def index(self) -> SearchIndex[RegisteredTool]:
        """The search index, built on first use and updated with each change."""
        if self._index is None:
            self._index = SearchIndex()
            self._add_to_index(self.enabled_tools)
        return self._index

    def _choose_name(self, tool: Tool, spec: "AnyToolSpec | None") -> ToolOutline:
        """Return the tool's outline under the first free name: the spec's, the tool's own, or a hashed one.

        A name never changes afterwards, since models may know it. One that is the id of another tool is not free, except
        where that tool has a hashed name, so that the tool that had the name first can be replaced.
        """
        if tool.tool_id in self._tools_by_id:
            raise ToolRegistrationError(f"There is already a tool named {tool.tool_id!r}. Give this one another name.")
        outline = get_outline(tool)
        spec_name = spec.name if spec is not None and tool.tool_id == spec.tool_id else ""
        free_names = (name for name in (spec_name, outline.name) if self._is_free(name))
        name = next(free_names, "") or to_hashed_name(tool.tool_id)
        return outline if name == outline.name else replace(outline, name=name)

    def _is_free(self, name: str) -> bool:
        is_safe = SAFE_NAME_PATTERN.match(name) is not None
        tool = self._tools_by_id.get(name)
        is_id = tool is not None and tool.name != to_hashed_name(name)
        return is_safe and not (is_id or name in self.tools_by_name or name in RESERVED_NAMES)

    @functools.cached_property
    def _tools_by_normalized_name(self) -> dict[str, RegisteredTool | None]:
        """The tools by what a misspelled name can mean, None for an ambiguous one."""
        tools: dict[str, RegisteredTool | None] = {}
        for tool in self.tools_by_name.values():
            for alias in {normalize_name(tool.name), normalize_name(tool.tool_id)}:
                tools[alias] = None if alias in tools else tool
        for tool in self.tools_by_name.values():
            for name in getattr(tool.tool, "aliases", ()):
                tools.setdefault(normalize_name(name), tool)
        return tools

    def _invalidate_caches(self) -> None:
        self.version += 1
        for name in ("definitions", "min_definition_tokens", "definition_tokens", "_tools_by_normalized_name"):
            self.__dict__.pop(name, None)

    def _add_to_index(self, tools: Sequence[RegisteredTool]) -> None:
        assert self._index is not None
        for tool in tools:
            self._index.add(tool, _get_search_texts(tool))


def count_definition_bytes(definition: ToolDefinition) -> int:
    """Return the size of a definition as JSON."""
    return len(definition.name) + len(definition.description) + len(dump_json(definition.parameters, default=str))


def create_policy(spec: "AnyToolSpec", tool: Tool) -> CallPolicy | None:
    """Return the rules for each call of a tool; None for a function without rules.

    Rules that the spec does not set are those of the tool's own spec, which a decorated function has. Approval is needed
    if one of the two says so.
    """
    own_spec = getattr(tool, "spec", None) or spec
    rate_limit = spec.rate_limit or own_spec.rate_limit
    limited_id = spec.tool_id if spec.rate_limit else tool.tool_id
    rate_limits = () if rate_limit is None else ((limited_id, rate_limit),)
    needs_approval = spec.needs_approval or own_spec.needs_approval
    cache_seconds = spec.cache_seconds or own_spec.cache_seconds
    if spec.tool_type == "function" and not (rate_limits or needs_approval or cache_seconds):
        return None
    return CallPolicy(needs_approval, rate_limits, cache_seconds)


def summarize_tool(tool: RegisteredTool) -> str:
    """Return the words of a tool's id, its display name and the first paragraph of its description."""
    spec = tool.entry.declared_spec
    name = split_camel_case(_SEPARATORS.sub(" ", tool.tool_id))
    display_name = "" if spec is None or spec.display_name == tool.tool_id else spec.display_name
    return f"{name} {display_name}".strip() + ": " + tool.outline.description.strip().partition("\n\n")[0]


def _get_search_texts(tool: RegisteredTool) -> list[tuple[str, float]]:
    """Return the texts that a tool is found by, each with its weight."""
    outline = tool.outline
    texts = [(tool.tool_id, 3.0), (outline.description, 1.0)]
    texts.append((" ".join(getattr(tool.tool, "keywords", ())), 2.0))
    spec = tool.entry.declared_spec
    if spec is not None:
        texts += [(f"{spec.name} {spec.display_name}", 3.0), (" ".join(spec.tags), 2.0)]
        texts.append((f"{spec.category} {spec.subcategory}", 0.5))
        if spec.description != outline.description:
            texts.append((spec.description, 1.0))
        texts += [
            (f"{capability.description} {capability.category}", 1.0)
            for capability in spec.capabilities
            if capability.name == tool.action
        ]
    for name, description in outline.parameters.items():
        texts += [(name, 0.5), (description, 0.3)]
    return texts


def _spec_from_tool(tool_id: str, tool: Tool) -> "AnyToolSpec":
    """Return a spec for a tool that was registered in code without one."""
    from opposable.domain.specs import Capability, FunctionToolSpec  # lazy: pydantic

    definition, function = tool.definition, getattr(tool, "function", None)
    capability = Capability(name=tool_id, description=definition.description, parameters=definition.parameters)
    return FunctionToolSpec(
        tool_id=tool_id,
        description=definition.description,
        capabilities=(capability,),
        timeout=tool.timeout,
        module_path=getattr(function, "__module__", None) or type(tool).__module__,
        class_name="" if function else type(tool).__name__,
        function_name=getattr(function, "__name__", "") if function else "",
        mode="streamable" if getattr(tool, "streams", False) else "invokable",
    )
