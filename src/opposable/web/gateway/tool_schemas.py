"""Parsing of the tools of a request, and normalization of their schemas for models that read them in a prompt."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from opposable.domain.json_pointer import resolve_pointer
from opposable.domain.json_text import preview_json
from opposable.domain.tools import ToolDefinition
from opposable.parsers.schema_coercion import TYPE_ALIASES
from opposable.web.openai_errors import bad_request_error

MAX_SCHEMA_NODES = 2000
"""The largest number of nodes in the schema of one tool with its references resolved."""

EMPTY: dict[str, Any] = {"type": "object", "properties": {}}

_NAME_PATTERN = re.compile(r"[a-zA-Z0-9_.-]+")
"""Some models take names with dots; the servers of others reject them."""
_DEFINITION_KEYWORDS = ("$defs", "definitions")
_SCHEMA_MAPPING_KEYWORDS = ("properties", "patternProperties", "dependentSchemas")
_SCHEMA_LIST_KEYWORDS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMA_KEYWORDS = (
    *("items", "additionalItems", "unevaluatedItems", "contains", "not", "if", "then", "else"),
    *("additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema"),
)
_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "deprecated", "$comment"})
"""Keywords that replace those of the schema that a reference next to them names."""
_KEYWORD_TYPES: dict[str, Any] = {
    "$ref": (),  # external references are dropped, never fetched
    "$defs": (),  # their nodes are where they are referred to
    "definitions": (),
    "type": str | list,
    "required": list,
    "enum": list,
    "examples": list,
    "description": str,
}
"""The types of the values of other keywords; those that are not listed are passed on as they are."""


def parse_tools(tools: Any, max_name_length: int = 64) -> tuple[ToolDefinition, ...]:
    """Parse the `tools` of a request, with names of at most this many characters.

    Raises:
        GatewayError: 400, with the path of the wrong tool.
    """
    if tools is None:
        return ()
    if not isinstance(tools, list):
        raise bad_request_error("tools", "tools must be a list.")
    definitions = tuple(_parse_tool(tool, f"tools[{index}]", max_name_length) for index, tool in enumerate(tools))
    names: set[str] = set()
    for index, definition in enumerate(definitions):
        if definition.name in names:
            path = f"tools[{index}].function.name"
            raise bad_request_error(path, f"Two tools have the name {definition.name!r}. Names must be unique.")
        names.add(definition.name)
    return definitions


def _parse_tool(tool: Any, path: str, max_name_length: int) -> ToolDefinition:
    kind = tool.get("type", "function") if isinstance(tool, dict) else None
    function = tool.get("function") if isinstance(tool, dict) else None
    if kind != "function" or not isinstance(function, dict):
        raise bad_request_error(
            path,
            f'{path} must be {{"type": "function", "function": {{…}}}}. Other types of tools are not supported.',
        )
    name = function.get("name")
    if not isinstance(name, str) or not _NAME_PATTERN.fullmatch(name) or len(name) > max_name_length:
        raise bad_request_error(
            f"{path}.function.name",
            f"{path} has the name {name!r}. A name has 1 to {max_name_length} letters, digits, underscores, dashes and dots.",
        )
    description = function.get("description")
    parameters = _parse_parameters(function.get("parameters"), f"{path}.function.parameters", name)
    is_strict = function.get("strict") is True
    return ToolDefinition(name, description if isinstance(description, str) else "", parameters, is_strict)


def _parse_parameters(schema: Any, path: str, name: str) -> dict[str, Any]:
    """Return the parameters as they are, as a JSON Schema of type object."""
    if schema is None:
        schema = {}
    if not isinstance(schema, dict):
        raise bad_request_error(path, f"The parameters of tool {name!r} must be a JSON Schema of type object.")
    kind = schema.get("type") or "object"
    kinds = [TYPE_ALIASES.get(kind, kind)] if isinstance(kind, str) else kind
    if not isinstance(kinds, list) or "object" not in kinds:
        message = f"The parameters of tool {name!r} must be of type object, not {preview_json(kind)}."
        raise bad_request_error(path, message)
    defaults = {**({} if "$ref" in schema else EMPTY), "type": kind}
    return {**schema, **{key: value for key, value in defaults.items() if not schema.get(key)}}


def normalize_tools(tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    """Return the tools with normalized schemas. Raises: `GatewayError` 400, for one that is nested too deeply."""
    return tuple(
        replace(tool, parameters=_normalize(tool, f"tools[{index}].function.parameters"))
        for index, tool in enumerate(tools)
    )


def _normalize(tool: ToolDefinition, path: str) -> dict[str, Any]:
    try:
        with suppress(_SchemaTooLarge, RecursionError):
            return _SchemaNormalizer(tool.parameters).normalize()
        return _SchemaNormalizer(tool.parameters, keeps_references=True).normalize()
    except RecursionError as error:
        raise bad_request_error(path, f"The parameters of tool {tool.name!r} are nested too deeply.") from error


class _SchemaTooLarge(Exception):
    """The schema has more than `MAX_SCHEMA_NODES` nodes with its references resolved."""


class _SchemaNormalizer:
    """Drops keyword values of a wrong type from a schema and resolves references.

    References are resolved because a model reads a schema from top to bottom. A recursive one stays a reference, and so
    do all of a schema that would be too large without them.
    """

    def __init__(self, root: dict[str, Any], *, keeps_references: bool = False) -> None:
        self._root = root
        self._node_count = 0
        self._keeps_references = self._has_references = keeps_references

    def normalize(self) -> dict[str, Any]:
        """Return the whole schema, of type object."""
        schema = self._normalize_node({**self._root, "type": "object"}, ())
        for key in _DEFINITION_KEYWORDS if self._has_references else ():
            definitions = self._root.get(key)
            if isinstance(definitions, dict):
                schema[key] = {
                    name: self._normalize_node(definition, (f"#/{key}/{name}",))
                    for name, definition in definitions.items()
                }
        return {**EMPTY, **schema}

    def _normalize_node(self, node: Any, path: tuple[str, ...]) -> dict[str, Any]:
        self._node_count += 1
        if self._node_count > MAX_SCHEMA_NODES and not self._keeps_references:
            raise _SchemaTooLarge
        if not isinstance(node, dict):
            return {"not": {}} if node is False else {}
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            siblings = {key: value for key, value in node.items() if key != "$ref"}
            if self._keeps_references or reference in ("#", *path) or not reference.startswith("#/"):
                self._has_references = True
                return {"$ref": reference, **self._normalize_node(siblings, path)}
            try:
                target = resolve_pointer(self._root, reference)
            except LookupError:
                target = {}
            target = target if isinstance(target, dict) else {}
            common = {key for key in target.keys() & siblings.keys() if target[key] != siblings[key]}
            others = siblings["allOf"] if isinstance(siblings.get("allOf"), list) else []
            is_merged = common <= _ANNOTATIONS
            resolved = {**target, **siblings} if is_merged else {**siblings, "allOf": [target, *others]}
            return self._normalize_node(resolved, (*path, reference))
        return {key: inner for key, value in node.items() for inner in self._normalize_keyword(key, value, path)}

    def _normalize_keyword(self, key: str, value: Any, path: tuple[str, ...]) -> list[Any]:
        """Return the normalized value in a list; an empty list drops the keyword."""
        if key in _SCHEMA_MAPPING_KEYWORDS:
            return [
                {name: self._normalize_node(schema, path) for name, schema in value.items()}
                if isinstance(value, dict)
                else {}
            ]
        if key in _SCHEMA_LIST_KEYWORDS:
            return [[self._normalize_node(schema, path) for schema in value]] if isinstance(value, list) else []
        if key == "items" and isinstance(value, list):  # a tuple of draft 7
            return [[self._normalize_node(schema, path) for schema in value]]
        if key in _SCHEMA_KEYWORDS:
            return [value if isinstance(value, bool) else self._normalize_node(value, path)]
        value_type = _KEYWORD_TYPES.get(key, object)
        items = value if isinstance(value, list) and key in ("type", "required") else ()
        if key == "type" and isinstance(value, str):
            value = TYPE_ALIASES.get(value, value)
        return [value] if isinstance(value, value_type) and all(isinstance(item, str) for item in items) else []
