"""What is registered: entries by their ids, tools by the names models know."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from opposable.domain.call_context import CallContext
from opposable.domain.errors import BadInput, ToolRegistrationError
from opposable.domain.tools import FailureKind, ToolDefinition
from opposable.tools.argument_validation import ValidateArguments, compile_validator
from opposable.tools.base import Tool
from opposable.tools.circuit_breaker import CircuitBreaker
from opposable.tools.tool_names import SAFE_NAME_PATTERN, normalize_name, to_hashed_name
from opposable.tools.tool_search import SearchIndex

if TYPE_CHECKING:  # see tools/base.py
    from opposable.domain.specs import AnyToolSpec, RateLimit

TOOL_ID_PATTERN = re.compile(r"[\w.\-]{1,100}")

RESERVED_NAMES = frozenset({"search_tools", "read_result"})
"""Names of the library's own tools; one of an owner's that is called so gets a marked name."""


@dataclass(slots=True, eq=False)
class ToolState:
    """How a tool has done, and whether it may be called: one for all views of it.

    `seconds` is the wall time of all calls together.
    """

    enabled: bool = True
    calls: int = 0
    total_seconds: float = 0.0
    failures: dict[FailureKind, int] = field(default_factory=dict)
    last_failure: str = ""
    circuit_breaker: CircuitBreaker | None = None


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """What a spec asks for around each call.

    `limits` are allowances by key; all must have room. `variant` tells results of a binding that differs from those of
    the tool itself.
    """

    needs_approval: bool = False
    rate_limits: "tuple[tuple[str, RateLimit], ...]" = ()
    idempotent: bool = False
    cache_seconds: float = 0.0
    cache_variant: str = ""


@dataclass(slots=True, eq=False)
class RegistryEntry:
    """A spec and the tools made from it. The spec of a tool that was registered in code is made when it is asked for."""

    tool_id: str
    state: ToolState
    declared_spec: "AnyToolSpec | None"
    tools: "list[RegisteredTool]" = field(default_factory=list)

    @property
    def spec(self) -> "AnyToolSpec":
        """The spec; its `enabled` is as the tool stands now."""
        spec = self.declared_spec or _spec_from_tool(self.tool_id, self.tools[0].tool)
        if spec.enabled != self.state.enabled:
            spec = spec.model_copy(update={"enabled": self.state.enabled})
        self.declared_spec = spec
        return spec


@dataclass(slots=True, eq=False)
class RegisteredTool:
    """One tool as it can be called, and itself a tool: with the definition that models are told here.

    `policy` is None for a plain one.
    """

    tool: Tool
    definition: ToolDefinition
    entry: RegistryEntry
    timeout: float | None
    policy: CallPolicy | None
    _schema_check: ValidateArguments | None = field(default=None, init=False, repr=False)

    @property
    def tool_id(self) -> str:
        """The tool's."""
        return self.tool.tool_id

    @property
    def action(self) -> str:
        """The action's own name; "" where the tool has but one."""
        return self.tool.tool_id[len(self.entry.tool_id) + 1 :]

    @property
    def streams(self) -> bool:
        """Whether it reports pieces as they come."""
        spec = self.entry.declared_spec
        return bool(getattr(self.tool, "streams", False)) or (spec is not None and spec.mode == "streamable")

    @property
    def effective_tool(self) -> Tool:
        """The tool, or this where models know the tool by another definition than its own."""
        return self.tool if self.definition is self.tool.definition else self

    def check(self, arguments: dict[str, Any]) -> None:
        """Do nothing where the arguments fit, or the tool cannot tell yet. Raises: `InvalidArguments`."""
        check = getattr(self.tool, "check", None)
        if check is not None:
            check(arguments)

    def validate(self, arguments: dict[str, Any]) -> None:
        """Validate by the tool's own `check`, else by its JSON Schema. Raises: `InvalidArguments`."""
        if getattr(self.tool, "check", None) is not None:
            self.check(arguments)
            return
        if self._schema_check is None:
            try:
                self._schema_check = compile_validator(self.definition.parameters)
            except BadInput:  # a schema that cannot be compiled rejects nothing
                self._schema_check = _accept_all
        self._schema_check(arguments)

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Run the tool. Raises: as it does."""
        return await self.tool.run(arguments, context)


def _accept_all(arguments: dict[str, Any]) -> None:
    """Accept any arguments."""


class Registry:
    """Entries and their tools. `version` grows with each change."""

    def __init__(self) -> None:
        self.version = 0
        self.entries: dict[str, RegistryEntry] = {}
        self.tools_by_name: dict[str, RegisteredTool] = {}
        self._tools_by_id: dict[str, RegisteredTool] = {}
        self._tools_by_normalized_name: dict[str, RegisteredTool | None] | None = (
            None  # None in it: two fold to the same, so neither is meant
        )
        self._definitions: tuple[ToolDefinition, ...] | None = None
        self._definition_tokens: int | None = None
        self._index: SearchIndex[RegisteredTool] | None = None

    def get_current_registry(self) -> "Registry":
        """This one: it is always up to date."""
        return self

    def add(self, entry: RegistryEntry, tools: Iterable[Tool], policy: CallPolicy | None = None) -> None:
        """Add an entry with its tools. Raises: `ToolRegistrationError` where its id or an id of a tool is taken."""
        if entry.tool_id in self.entries:
            raise ToolRegistrationError(
                f"There is a tool named {entry.tool_id!r} already; give this one another name, or replace that one."
            )
        spec = entry.declared_spec
        for tool in tools:
            definition = self._choose_definition(tool, spec)
            limit = tool.timeout if spec is None or spec.timeout is None else spec.timeout
            entry.tools.append(RegisteredTool(tool, definition, entry, limit, policy))
            self.tools_by_name[definition.name] = self._tools_by_id[tool.tool_id] = entry.tools[-1]
        self.entries[entry.tool_id] = entry
        self._invalidate_caches()
        if self._index is not None and entry.state.enabled:
            self._add_to_index(entry.tools)

    def remove(self, tool_id: str) -> RegistryEntry | None:
        """Take an entry out; calls of it that run go on. None where there is none."""
        entry = self.entries.pop(tool_id, None)
        if entry is None:
            return None
        for slot in entry.tools:
            del self.tools_by_name[slot.definition.name]
            del self._tools_by_id[slot.tool_id]
            if self._index is not None:
                self._index.remove(slot)
        self._invalidate_caches()
        return entry

    def set_enabled(self, entry: RegistryEntry, enabled: bool) -> None:
        """Turn an entry on or off."""
        if entry.state.enabled == enabled:
            return
        entry.state.enabled = enabled
        self._invalidate_caches()
        if self._index is not None:
            if enabled:
                self._add_to_index(entry.tools)
            else:
                for slot in entry.tools:
                    self._index.remove(slot)

    @property
    def enabled_tools(self) -> list[RegisteredTool]:
        """The tools that are on, in the order they were added."""
        return [slot for entry in self.entries.values() if entry.state.enabled for slot in entry.tools]

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What a model is told of the tools that are on: the same object until something changes."""
        if self._definitions is None:
            self._definitions = tuple(slot.definition for slot in self.enabled_tools)
        return self._definitions

    @property
    def definition_tokens(self) -> int:
        """About how many tokens the definitions take: a quarter of their bytes."""
        if self._definition_tokens is None:
            self._definition_tokens = sum(map(count_definition_bytes, self.definitions)) // 4
        return self._definition_tokens

    def find_tool(self, name: str) -> RegisteredTool | None:
        """The tool meant by `name`: its name, its id, or either as models miswrite it, where only one can be meant."""
        found = (
            self.tools_by_name.get(name)
            or self._tools_by_id.get(name)
            or self._get_tools_by_normalized_name().get(normalize_name(name))
        )
        return found if found is not None and found.entry.state.enabled else None

    def find_action(self, tool_id: str, action: str) -> RegisteredTool | None:
        """The tool of exactly this id and action ("" for the tool that is its only one)."""
        found = self._tools_by_id.get(f"{tool_id}.{action}" if action else tool_id)
        return found if found is not None and found.entry.state.enabled else None

    def find_owner(self, tool_id: str) -> RegistryEntry | None:
        """The entry that a tool's exact id belongs to."""
        slot = self._tools_by_id.get(tool_id)
        return None if slot is None else slot.entry

    @property
    def index(self) -> SearchIndex[RegisteredTool]:
        """The search index: made when it is first asked for, kept up from then on."""
        if self._index is None:
            self._index = SearchIndex()
            self._add_to_index(self.enabled_tools)
        return self._index

    def _choose_definition(self, tool: Tool, spec: "AnyToolSpec | None") -> ToolDefinition:
        """The tool's definition, under the spec's name, and under one of its own where that is no safe one or taken."""
        if tool.tool_id in self._tools_by_id:
            raise ToolRegistrationError(f"There is a tool named {tool.tool_id!r} already; give this one another name.")
        own = tool.definition
        wanted = spec.name if spec is not None and tool.tool_id == spec.tool_id else ""
        name = next((one for one in (wanted, own.name) if self._is_free(one)), "") or to_hashed_name(tool.tool_id)
        return own if name == own.name else ToolDefinition(name, own.description, own.parameters)

    def _is_free(self, name: str) -> bool:
        return (
            SAFE_NAME_PATTERN.match(name) is not None and name not in self.tools_by_name and name not in RESERVED_NAMES
        )

    def _get_tools_by_normalized_name(self) -> dict[str, RegisteredTool | None]:
        if self._tools_by_normalized_name is None:
            self._tools_by_normalized_name = {}
            for slot in self.tools_by_name.values():
                for alias in {normalize_name(slot.definition.name), normalize_name(slot.tool_id)}:
                    self._tools_by_normalized_name[alias] = None if alias in self._tools_by_normalized_name else slot
        return self._tools_by_normalized_name

    def _invalidate_caches(self) -> None:
        self.version += 1
        self._tools_by_normalized_name = self._definitions = self._definition_tokens = None

    def _add_to_index(self, tools: Sequence[RegisteredTool]) -> None:
        assert self._index is not None
        for slot in tools:
            self._index.add(slot, _get_search_texts(slot))


def count_definition_bytes(definition: ToolDefinition) -> int:
    """The bytes of a definition as JSON."""
    return len(definition.name) + len(definition.description) + len(orjson.dumps(definition.parameters, default=str))


def policy_from_spec(spec: "AnyToolSpec", cache_variant: str = "") -> CallPolicy | None:
    """What a spec asks for around each call; None where it asks for nothing."""
    limits = () if spec.rate_limit is None else ((spec.tool_id, spec.rate_limit),)
    if spec.tool_type == "function" and not (limits or spec.needs_approval or spec.idempotent):
        return None
    cached = spec.cache_seconds if spec.idempotent else 0.0
    return CallPolicy(spec.needs_approval, limits, spec.idempotent, cached, cache_variant)


def _get_search_texts(tool: RegisteredTool) -> list[tuple[str, float]]:
    """What a tool is found by, with weights."""
    texts = [(tool.tool_id, 3.0), (tool.definition.description, 1.0)]
    spec = tool.entry.declared_spec
    if spec is not None:
        texts += [(f"{spec.name} {spec.display_name}", 3.0), (" ".join(spec.tags), 2.0)]
        texts.append((f"{spec.category} {spec.subcategory}", 0.5))
        if spec.description != tool.definition.description:
            texts.append((spec.description, 1.0))
        texts += [(f"{one.description} {one.category}", 1.0) for one in spec.capabilities if one.name == tool.action]
    for name, about in tool.definition.parameters.get("properties", {}).items():
        texts.append((name, 0.5))
        if isinstance(about, dict):
            texts.append((str(about.get("description", "")), 0.3))
    return texts


def _spec_from_tool(tool_id: str, tool: Tool) -> "AnyToolSpec":
    """The spec of a tool that was registered in code without one."""
    from opposable.domain.specs import Capability, FunctionToolSpec

    told, function = tool.definition, getattr(tool, "function", None)
    return FunctionToolSpec(
        tool_id=tool_id,
        description=told.description,
        capabilities=(Capability(name=tool_id, description=told.description, parameters=told.parameters),),
        timeout=tool.timeout,
        module_path=getattr(function, "__module__", None) or type(tool).__module__,
        class_name="" if function else type(tool).__name__,
        function_name=getattr(function, "__name__", "") if function else "",
        mode="streamable" if getattr(tool, "streams", False) else "invokable",
    )
