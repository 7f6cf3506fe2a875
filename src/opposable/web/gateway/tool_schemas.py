"""Tools as clients send them, made into definitions that every model can be told."""

from typing import Any

import orjson

from opposable.domain.json_pointer import resolve_pointer
from opposable.domain.tools import ToolDefinition
from opposable.tools.tool_names import SAFE_NAME_PATTERN
from opposable.web.openai_errors import bad_request_error

MAX_SCHEMA_NODES = 2000
"""Parts that the schema of one tool may have."""

_DEFINITION_KEYWORDS = ("$defs", "definitions")
_SCHEMA_MAPPING_KEYWORDS = ("properties", "patternProperties", "dependentSchemas")
_SCHEMA_LIST_KEYWORDS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMA_KEYWORDS = ("items", "additionalProperties", "not", "contains", "if", "then", "else", "propertyNames")
_KEYWORD_TYPES: dict[str, Any] = {
    "$ref": (),  # what stands elsewhere is never fetched
    "type": str | list,
    "required": list,
    "enum": list,
    "examples": list,
    "const": object,
    "default": object,
    "description": str,
}
"""The forms of the other keywords' values; those not named here have plain values."""


def parse_tools(tools: Any) -> tuple[ToolDefinition, ...]:
    """The `tools` of a request. Raises: `WireError` 400 that names the tool and what is wrong with it."""
    if tools is None:
        return ()
    if not isinstance(tools, list):
        raise bad_request_error("tools", "tools must be a list.")
    made = tuple(_parse_tool(tool, f"tools[{n}]") for n, tool in enumerate(tools))
    names: set[str] = set()
    for n, tool in enumerate(made):
        if tool.name in names:
            raise bad_request_error(
                f"tools[{n}].function.name", f"Two tools are named {tool.name!r}; names must differ."
            )
        names.add(tool.name)
    return made


def _parse_tool(tool: Any, path: str) -> ToolDefinition:
    kind = tool.get("type", "function") if isinstance(tool, dict) else None
    function = tool.get("function") if isinstance(tool, dict) else None
    if kind != "function" or not isinstance(function, dict):
        raise bad_request_error(
            path,
            f'{path} must be {{"type": "function", "function": {{…}}}}; this gateway knows no other kind of tool.',
        )
    name = function.get("name")
    if not isinstance(name, str) or not SAFE_NAME_PATTERN.match(name):
        raise bad_request_error(
            f"{path}.function.name",
            f"{path} is named {name!r}; a tool's name is 1 to 64 letters, digits, underscores and dashes.",
        )
    description = function.get("description")
    parameters = _parse_parameters(function.get("parameters"), f"{path}.function.parameters", name)
    return ToolDefinition(name, description if isinstance(description, str) else "", parameters)


def _parse_parameters(schema: Any, path: str, name: str) -> dict[str, Any]:
    """The parameters as a JSON Schema of type object: small faults mended, others told."""
    if schema is None:
        schema = {}
    if not isinstance(schema, dict):
        raise bad_request_error(path, f"The parameters of tool {name!r} must be a JSON Schema of type object.")
    kind = schema.get("type") or "object"
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise bad_request_error(path, f"The parameters of tool {name!r} must be of type object, not {kind!r}.")
    try:
        orjson.dumps(schema)
        return _SchemaNormalizer(schema).normalize()
    except (TypeError, _SchemaTooLarge) as error:  # TypeError: deeper than 254 levels, which nobody could send on
        raise bad_request_error(path, f"The parameters of tool {name!r} are nested too deeply.") from error


class _SchemaTooLarge(Exception):
    """A schema whose references, put in place, make more than `MOST` parts."""


class _SchemaNormalizer:
    """A schema being mended: every part gets the form that JSON Schema gives it, and what has another says nothing.

    References are put in place, since a model reads a schema from top to bottom; one that recurs stays a reference.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._node_count = 0
        self._is_recursive = False

    def normalize(self) -> dict[str, Any]:
        """The whole schema, of type object."""
        whole = self._normalize_node({**self._root, "type": "object"}, ())
        for key in _DEFINITION_KEYWORDS if self._is_recursive else ():
            known = self._root.get(key)
            if isinstance(known, dict):
                whole[key] = {name: self._normalize_node(one, (f"#/{key}/{name}",)) for name, one in known.items()}
        return {"type": "object", "properties": {}, **whole}

    def _normalize_node(self, node: Any, path: tuple[str, ...]) -> dict[str, Any]:
        self._node_count += 1
        if self._node_count > MAX_SCHEMA_NODES:
            raise _SchemaTooLarge
        if not isinstance(node, dict):
            return {"not": {}} if node is False else {}
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            if reference in path:
                self._is_recursive = True
                return {"$ref": reference}
            beside = {key: value for key, value in node.items() if key != "$ref"}
            try:
                target = resolve_pointer(self._root, reference)
            except LookupError:
                target = {}
            return self._normalize_node({**(target if isinstance(target, dict) else {}), **beside}, (*path, reference))
        return {key: inner for key, value in node.items() for inner in self._normalize_keyword(key, value, path)}

    def _normalize_keyword(self, key: str, value: Any, path: tuple[str, ...]) -> list[Any]:
        """The value of a keyword as it should be, in a list; an empty one where the keyword is to be left out."""
        if key in _SCHEMA_MAPPING_KEYWORDS:
            return [
                {name: self._normalize_node(one, path) for name, one in value.items()}
                if isinstance(value, dict)
                else {}
            ]
        if key in _SCHEMA_LIST_KEYWORDS:
            return [[self._normalize_node(one, path) for one in value]] if isinstance(value, list) else []
        if key in _SCHEMA_KEYWORDS:
            return [value if isinstance(value, bool) else self._normalize_node(value, path)]
        right = _KEYWORD_TYPES.get(key, str | int | float | bool | None)
        items = value if isinstance(value, list) and key in ("type", "required") else ()
        return [value] if isinstance(value, right) and all(isinstance(one, str) for one in items) else []
