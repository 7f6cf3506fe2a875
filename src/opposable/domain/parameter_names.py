"""Names of parameters that every provider accepts, and names that are not taken."""

import itertools
import re
from collections.abc import Container, Iterable, Mapping
from typing import Any

_ACCEPTED_NAME_PATTERN = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""Anthropic's API refuses each request with another name."""


def choose_names(parameters: Iterable[str]) -> dict[str, str]:
    """Return a readable new name for each parameter whose name is not accepted."""
    parameters = list(dict.fromkeys(parameters))
    if all(map(_ACCEPTED_NAME_PATTERN.fullmatch, parameters)):
        return {}
    taken = {name for name in parameters if _ACCEPTED_NAME_PATTERN.fullmatch(name)}
    names: dict[str, str] = {}
    for number, name in enumerate(parameters, 1):
        if _ACCEPTED_NAME_PATTERN.fullmatch(name):
            continue
        readable = re.sub(r"[^a-zA-Z0-9_.-]+", "_", name).strip("_")[:60] or f"parameter_{number}"
        names[name] = choose_free_name(readable, taken)
        taken.add(names[name])
    return names


def replace_names(arguments: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return arguments with other names; one whose other name is given, too, keeps its own."""
    return {
        names[name] if name in names and names[name] not in arguments else name: value
        for name, value in arguments.items()
    }


def add_original_name(name: str, parameter: Any) -> Any:
    """Return a parameter's schema whose description begins with its original name."""
    if not isinstance(parameter, dict):
        return parameter
    description = parameter.get("description")
    return {**parameter, "description": f"{name}: {description}" if description else name}


def rename_properties(schema: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the schema of an object with other names of its properties, which their descriptions begin with."""
    properties = {
        names.get(name, name): add_original_name(name, parameter) if name in names else parameter
        for name, parameter in schema.get("properties", {}).items()
    }
    required = {"required": [names.get(name, name) for name in schema["required"]]} if "required" in schema else {}
    return {**schema, "properties": properties, **required}


def choose_free_name(name: str, taken: Container[str]) -> str:
    """Return the name; if it is taken, its first 96 characters with a number from 2 on."""
    numbered = (f"{name[:96]}_{number}" for number in itertools.count(2))
    return next(free for free in itertools.chain([name], numbered) if free not in taken)
