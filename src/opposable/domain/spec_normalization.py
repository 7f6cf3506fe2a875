"""Conversion of specs in older forms to the current one."""

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
    """Return a spec with current field names and its `tool_type`.

    The type follows from the fields where it is missing. `id` is read as `tool_id`, `type` as `mode` or `tool_type`,
    and an MCP server's `endpoint` as its `url`. Anything but an object is returned unchanged.
    """
    if not isinstance(data, dict):
        return data
    spec = normalize_field_names(data)
    if "tool_type" in spec:
        return spec
    kind = next((kind for key, kind in _TOOL_TYPE_BY_FIELD.items() if key in spec), None)
    return spec if kind is None else {**spec, "tool_type": kind}


def normalize_field_names(data: Any) -> Any:
    """Return a spec with current field names."""
    if not isinstance(data, dict):
        return data
    spec = {key: value.value if isinstance(value, Enum) else value for key, value in data.items()}
    _rename_field(spec, "id", "tool_id")
    if "type" in spec:
        _rename_field(spec, "type", "tool_type" if spec["type"] in _TOOL_TYPES else "mode")
    is_mcp_server = any(key in spec for key in _MCP_SECTIONS) or isinstance(spec.get("endpoint"), str)
    return (
        _normalize_mcp_server(spec) if is_mcp_server and spec.get("tool_type", "mcp_server") == "mcp_server" else spec
    )


def drop_nulls(data: Any, field_names: Iterable[str]) -> Any:
    """Return an object without known fields that are null.

    Defaults apply to the removed fields.
    """
    if not isinstance(data, dict):
        return data
    names = set(field_names)
    return {key: value for key, value in data.items() if value is not None or key not in names}


def normalize_parameters(parameters: Any) -> Any:
    """Return parameters as a JSON Schema of type object.

    They may also be a map of parameters that each have `required`.
    """
    if not isinstance(parameters, dict) or not parameters:
        return parameters
    if _is_parameter_map(parameters):
        return _lift_required_flags({"type": "object", "properties": parameters})
    schema = drop_nulls(parameters, ("properties", "required"))
    return _lift_required_flags(schema) if isinstance(schema.get("properties"), dict) else schema


def normalize_example(data: Any, example_fields: Iterable[str], parameter_names: Iterable[str]) -> Any:
    """Return an example with `arguments`, also where it is only arguments."""
    if not isinstance(data, dict) or "arguments" in data or not data:
        return data
    is_arguments = not set(data) <= set(example_fields) or set(data) <= set(parameter_names)
    return {"arguments": data} if is_arguments else data


def get_schema_properties(schema: Any) -> Mapping[str, Any]:
    """Return the properties of a JSON Schema."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


def _rename_field(spec: dict[str, Any], old: str, new: str) -> None:
    """Rename a field.

    Where both names have different values, the old one stays and validation rejects it.
    """
    if old in spec and spec.get(new, spec[old]) == spec[old]:
        spec[new] = spec.pop(old)


def _normalize_mcp_server(spec: dict[str, Any]) -> dict[str, Any]:
    """Return an MCP server spec without configuration sections.

    Their fields move to the top level.
    """
    server = {
        key: value for key, value in spec.items() if key not in _MCP_SECTIONS or not isinstance(value, dict | None)
    }
    _rename_field(server, "endpoint", "url")
    server.setdefault("tool_type", "mcp_server")
    config, connection = ({**value} if isinstance(value := spec.get(key), dict) else {} for key in _MCP_SECTIONS)
    if "timeout" in connection:
        connection["connect_timeout"] = connection.pop("timeout")
    retries = connection.pop("retry_count", None)  # the client always reconnects
    metadata = server.get("metadata") or {}
    if retries is not None and isinstance(metadata, dict):
        server["metadata"] = {**metadata, "retry_count": retries}
    return {**config, **connection, **server}


def _is_parameter_map(parameters: dict[str, Any]) -> bool:
    """Whether each entry is a parameter rather than a keyword of JSON Schema."""
    if not all(isinstance(schema, dict) for schema in parameters.values()):
        return False
    inner = parameters.get("properties")
    return inner is None or not all(isinstance(schema, dict) for schema in inner.values())


def _lift_required_flags(schema: dict[str, Any]) -> dict[str, Any]:
    """Move the `required` flag of each property to the schema's `required` list."""
    properties = schema["properties"]
    flags = {
        name: property_schema["required"]
        for name, property_schema in properties.items()
        if isinstance(property_schema, dict) and isinstance(property_schema.get("required"), bool)
    }
    required = schema.get("required", [])
    if not flags or not isinstance(required, list | tuple):
        return schema
    properties = {
        name: {key: value for key, value in property_schema.items() if key != "required"}
        if name in flags
        else property_schema
        for name, property_schema in properties.items()
    }
    unflagged = [name for name in required if not isinstance(name, str) or name not in flags]
    required = [*unflagged, *(name for name, is_required in flags.items() if is_required)]
    other_keywords = {key: value for key, value in schema.items() if key not in ("properties", "required")}
    return {**other_keywords, "properties": properties, **({"required": required} if required else {})}
