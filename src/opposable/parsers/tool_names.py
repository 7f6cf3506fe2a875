"""Resolution of tool names: which available tool a written name refers to."""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opposable.domain.tools import ToolDefinition
from opposable.parsers.schema_coercion import SchemaNode

ToolLike = ToolDefinition | Mapping[str, Any]
"""A `ToolDefinition`, an OpenAI tool dict, or a dict with `name` and `parameters`."""

_PREFIXES = ("functions.", "tools.", "function.", "tool.", "functions:", "default_api.", "/functions.")
_SEPARATORS = re.compile(r"[\s.\-_:/]+")
MAX_NAME_CHARACTERS = 128


@dataclass(frozen=True, slots=True)
class ToolSignature:
    """The name and parameter schema of a tool."""

    name: str
    schema: SchemaNode


class ToolIndex:
    """The available tools by name."""

    def __init__(self, tools: Sequence[ToolLike]) -> None:
        self.by_name: dict[str, ToolSignature] = {}
        for tool in tools:
            name, parameters = _get_name_and_parameters(tool)
            if name:
                self.by_name[name] = ToolSignature(name, SchemaNode(parameters))
        self._first_letters: frozenset[str] | None = None
        self._sorted_names: list[str] | None = None
        self._tools_by_normalized_name: dict[str, list[ToolSignature]] | None = None

    def __bool__(self) -> bool:
        return bool(self.by_name)

    def find(self, name: str) -> tuple[ToolSignature | None, str]:
        """Find the tool that a written name refers to.

        Returns:
            The tool and a description of the repair ("" if the name is exact), or (None, "") if no tool clearly
                matches.
        """
        name = name.strip()
        if tool := self.by_name.get(name):
            return tool, ""
        if not name or len(name) > MAX_NAME_CHARACTERS:
            return None, ""
        bare = name.strip("\"'` ")
        for prefix in _PREFIXES:
            if bare.startswith(prefix):
                bare = bare[len(prefix) :]
                break
        first_half, _, second_half = bare.partition(".")
        if first_half == second_half:  # some models repeat the name as its own namespace
            bare = first_half
        matched_tool = self.by_name.get(bare) or self._find_normalized(bare)
        return (matched_tool, f"tool name {name!r} read as {matched_tool.name!r}") if matched_tool else (None, "")

    def first_letters(self) -> frozenset[str]:
        """Return the characters with which a tool's name may begin as a model writes it."""
        if self._first_letters is None:
            firsts = {name[0] for name in self.by_name} | {prefix[0] for prefix in _PREFIXES}
            self._first_letters = frozenset(form for first in firsts for form in (first, first.lower(), first.upper()))
        return self._first_letters

    def may_start_name(self, text: str) -> bool:
        """Return whether `text` is, or may begin, a tool's name."""
        if self._sorted_names is None:
            self._sorted_names = sorted({*self.by_name, *(name.casefold() for name in self.by_name)})
        if text.startswith(_PREFIXES) or any(prefix.startswith(text) for prefix in _PREFIXES):
            return True
        for form in {text, text.casefold()}:
            position = bisect_left(self._sorted_names, form)
            if position < len(self._sorted_names) and self._sorted_names[position].startswith(form):
                return True
        return self.find(text)[0] is not None

    def _find_normalized(self, name: str) -> ToolSignature | None:
        if self._tools_by_normalized_name is None:
            self._tools_by_normalized_name = {}
            for tool in self.by_name.values():
                self._tools_by_normalized_name.setdefault(_normalize_name(tool.name), []).append(tool)
        matches = self._tools_by_normalized_name.get(_normalize_name(name), ())
        return matches[0] if len(matches) == 1 else None


_cached_indexes: dict[int, tuple[tuple[ToolLike, ...], ToolIndex]] = {}
_MAX_CACHED_INDEXES = 64


def get_tool_index(tools: Sequence[ToolLike]) -> ToolIndex:
    """Return the index of the tools; cached for a tuple.

    A run passes the same tuple with every reply.
    """
    if not isinstance(tools, tuple):
        return ToolIndex(tools)
    cached = _cached_indexes.get(id(tools))
    if cached is not None and cached[0] is tools:
        return cached[1]
    index = ToolIndex(tools)
    if len(_cached_indexes) >= _MAX_CACHED_INDEXES:
        _cached_indexes.clear()
    _cached_indexes[id(tools)] = (tools, index)
    return index


def _normalize_name(name: str) -> str:
    return _SEPARATORS.sub("_", name).strip("_").casefold()


def _get_name_and_parameters(tool: ToolLike) -> tuple[str, Any]:
    if isinstance(tool, ToolDefinition):
        return tool.name, tool.parameters
    function = tool.get("function")
    source = function if isinstance(function, Mapping) else tool
    name = source.get("name")
    parameters = source.get("parameters", source.get("input_schema", source.get("inputSchema")))
    return (name if isinstance(name, str) else ""), parameters
