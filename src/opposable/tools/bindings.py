"""The tools one agent has: a view of a catalogue, with parts of the specs replaced."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson

from opposable.domain.errors import BadInput
from opposable.domain.tools import ToolDefinition
from opposable.tools.base import Tool
from opposable.tools.registry import CallPolicy, RegisteredTool, Registry, RegistryEntry, policy_from_spec

if TYPE_CHECKING:  # see tools/base.py
    from opposable.domain.specs import AgentToolBinding, AnyToolSpec

BuildTools = Callable[["AnyToolSpec"], Sequence[Tool]]
"""Makes the tools of a spec. Raises: `BadInput`."""


class BoundRegistry:
    """The bound tools of a catalogue, made anew when that has changed.

    `set_aside` names the bindings that cannot be had, with the reason. Health, circuits, allowances and kept results
    are those of the catalogue's own entries.
    """

    def __init__(
        self, source: "Registry | BoundRegistry", bindings: "Sequence[AgentToolBinding]", build_tools: BuildTools | None
    ) -> None:
        self._source = source
        self._bindings = tuple(bindings)
        self._build_tools = build_tools
        self._source_version: tuple[Registry, int] | None = None
        self._registry = Registry()
        self._bound_entries: dict[str, _BoundEntry] = {}
        self._rejected_bindings: dict[str, str] = {}

    @property
    def rejected_bindings(self) -> dict[str, str]:
        """The ids of bindings that cannot be had, each with the reason."""
        self.get_current_registry()
        return dict(self._rejected_bindings)

    def get_current_registry(self) -> Registry:
        """The bound tools as they are now."""
        source = self._source.get_current_registry()
        if self._source_version != (source, source.version):
            self._source_version = (source, source.version)
            self._rebuild(source)
        return self._registry

    def _rebuild(self, source: Registry) -> None:
        made = Registry()
        kept: dict[str, _BoundEntry] = {}
        problems: dict[str, str] = {}
        for binding in self._bindings:
            if not binding.enabled:
                continue
            parent = source.entries.get(binding.tool_id)
            if parent is None:
                problems[binding.tool_id] = f"There is no tool named {binding.tool_id!r}."
                continue
            try:
                had = self._bound_entries.get(binding.tool_id)
                have = (
                    had
                    if had is not None and had.parent is parent
                    else _apply_binding(parent, binding.config, self._build_tools)
                )
                made.add(RegistryEntry(parent.tool_id, parent.state, have.spec), have.tools, have.policy)
                kept[binding.tool_id] = have
            except BadInput as error:
                problems[binding.tool_id] = str(error)
        self._registry, self._bound_entries, self._rejected_bindings = made, kept, problems


@dataclass(frozen=True, slots=True)
class _BoundEntry:
    """What a binding made of an entry."""

    parent: RegistryEntry
    tools: Sequence[Tool]
    policy: CallPolicy | None
    spec: "AnyToolSpec | None"


def _apply_binding(parent: RegistryEntry, config: Mapping[str, Any], build_tools: BuildTools | None) -> _BoundEntry:
    """An entry's tools, policy and spec with `config` put over its spec. Raises: `BadInput`."""
    own = [slot.effective_tool for slot in parent.tools]
    if not config:
        return _BoundEntry(parent, own, parent.tools[0].policy, parent.declared_spec)
    spec = merge_config(parent.spec, config)
    variant = hashlib.sha256(orjson.dumps(config, default=str, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
    policy = policy_from_spec(spec, variant)
    if policy is not None and spec.rate_limit is not None and spec.rate_limit != parent.spec.rate_limit:
        shared = parent.tools[0].policy
        limits = ((f"{spec.tool_id}@{variant}", spec.rate_limit), *(shared.rate_limits if shared else ()))
        policy = replace(policy, rate_limits=limits)
    if not _get_base_fields().issuperset(config):
        return _BoundEntry(parent, _rebuild_tools(spec, own, build_tools), policy, spec)
    if "capabilities" in config:
        named = {capability.name for capability in spec.capabilities}
        own = [slot.effective_tool for slot in parent.tools if (slot.action or spec.tool_id) in named]
    if "description" in config and len(own) == 1:
        own = [_replace_description(parent.tools[0], spec.description)]
    return _BoundEntry(parent, own, policy, spec)


def merge_config(spec: "AnyToolSpec", config: Mapping[str, Any]) -> "AnyToolSpec":
    """A spec with parts replaced: objects are merged field by field. Raises: `BadInput`, told by field."""
    from pydantic import ValidationError

    fixed = [key for key in ("tool_id", "tool_type") if config.get(key, getattr(spec, key)) != getattr(spec, key)]
    if fixed:
        raise BadInput(f"A binding cannot change {' or '.join(fixed)} of {spec.tool_id}.")
    try:
        return type(spec).model_validate(_merge_mappings(spec.model_dump(), config))
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise BadInput(f"The binding of {spec.tool_id} does not fit its spec: {wrong}") from error


def _merge_mappings(base: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(base)
    for key, value in config.items():
        under = out.get(key)
        out[key] = _merge_mappings(under, value) if isinstance(under, Mapping) and isinstance(value, Mapping) else value
    return out


def _get_base_fields() -> set[str]:
    """What of a spec the library itself heeds: the rest makes another tool."""
    from opposable.domain.specs import ToolSpec

    return set(ToolSpec.model_fields)


def _rebuild_tools(
    spec: "AnyToolSpec", current_tools: Sequence[Tool], build_tools: BuildTools | None
) -> Sequence[Tool]:
    if build_tools is None:
        raise BadInput(f"The binding of {spec.tool_id} asks for another tool, and nothing here can make one.")
    made = build_tools(spec)
    told = {tool.tool_id: tool.definition for tool in current_tools}
    return [tool for tool in made if tool.tool_id in told]


def _replace_description(tool: RegisteredTool, description: str) -> Tool:
    told = tool.definition
    return replace(tool, definition=ToolDefinition(told.name, description, told.parameters))
