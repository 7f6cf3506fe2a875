"""Tools as clients send them, made into definitions that every model can be told."""

from typing import Any

import orjson

from opposable.domain.tools import ToolDefinition
from opposable.tools.tool_names import SAFE
from opposable.web.openai_errors import bad_request

MOST = 2000
"""Parts that the schema of one tool may have."""

_DEFINITIONS = ("$defs", "definitions")
_MAPPINGS = ("properties", "patternProperties", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NODES = ("items", "additionalProperties", "not", "contains", "if", "then", "else", "propertyNames")
_FORMS: dict[str, Any] = {
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


def definitions(tools: Any) -> tuple[ToolDefinition, ...]:
    """The `tools` of a request. Raises: `WireError` 400 that names the tool and what is wrong with it."""
    if tools is None:
        return ()
    if not isinstance(tools, list):
        raise bad_request("tools", "tools must be a list.")
    made = tuple(_definition(tool, f"tools[{n}]") for n, tool in enumerate(tools))
    names: set[str] = set()
    for n, tool in enumerate(made):
        if tool.name in names:
            raise bad_request(f"tools[{n}].function.name", f"Two tools are named {tool.name!r}; names must differ.")
        names.add(tool.name)
    return made


def _definition(tool: Any, where: str) -> ToolDefinition:
    kind = tool.get("type", "function") if isinstance(tool, dict) else None
    function = tool.get("function") if isinstance(tool, dict) else None
    if kind != "function" or not isinstance(function, dict):
        raise bad_request(
            where,
            f'{where} must be {{"type": "function", "function": {{…}}}}; this gateway knows no other kind of tool.',
        )
    name = function.get("name")
    if not isinstance(name, str) or not SAFE.match(name):
        raise bad_request(
            f"{where}.function.name",
            f"{where} is named {name!r}; a tool's name is 1 to 64 letters, digits, underscores and dashes.",
        )
    description = function.get("description")
    parameters = _parameters(function.get("parameters"), f"{where}.function.parameters", name)
    return ToolDefinition(name, description if isinstance(description, str) else "", parameters)


def _parameters(schema: Any, where: str, name: str) -> dict[str, Any]:
    """The parameters as a JSON Schema of type object: small faults mended, others told."""
    if schema is None:
        schema = {}
    if not isinstance(schema, dict):
        raise bad_request(where, f"The parameters of tool {name!r} must be a JSON Schema of type object.")
    kind = schema.get("type") or "object"
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise bad_request(where, f"The parameters of tool {name!r} must be of type object, not {kind!r}.")
    try:
        orjson.dumps(schema)
        return _Schema(schema).mended()
    except (TypeError, _TooLarge) as error:  # TypeError: deeper than 254 levels, which nobody could send on
        raise bad_request(where, f"The parameters of tool {name!r} are nested too deeply.") from error


class _TooLarge(Exception):
    """A schema whose references, put in place, make more than `MOST` parts."""


class _Schema:
    """A schema being mended: every part gets the form that JSON Schema gives it, and what has another says nothing.

    References are put in place, since a model reads a schema from top to bottom; one that recurs stays a reference.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._parts = 0
        self._recurs = False

    def mended(self) -> dict[str, Any]:
        """The whole schema, of type object."""
        whole = self._node({**self._root, "type": "object"}, ())
        for key in _DEFINITIONS if self._recurs else ():
            known = self._root.get(key)
            if isinstance(known, dict):
                whole[key] = {name: self._node(one, (f"#/{key}/{name}",)) for name, one in known.items()}
        return {"type": "object", "properties": {}, **whole}

    def _node(self, node: Any, path: tuple[str, ...]) -> dict[str, Any]:
        self._parts += 1
        if self._parts > MOST:
            raise _TooLarge
        if not isinstance(node, dict):
            return {"not": {}} if node is False else {}
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            if reference in path:
                self._recurs = True
                return {"$ref": reference}
            beside = {key: value for key, value in node.items() if key != "$ref"}
            target = self._target(reference)
            return self._node({**(target if isinstance(target, dict) else {}), **beside}, (*path, reference))
        return {key: inner for key, value in node.items() for inner in self._keyword(key, value, path)}

    def _keyword(self, key: str, value: Any, path: tuple[str, ...]) -> list[Any]:
        """The value of a keyword as it should be, in a list; an empty one where the keyword is to be left out."""
        if key in _MAPPINGS:
            return [{name: self._node(one, path) for name, one in value.items()} if isinstance(value, dict) else {}]
        if key in _LISTS:
            return [[self._node(one, path) for one in value]] if isinstance(value, list) else []
        if key in _NODES:
            return [value if isinstance(value, bool) else self._node(value, path)]
        right = _FORMS.get(key, str | int | float | bool | None)
        items = value if isinstance(value, list) and key in ("type", "required") else ()
        return [value] if isinstance(value, right) and all(isinstance(one, str) for one in items) else []

    def _target(self, reference: str) -> Any:
        found: Any = self._root
        for step in reference[2:].split("/"):
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        return found
