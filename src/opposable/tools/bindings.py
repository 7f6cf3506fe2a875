"""The tools of one agent: a view of a registry in which bindings change parts of the specs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opposable.domain.errors import BadInput
from opposable.domain.records import canonical_sha256
from opposable.tools.base import Tool
from opposable.tools.registry import CallPolicy, RegisteredTool, Registry, RegistryEntry
from opposable.tools.spec_registration import register_tool

if TYPE_CHECKING:  # pydantic is loaded only where specs are used
    from opposable.domain.specs import AgentToolBinding, AnyToolSpec

BuildTools = Callable[["AnyToolSpec"], Sequence[Tool]]
"""Creates the tools of a spec. Raises: `BadInput`."""


class BoundRegistry:
    """The bound tools of a registry, rebuilt when the registry has changed.

    The state of the tools is shared with the registry: health, circuit breakers, rate limits and cached results.
    Bindings may also name `own_tools`, which are in no other registry.
    """

    def __init__(
        self,
        source: "Registry | BoundRegistry",
        bindings: "Sequence[AgentToolBinding]",
        build_tools: BuildTools | None,
        own_tools: Sequence[Tool] = (),
    ) -> None:
        self._source = source
        self._own_registry = Registry()
        for tool in own_tools:
            register_tool(self._own_registry, tool)
        self._bindings = tuple(bindings)
        self._build_tools = build_tools
        self._source_version: tuple[Registry, int] | None = None
        self._registry = Registry()
        self._bound_entries: dict[str, _BoundEntry] = {}
        self._rejected_bindings: dict[str, str] = {}

    @property
    def rejected_bindings(self) -> dict[str, str]:
        """The ids of bindings that cannot be used, each with the reason."""
        self.get_current_registry()
        return dict(self._rejected_bindings)

    def get_current_registry(self) -> Registry:
        """Return the registry of the bound tools, up to date with the source."""
        source = self._source.get_current_registry()
        if self._source_version != (source, source.version):
            self._source_version = (source, source.version)
            self._rebuild(source)
        return self._registry

    def _rebuild(self, source: Registry) -> None:
        registry = Registry()
        bound_entries: dict[str, _BoundEntry] = {}
        rejected: dict[str, str] = {}
        for binding in self._bindings:
            if not binding.enabled:
                continue
            parent = self._own_registry.entries.get(binding.tool_id) or source.entries.get(binding.tool_id)
            if parent is None:
                rejected[binding.tool_id] = f"There is no enabled tool named {binding.tool_id!r}. Add or enable it."
                continue
            try:
                bound = self._bound_entries.get(binding.tool_id)
                if bound is None or bound.parent is not parent:
                    bound = _apply_binding(parent, binding.config, self._build_tools)
                entry = RegistryEntry(parent.tool_id, parent.state, bound.spec, serial=parent.serial)
                registry.add(entry, bound.tools, bound.policies)
                bound_entries[binding.tool_id] = bound
            except BadInput as error:
                rejected[binding.tool_id] = str(error)
        self._registry, self._bound_entries, self._rejected_bindings = registry, bound_entries, rejected


@dataclass(frozen=True, slots=True)
class _BoundEntry:
    """The result of applying a binding to an entry."""

    parent: RegistryEntry
    tools: Sequence[Tool]
    policies: Sequence[CallPolicy | None]
    spec: "AnyToolSpec | None"


def _apply_binding(parent: RegistryEntry, config: Mapping[str, Any], build_tools: BuildTools | None) -> _BoundEntry:
    """Return an entry's tools, policies and spec with `config` merged into the spec. Raises: `BadInput`."""
    tools = parent.tools
    if not config:
        return _BoundEntry(parent, _get_effective_tools(tools), [tool.policy for tool in tools], parent.declared_spec)
    from opposable.domain.specs import ToolSpec  # lazy: pydantic

    spec = merge_config(parent.spec, config)
    policies = {tool.tool_id: _bind_policy(tool, spec, config) for tool in tools}
    # The library applies the fields of every spec, but `HttpTool` applies `failure_when` to the whole body.
    own_fields = {"failure_when"} if spec.tool_type == "http" else set()
    if not (ToolSpec.model_fields.keys() - own_fields).issuperset(config):
        if build_tools is None:
            raise BadInput(f"The binding of {spec.tool_id} changes how its tools are made, which is not possible here.")
        bound_tools = [tool for tool in build_tools(spec) if tool.tool_id in policies]
    else:
        if "capabilities" in config:
            names = {capability.name for capability in spec.capabilities}
            tools = [tool for tool in tools if (tool.action or spec.tool_id) in names]
        bound_tools = _get_effective_tools(tools)
        if "description" in config and len(tools) == 1:
            bound_tools = [replace(tools[0], outline=replace(tools[0].outline, description=spec.description))]
    return _BoundEntry(parent, bound_tools, [policies[tool.tool_id] for tool in bound_tools], spec)


def _get_effective_tools(tools: Sequence[RegisteredTool]) -> list[Tool]:
    return [tool.effective_tool for tool in tools]


def _bind_policy(tool: RegisteredTool, spec: "AnyToolSpec", config: Mapping[str, Any]) -> CallPolicy | None:
    """Return a tool's policy with the rules that a binding sets. Its rate limit applies in addition to the tool's own."""
    variant = canonical_sha256(config)[:16]
    changes = {name: getattr(spec, name) for name in ("needs_approval", "cache_seconds") if name in config}
    policy = replace(tool.policy or CallPolicy(), cache_variant=variant, **changes)
    if "rate_limit" in config and spec.rate_limit != tool.entry.spec.rate_limit:
        own_limits = () if spec.rate_limit is None else ((f"{spec.tool_id}@{variant}", spec.rate_limit),)
        policy = replace(policy, rate_limits=own_limits and (*own_limits, *policy.rate_limits))
    return None if tool.policy is None and policy == CallPolicy(cache_variant=variant) else policy


def merge_config(spec: "AnyToolSpec", config: Mapping[str, Any]) -> "AnyToolSpec":
    """Return a spec with parts replaced; objects are merged field by field.

    Raises:
        BadInput: The result is not a valid spec; the message names the fields.
    """
    from pydantic import ValidationError  # lazy: loaded with the first spec

    from opposable.domain.validation_problems import describe_problems  # lazy: see above

    fixed = [key for key in ("tool_id", "tool_type") if config.get(key, getattr(spec, key)) != getattr(spec, key)]
    if fixed:
        raise BadInput(f"A binding cannot change {' or '.join(fixed)} of {spec.tool_id}.")
    try:
        return type(spec).model_validate(_merge_mappings(spec.model_dump(), config))
    except ValidationError as error:
        problems = describe_problems(error, type(spec))
        raise BadInput(f"The binding of {spec.tool_id} does not fit its spec: {problems}") from error


def _merge_mappings(base: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in config.items():
        current = merged.get(key)
        if isinstance(current, Mapping) and isinstance(value, Mapping):
            merged[key] = _merge_mappings(current, value)
        else:
            merged[key] = value
    return merged
