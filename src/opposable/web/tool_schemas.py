"""Tools as clients send them, made into definitions that every model can be told."""

from collections.abc import Sequence
from typing import Any

from opposable.domain.tools import ToolDefinition
from opposable.tools.names import SAFE
from opposable.tools.schema import tidy
from opposable.web.openai_errors import bad_request

_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NODES = ("items", "additionalProperties", "not", "contains", "if", "then", "else", "propertyNames")
_MAPPINGS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


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
        node = _mended({**schema, "type": "object"})
        if _refers(node):
            node = tidy({**node, "$defs": {**node.pop("definitions", {}), **node.get("$defs", {})}})
    except RecursionError as error:
        raise bad_request(where, f"The parameters of tool {name!r} are nested too deeply.") from error
    node.setdefault("properties", {})
    return node


def _mended(node: Any) -> dict[str, Any]:
    """A schema whose every part has the form that JSON Schema gives it; what has another form says nothing."""
    if not isinstance(node, dict):
        return {"not": {}} if node is False else {}
    out = dict(node)
    for key in _MAPPINGS:
        if key in out:
            inner = out[key]
            out[key] = {name: _mended(one) for name, one in inner.items()} if isinstance(inner, dict) else {}
    for key in _LISTS:
        if key in out:
            out[key] = [_mended(one) for one in out[key]] if isinstance(out[key], list) else []
    for key in _NODES:
        if key in out and not isinstance(out[key], bool):
            out[key] = _mended(out[key])
    if "type" in out and not _is_type(out["type"]):
        del out["type"]
    for key, right in (("required", list), ("enum", list), ("description", str), ("$ref", str)):
        if key in out and not isinstance(out[key], right):
            del out[key]
    if not out.get("$ref", "#").startswith("#"):
        del out["$ref"]  # what stands elsewhere is never fetched
    return out


def _is_type(kind: Any) -> bool:
    kinds: Sequence[Any] = kind if isinstance(kind, list) else [kind]
    return bool(kinds) and all(isinstance(one, str) for one in kinds)


def _refers(node: Any) -> bool:
    if isinstance(node, dict):
        return "$ref" in node or any(_refers(inner) for inner in node.values())
    return isinstance(node, list) and any(_refers(inner) for inner in node)
