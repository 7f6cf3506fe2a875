"""Specs as other documents write them, read as today's: other names of fields, per-parameter schemas, nulls."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

_TOOL_TYPES = ("function", "http", "mcp_server", "skill")
_TOOL_TYPE_BY_FIELD = {
    "endpoint": "http",
    "module_path": "function",
    "path": "skill",
    "command": "mcp_server",
    "url": "mcp_server",
}
_MCP_SECTIONS = ("server_config", "connection_params")


def normalize_spec(data: Any) -> Any:
    """A spec with today's names, and with its type where that can be told from what it has.

    `id` is `tool_id`; `type` is `mode`, or `tool_type` where it names one; an MCP server's `endpoint` is its `url`.
    What is no object, or fits already, comes back as it is.
    """
    if not isinstance(data, dict):
        return data
    spec = normalize_field_names(data)
    if "tool_type" in spec:
        return spec
    kind = next((kind for key, kind in _TOOL_TYPE_BY_FIELD.items() if key in spec), None)
    return spec if kind is None else {**spec, "tool_type": kind}


def normalize_field_names(data: Any) -> Any:
    """A spec's fields by today's names."""
    if not isinstance(data, dict):
        return data
    spec = {key: value.value if isinstance(value, Enum) else value for key, value in data.items()}
    _rename_field(spec, "id", "tool_id")
    if "type" in spec:
        _rename_field(spec, "type", "tool_type" if spec["type"] in _TOOL_TYPES else "mode")
    told = any(key in spec for key in _MCP_SECTIONS) or isinstance(spec.get("endpoint"), str)
    return _normalize_mcp_server(spec) if told and spec.get("tool_type", "mcp_server") == "mcp_server" else spec


def drop_nulls(data: Any, field_names: Iterable[str]) -> Any:
    """An object without the known fields that are null: nothing is said of them, so that the default holds."""
    if not isinstance(data, dict):
        return data
    names = set(field_names)
    return {key: value for key, value in data.items() if value is not None or key not in names}


def normalize_parameters(parameters: Any) -> Any:
    """A JSON Schema of type object, also from parameters told one by one, each with its `required`."""
    if not isinstance(parameters, dict) or not parameters:
        return parameters
    if _is_parameter_map(parameters):
        return _lift_required_flags({"type": "object", "properties": parameters})
    told = drop_nulls(parameters, ("properties", "required"))
    return _lift_required_flags(told) if isinstance(told.get("properties"), dict) else told


def normalize_example(data: Any, example_fields: Iterable[str], parameter_names: Iterable[str]) -> Any:
    """An example with its `arguments`, also from the arguments alone. `known` are the fields of an example."""
    if not isinstance(data, dict) or "arguments" in data or not data:
        return data
    plain = not set(data) <= set(example_fields) or set(data) <= set(parameter_names)
    return {"arguments": data} if plain else data


def get_schema_properties(schema: Any) -> Mapping[str, Any]:
    """The parameters a schema describes."""
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _rename_field(spec: dict[str, Any], old: str, new: str) -> None:
    """Move a field to its name of today; where both are there and differ, the old one stays and is told as unknown."""
    if old in spec and spec.get(new, spec[old]) == spec[old]:
        spec[new] = spec.pop(old)


def _normalize_mcp_server(spec: dict[str, Any]) -> dict[str, Any]:
    """An MCP server: its address and how it is reached in fields of their own."""
    told = {key: value for key, value in spec.items() if key not in _MCP_SECTIONS or not isinstance(value, dict | None)}
    _rename_field(told, "endpoint", "url")
    told.setdefault("tool_type", "mcp_server")
    config, connection = ({**value} if isinstance(value := spec.get(key), dict) else {} for key in _MCP_SECTIONS)
    if "timeout" in connection:
        connection["connect_timeout"] = connection.pop("timeout")
    retries = connection.pop("retry_count", None)  # a lost connection is always tried again
    about = told.get("metadata") or {}
    if retries is not None and isinstance(about, dict):
        told["metadata"] = {**about, "retry_count": retries}
    return {**config, **connection, **told}


def _is_parameter_map(parameters: dict[str, Any]) -> bool:
    """Whether each entry is a parameter, and not a keyword of JSON Schema."""
    if not all(isinstance(about, dict) for about in parameters.values()):
        return False
    inner = parameters.get("properties")
    return inner is None or not all(isinstance(about, dict) for about in inner.values())


def _lift_required_flags(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with each property's own `required: true` in the list where JSON Schema has it."""
    properties = schema["properties"]
    said = {
        name: about["required"]
        for name, about in properties.items()
        if isinstance(about, dict) and isinstance(about.get("required"), bool)
    }
    required = schema.get("required", [])
    if not said or not isinstance(required, list | tuple):
        return schema
    plain = {
        name: {key: value for key, value in about.items() if key != "required"} if name in said else about
        for name, about in properties.items()
    }
    listed = [name for name in required if not isinstance(name, str) or name not in said]
    required = [*listed, *(name for name, needed in said.items() if needed)]
    rest = {key: value for key, value in schema.items() if key not in ("properties", "required")}
    return {**rest, "properties": plain, **({"required": required} if required else {})}
