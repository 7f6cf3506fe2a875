"""Renames the parameters of a server's tool whose names providers refuse."""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from opposable.domain.errors import BadInput, InvalidArguments
from opposable.tools.json_schema_validation import ValidateArguments, compile_validator
from opposable.tools.mcp.text_sanitizer import sanitize_schema

_ACCEPTED_NAME_PATTERN = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""The names of parameters that every provider accepts. Anthropic's API refuses each request with another one."""
_MEMBER_KEYWORDS = ("allOf", "anyOf", "oneOf")
"""Keywords whose schemas may have further parameters."""
_PROPERTIES_REFERENCE = "#/properties/"


def rename_parameters(schema: dict[str, Any], validate: ValidateArguments) -> tuple[dict[str, Any], ValidateArguments]:
    """Return the schema for the model, and a validator that returns its arguments with the server's names.

    `validate` decides which arguments are valid. Both names are accepted, and problems name what the model sees. Without
    a name that must change, these are the same objects.
    """
    names = _choose_names(schema)
    if not names:
        return schema, validate
    renamed = sanitize_schema(_rename(schema, names, is_top=True))
    try:
        validate_renamed = compile_validator(renamed)
    except BadInput:  # it refers to a parameter in a way that is not renamed
        return schema, validate
    original_names = {name: original for original, name in names.items()}

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        sent = _replace_names(arguments, original_names)
        try:
            return validate(sent)
        except InvalidArguments:
            validate_renamed(_replace_names(sent, names))
            raise

    return renamed, check


def _choose_names(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return a readable new name for each parameter whose name is not accepted."""
    parameters = list(dict.fromkeys(_iterate_names(schema)))
    taken = {name for name in parameters if _ACCEPTED_NAME_PATTERN.fullmatch(name)}
    names: dict[str, str] = {}
    for number, name in enumerate(parameters, 1):
        if _ACCEPTED_NAME_PATTERN.fullmatch(name):
            continue
        readable = re.sub(r"[^a-zA-Z0-9_.-]+", "_", name).strip("_")[:60] or f"parameter_{number}"
        numbered = (f"{readable}_{count}" for count in itertools.count(2))
        names[name] = next(free for free in itertools.chain([readable], numbered) if free not in taken)
        taken.add(names[name])
    return names


def _iterate_names(schema: Any) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    yield from schema.get("properties") or ()
    for keyword in _MEMBER_KEYWORDS:
        for member in schema.get(keyword) or ():
            yield from _iterate_names(member)


def _rename(node: Any, names: Mapping[str, str], *, is_top: bool) -> Any:
    """Return a schema with new names of its parameters, if it is one of the arguments, and in references to them."""
    if isinstance(node, list):
        return [_rename(item, names, is_top=is_top) for item in node]
    if not isinstance(node, dict):
        return node
    renamed: dict[str, Any] = {}
    for key, value in node.items():
        if key == "$ref" and isinstance(value, str):
            renamed[key] = _rename_reference(value, names)
        elif is_top and key == "properties":
            inner = {name: _rename(one, names, is_top=False) for name, one in value.items()}
            renamed[key] = {
                names.get(name, name): _add_original_name(name, one) if name in names else one
                for name, one in inner.items()
            }
        elif is_top and key == "required":
            renamed[key] = [names.get(name, name) for name in value]
        else:
            renamed[key] = _rename(value, names, is_top=is_top and key in _MEMBER_KEYWORDS)
    return renamed


def _rename_reference(reference: str, names: Mapping[str, str]) -> str:
    if not reference.startswith(_PROPERTIES_REFERENCE):
        return reference
    step, slash, rest = reference.removeprefix(_PROPERTIES_REFERENCE).partition("/")
    name = names.get(unquote(step).replace("~1", "/").replace("~0", "~"), step)
    return f"{_PROPERTIES_REFERENCE}{name}{slash}{rest}"


def _add_original_name(name: str, parameter: Any) -> Any:
    """Return a parameter's schema whose description begins with its original name."""
    if not isinstance(parameter, dict):
        return parameter
    description = parameter.get("description")
    return {**parameter, "description": f"{name}: {description}" if description else name}


def _replace_names(arguments: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return arguments with other names; one whose other name is given, too, keeps its own."""
    return {
        names[name] if name in names and names[name] not in arguments else name: value
        for name, value in arguments.items()
    }
