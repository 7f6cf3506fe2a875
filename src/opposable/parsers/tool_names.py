"""The offered tools, and which of them a written name means."""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opposable.domain.tools import ToolDefinition
from opposable.parsers.schema_coercion import Schema

OfferedTool = ToolDefinition | Mapping[str, Any]
"""A tool as domain noun, as OpenAI's tool dict, or as `{"name", "parameters"}`."""

_PREFIXES = ("functions.", "tools.", "function.", "tool.", "functions:", "default_api.", "/functions.")
_SEPARATORS = re.compile(r"[\s.\-_:/]+")
MAX_NAME = 128


@dataclass(frozen=True, slots=True)
class Tool:
    """What the reader needs to know of a tool."""

    name: str
    schema: Schema


class Tools:
    """The offered tools by name."""

    def __init__(self, tools: Sequence[OfferedTool]) -> None:
        self.by_name: dict[str, Tool] = {}
        for tool in tools:
            name, parameters = _described(tool)
            if name:
                self.by_name[name] = Tool(name, Schema(parameters))
        self._firsts: frozenset[str] | None = None
        self._sorted: list[str] | None = None
        self._normal: dict[str, list[Tool]] | None = None

    def __bool__(self) -> bool:
        return bool(self.by_name)

    def find(self, written: str) -> tuple[Tool | None, str]:
        """The tool meant by `written`, and the repair that finding it took ("" for none); None where none is clear."""
        written = written.strip()
        if tool := self.by_name.get(written):
            return tool, ""
        if not written or len(written) > MAX_NAME:
            return None, ""
        bare = written.strip("\"'` ")
        for prefix in _PREFIXES:
            if bare.startswith(prefix):
                bare = bare[len(prefix) :]
                break
        half, _, again = bare.partition(".")
        if half == again:  # some models write a tool without a name space as its own
            bare = half
        found = self.by_name.get(bare) or self._same_when_normal(bare)
        return (found, f"tool name {written!r} read as {found.name!r}") if found else (None, "")

    def first_letters(self) -> frozenset[str]:
        """The letters with which a tool's name may begin as a model writes it."""
        if self._firsts is None:
            firsts = {name[0] for name in self.by_name} | {prefix[0] for prefix in _PREFIXES}
            self._firsts = frozenset(form for first in firsts for form in (first, first.lower(), first.upper()))
        return self._firsts

    def may_begin(self, written: str) -> bool:
        """Whether a tool's name may begin with `written`, or be it."""
        if self._sorted is None:
            self._sorted = sorted({*self.by_name, *(name.casefold() for name in self.by_name)})
        if written.startswith(_PREFIXES) or any(prefix.startswith(written) for prefix in _PREFIXES):
            return True
        for form in {written, written.casefold()}:
            place = bisect_left(self._sorted, form)
            if place < len(self._sorted) and self._sorted[place].startswith(form):
                return True
        return self.find(written)[0] is not None

    def _same_when_normal(self, written: str) -> Tool | None:
        if self._normal is None:
            self._normal = {}
            for tool in self.by_name.values():
                self._normal.setdefault(_normal(tool.name), []).append(tool)
        same = self._normal.get(_normal(written), ())
        return same[0] if len(same) == 1 else None


_kept: dict[int, tuple[tuple[OfferedTool, ...], Tools]] = {}
_KEPT_MOST = 64


def tools_of(offered: Sequence[OfferedTool]) -> Tools:
    """The offered tools, made ready once for a tuple: the same tuple comes with every reply of a run."""
    if not isinstance(offered, tuple):
        return Tools(offered)
    kept = _kept.get(id(offered))
    if kept is not None and kept[0] is offered:
        return kept[1]
    made = Tools(offered)
    if len(_kept) >= _KEPT_MOST:
        _kept.clear()
    _kept[id(offered)] = (offered, made)
    return made


def _normal(name: str) -> str:
    return _SEPARATORS.sub("_", name).strip("_").casefold()


def _described(tool: OfferedTool) -> tuple[str, Any]:
    if isinstance(tool, ToolDefinition):
        return tool.name, tool.parameters
    inner = tool.get("function")
    source = inner if isinstance(inner, Mapping) else tool
    name = source.get("name")
    parameters = source.get("parameters", source.get("input_schema", source.get("inputSchema")))
    return (name if isinstance(name, str) else ""), parameters
