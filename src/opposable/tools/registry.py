"""What is registered: entries by their ids, tools by the names models know."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from opposable.domain.call_context import CallContext
from opposable.domain.errors import ToolRegistrationError
from opposable.domain.tools import FailureKind, ToolDefinition
from opposable.tools.base import Tool
from opposable.tools.circuit_breaker import Breaker
from opposable.tools.tool_names import SAFE, folded, marked_name
from opposable.tools.tool_search import Index

if TYPE_CHECKING:  # see tools/base.py
    from opposable.domain.specs import AnyToolSpec, RateLimit

ID = re.compile(r"[\w.\-]{1,100}")

RESERVED = frozenset({"search_tools", "read_result"})
"""Names of the library's own tools; one of an owner's that is called so gets a marked name."""


@dataclass(slots=True, eq=False)
class Service:
    """How a tool has done, and whether it may be called: one for all views of it.

    `seconds` is the wall time of all calls together.
    """

    enabled: bool = True
    calls: int = 0
    seconds: float = 0.0
    failures: dict[FailureKind, int] = field(default_factory=dict)
    last_failure: str = ""
    breaker: Breaker | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """What a spec asks for around each call.

    `limits` are allowances by key; all must have room. `variant` tells results of a binding that differs from those of
    the tool itself.
    """

    approval: bool = False
    limits: "tuple[tuple[str, RateLimit], ...]" = ()
    idempotent: bool = False
    cache_seconds: float = 0.0
    variant: str = ""


@dataclass(slots=True, eq=False)
class Entry:
    """A spec and the tools made from it. The spec of a tool that was registered in code is made when it is asked for."""

    tool_id: str
    service: Service
    given: "AnyToolSpec | None"
    slots: "list[Slot]" = field(default_factory=list)

    @property
    def spec(self) -> "AnyToolSpec":
        """The spec; its `enabled` is as the tool stands now."""
        spec = self.given or _bare_spec(self.tool_id, self.slots[0].tool)
        if spec.enabled != self.service.enabled:
            spec = spec.model_copy(update={"enabled": self.service.enabled})
        self.given = spec
        return spec


@dataclass(slots=True, eq=False)
class Slot:
    """One tool as it can be called, and itself a tool: with the definition that models are told here.

    `policy` is None for a plain one.
    """

    tool: Tool
    definition: ToolDefinition
    entry: Entry
    timeout: float | None
    policy: Policy | None

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
        spec = self.entry.given
        return bool(getattr(self.tool, "streams", False)) or (spec is not None and spec.mode == "streamable")

    @property
    def offered(self) -> Tool:
        """The tool, or this where models know the tool by another definition than its own."""
        return self.tool if self.definition is self.tool.definition else self

    def check(self, arguments: dict[str, Any]) -> None:
        """Do nothing where the arguments fit, or the tool cannot tell yet. Raises: `InvalidArguments`."""
        check = getattr(self.tool, "check", None)
        if check is not None:
            check(arguments)

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Run the tool. Raises: as it does."""
        return await self.tool.run(arguments, context)


class Catalogue:
    """Entries and their tools. `version` grows with each change."""

    def __init__(self) -> None:
        self.version = 0
        self.entries: dict[str, Entry] = {}
        self.by_name: dict[str, Slot] = {}
        self._by_id: dict[str, Slot] = {}
        self._by_folded: dict[str, Slot | None] | None = None  # None in it: two fold to the same, so neither is meant
        self._definitions: tuple[ToolDefinition, ...] | None = None
        self._tokens: int | None = None
        self._index: Index[Slot] | None = None

    def current(self) -> "Catalogue":
        """This one: it is always up to date."""
        return self

    def add(self, entry: Entry, tools: Iterable[Tool], policy: Policy | None = None) -> None:
        """Add an entry with its tools. Raises: `ToolRegistrationError` where its id or an id of a tool is taken."""
        if entry.tool_id in self.entries:
            raise ToolRegistrationError(
                f"There is a tool named {entry.tool_id!r} already; give this one another name, or replace that one."
            )
        spec = entry.given
        for tool in tools:
            definition = self._named(tool, spec)
            limit = tool.timeout if spec is None or spec.timeout is None else spec.timeout
            entry.slots.append(Slot(tool, definition, entry, limit, policy))
            self.by_name[definition.name] = self._by_id[tool.tool_id] = entry.slots[-1]
        self.entries[entry.tool_id] = entry
        self._changed()
        if self._index is not None and entry.service.enabled:
            self._indexed(entry.slots)

    def remove(self, tool_id: str) -> Entry | None:
        """Take an entry out; calls of it that run go on. None where there is none."""
        entry = self.entries.pop(tool_id, None)
        if entry is None:
            return None
        for slot in entry.slots:
            del self.by_name[slot.definition.name]
            del self._by_id[slot.tool_id]
            if self._index is not None:
                self._index.remove(slot)
        self._changed()
        return entry

    def switch(self, entry: Entry, enabled: bool) -> None:
        """Turn an entry on or off."""
        if entry.service.enabled == enabled:
            return
        entry.service.enabled = enabled
        self._changed()
        if self._index is not None:
            if enabled:
                self._indexed(entry.slots)
            else:
                for slot in entry.slots:
                    self._index.remove(slot)

    @property
    def slots(self) -> list[Slot]:
        """The tools that are on, in the order they were added."""
        return [slot for entry in self.entries.values() if entry.service.enabled for slot in entry.slots]

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What a model is told of the tools that are on: the same object until something changes."""
        if self._definitions is None:
            self._definitions = tuple(slot.definition for slot in self.slots)
        return self._definitions

    @property
    def tokens(self) -> int:
        """About how many tokens the definitions take: a quarter of their bytes."""
        if self._tokens is None:
            self._tokens = sum(map(size_of, self.definitions)) // 4
        return self._tokens

    def slot(self, name: str) -> Slot | None:
        """The tool meant by `name`: its name, its id, or either as models miswrite it, where only one can be meant."""
        found = self.by_name.get(name) or self._by_id.get(name) or self._folds().get(folded(name))
        return found if found is not None and found.entry.service.enabled else None

    def action(self, tool_id: str, action: str) -> Slot | None:
        """The tool of exactly this id and action ("" for the tool that is its only one)."""
        found = self._by_id.get(f"{tool_id}.{action}" if action else tool_id)
        return found if found is not None and found.entry.service.enabled else None

    def owner(self, tool_id: str) -> Entry | None:
        """The entry that a tool's exact id belongs to."""
        slot = self._by_id.get(tool_id)
        return None if slot is None else slot.entry

    @property
    def index(self) -> Index[Slot]:
        """The search index: made when it is first asked for, kept up from then on."""
        if self._index is None:
            self._index = Index()
            self._indexed(self.slots)
        return self._index

    def _named(self, tool: Tool, spec: "AnyToolSpec | None") -> ToolDefinition:
        """The tool's definition, under the spec's name, and under one of its own where that is no safe one or taken."""
        if tool.tool_id in self._by_id:
            raise ToolRegistrationError(f"There is a tool named {tool.tool_id!r} already; give this one another name.")
        own = tool.definition
        wanted = spec.name if spec is not None and tool.tool_id == spec.tool_id else ""
        name = next((one for one in (wanted, own.name) if self._is_free(one)), "") or marked_name(tool.tool_id)
        return own if name == own.name else ToolDefinition(name, own.description, own.parameters)

    def _is_free(self, name: str) -> bool:
        return SAFE.match(name) is not None and name not in self.by_name and name not in RESERVED

    def _folds(self) -> dict[str, Slot | None]:
        if self._by_folded is None:
            self._by_folded = {}
            for slot in self.by_name.values():
                for alias in {folded(slot.definition.name), folded(slot.tool_id)}:
                    self._by_folded[alias] = None if alias in self._by_folded else slot
        return self._by_folded

    def _changed(self) -> None:
        self.version += 1
        self._by_folded = self._definitions = self._tokens = None

    def _indexed(self, slots: Sequence[Slot]) -> None:
        assert self._index is not None
        for slot in slots:
            self._index.add(slot, _texts(slot))


def size_of(definition: ToolDefinition) -> int:
    """The bytes of a definition as JSON."""
    return len(definition.name) + len(definition.description) + len(orjson.dumps(definition.parameters, default=str))


def policy_of(spec: "AnyToolSpec", variant: str = "") -> Policy | None:
    """What a spec asks for around each call; None where it asks for nothing."""
    limits = () if spec.rate_limit is None else ((spec.tool_id, spec.rate_limit),)
    if spec.tool_type == "function" and not (limits or spec.needs_approval or spec.idempotent):
        return None
    cached = spec.cache_seconds if spec.idempotent else 0.0
    return Policy(spec.needs_approval, limits, spec.idempotent, cached, variant)


def _texts(slot: Slot) -> list[tuple[str, float]]:
    """What a tool is found by, with weights."""
    texts = [(slot.tool_id, 3.0), (slot.definition.description, 1.0)]
    spec = slot.entry.given
    if spec is not None:
        texts += [(f"{spec.name} {spec.display_name}", 3.0), (" ".join(spec.tags), 2.0)]
        texts.append((f"{spec.category} {spec.subcategory}", 0.5))
        if spec.description != slot.definition.description:
            texts.append((spec.description, 1.0))
        texts += [(f"{one.description} {one.category}", 1.0) for one in spec.capabilities if one.name == slot.action]
    for name, about in slot.definition.parameters.get("properties", {}).items():
        texts.append((name, 0.5))
        if isinstance(about, dict):
            texts.append((str(about.get("description", "")), 0.3))
    return texts


def _bare_spec(tool_id: str, tool: Tool) -> "AnyToolSpec":
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
