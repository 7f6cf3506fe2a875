"""The tools one agent has: a view of a catalogue, with parts of the specs replaced."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson

from opposable.domain.errors import BadInput
from opposable.domain.tools import ToolDefinition
from opposable.tools.base import Tool
from opposable.tools.registry import Catalogue, Entry, Policy, Slot, policy_of

if TYPE_CHECKING:  # see tools/base.py
    from opposable.domain.specs import AgentToolBinding, AnyToolSpec

Make = Callable[["AnyToolSpec"], Sequence[Tool]]
"""Makes the tools of a spec. Raises: `BadInput`."""


class Bound:
    """The bound tools of a catalogue, made anew when that has changed.

    `set_aside` names the bindings that cannot be had, with the reason. Health, circuits, allowances and kept results
    are those of the catalogue's own entries.
    """

    def __init__(self, of: "Catalogue | Bound", bindings: "Sequence[AgentToolBinding]", make: Make | None) -> None:
        self._of = of
        self._bindings = tuple(bindings)
        self._make = make
        self._seen: tuple[Catalogue, int] | None = None
        self._made = Catalogue()
        self._kept: dict[str, _Kept] = {}
        self._set_aside: dict[str, str] = {}

    @property
    def set_aside(self) -> dict[str, str]:
        """The ids of bindings that cannot be had, each with the reason."""
        self.current()
        return dict(self._set_aside)

    def current(self) -> Catalogue:
        """The bound tools as they are now."""
        source = self._of.current()
        if self._seen != (source, source.version):
            self._seen = (source, source.version)
            self._renew(source)
        return self._made

    def _renew(self, source: Catalogue) -> None:
        made = Catalogue()
        kept: dict[str, _Kept] = {}
        problems: dict[str, str] = {}
        for binding in self._bindings:
            if not binding.enabled:
                continue
            parent = source.entries.get(binding.tool_id)
            if parent is None:
                problems[binding.tool_id] = f"There is no tool named {binding.tool_id!r}."
                continue
            try:
                had = self._kept.get(binding.tool_id)
                have = had if had is not None and had.parent is parent else _with(parent, binding.config, self._make)
                made.add(Entry(parent.tool_id, parent.service, have.spec), have.tools, have.policy)
                kept[binding.tool_id] = have
            except BadInput as error:
                problems[binding.tool_id] = str(error)
        self._made, self._kept, self._set_aside = made, kept, problems


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a binding made of an entry."""

    parent: Entry
    tools: Sequence[Tool]
    policy: Policy | None
    spec: "AnyToolSpec | None"


def _with(parent: Entry, config: Mapping[str, Any], make: Make | None) -> _Kept:
    """An entry's tools, policy and spec with `config` put over its spec. Raises: `BadInput`."""
    own = [slot.offered for slot in parent.slots]
    if not config:
        return _Kept(parent, own, parent.slots[0].policy, parent.given)
    spec = merged(parent.spec, config)
    variant = hashlib.sha256(orjson.dumps(config, default=str, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
    policy = policy_of(spec, variant)
    if policy is not None and spec.rate_limit is not None and spec.rate_limit != parent.spec.rate_limit:
        shared = parent.slots[0].policy
        limits = ((f"{spec.tool_id}@{variant}", spec.rate_limit), *(shared.limits if shared else ()))
        policy = replace(policy, limits=limits)
    if not _base_fields().issuperset(config):
        return _Kept(parent, _remade(spec, own, make), policy, spec)
    if "capabilities" in config:
        named = {capability.name for capability in spec.capabilities}
        own = [slot.offered for slot in parent.slots if (slot.action or spec.tool_id) in named]
    if "description" in config and len(own) == 1:
        own = [_described(parent.slots[0], spec.description)]
    return _Kept(parent, own, policy, spec)


def merged(spec: "AnyToolSpec", config: Mapping[str, Any]) -> "AnyToolSpec":
    """A spec with parts replaced: objects are merged field by field. Raises: `BadInput`, told by field."""
    from pydantic import ValidationError

    fixed = [key for key in ("tool_id", "tool_type") if config.get(key, getattr(spec, key)) != getattr(spec, key)]
    if fixed:
        raise BadInput(f"A binding cannot change {' or '.join(fixed)} of {spec.tool_id}.")
    try:
        return type(spec).model_validate(_over(spec.model_dump(), config))
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise BadInput(f"The binding of {spec.tool_id} does not fit its spec: {wrong}") from error


def _over(base: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(base)
    for key, value in config.items():
        under = out.get(key)
        out[key] = _over(under, value) if isinstance(under, Mapping) and isinstance(value, Mapping) else value
    return out


def _base_fields() -> set[str]:
    """What of a spec the library itself heeds: the rest makes another tool."""
    from opposable.domain.specs import ToolSpec

    return set(ToolSpec.model_fields)


def _remade(spec: "AnyToolSpec", own: Sequence[Tool], make: Make | None) -> Sequence[Tool]:
    if make is None:
        raise BadInput(f"The binding of {spec.tool_id} asks for another tool, and nothing here can make one.")
    made = make(spec)
    told = {tool.tool_id: tool.definition for tool in own}
    return [tool for tool in made if tool.tool_id in told]


def _described(slot: Slot, description: str) -> Tool:
    told = slot.definition
    return replace(slot, definition=ToolDefinition(told.name, description, told.parameters))
