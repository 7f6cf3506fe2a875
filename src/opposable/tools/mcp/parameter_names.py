"""Renames the parameters of a server's tool whose names providers refuse."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from opposable.domain.errors import BadInput, InvalidArguments
from opposable.domain.json_pointer import unescape_step
from opposable.domain.parameter_names import add_original_name, choose_names, replace_names
from opposable.tools.json_schema_validation import ValidateArguments, compile_validator
from opposable.tools.mcp.text_sanitizer import sanitize_schema

_MEMBER_KEYWORDS = ("allOf", "anyOf", "oneOf")
"""Keywords whose schemas may have further parameters."""
_PROPERTIES_REFERENCE = "#/properties/"


def rename_parameters(schema: dict[str, Any], validate: ValidateArguments) -> tuple[dict[str, Any], ValidateArguments]:
    """Return the schema for the model, and a validator that returns its arguments with the server's names.

    `validate` decides which arguments are valid. Both names are accepted, and problems name what the model sees. Without
    a name that must change, these are the same objects.
    """
    names = choose_names(_iterate_names(schema))
    if not names:
        return schema, validate
    renamed = sanitize_schema(_rename(schema, names, is_top=True))
    try:
        validate_renamed = compile_validator(renamed)
    except BadInput:  # it refers to a parameter in a way that is not renamed
        return schema, validate
    original_names = {name: original for original, name in names.items()}

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        sent = replace_names(arguments, original_names)
        try:
            return validate(sent)
        except InvalidArguments:
            validate_renamed(replace_names(sent, names))
            raise

    return renamed, check


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
        if key == "$ref" and isinstance(value, str) and value.startswith(_PROPERTIES_REFERENCE):
            step, slash, rest = value.removeprefix(_PROPERTIES_REFERENCE).partition("/")
            name = names.get(unescape_step(unquote(step)), step)
            renamed[key] = f"{_PROPERTIES_REFERENCE}{name}{slash}{rest}"
        elif is_top and key == "properties":
            inner = {name: _rename(one, names, is_top=False) for name, one in value.items()}
            renamed[key] = {
                names.get(name, name): add_original_name(name, one) if name in names else one
                for name, one in inner.items()
            }
        elif is_top and key == "required":
            renamed[key] = [names.get(name, name) for name in value]
        else:
            renamed[key] = _rename(value, names, is_top=is_top and key in _MEMBER_KEYWORDS)
    return renamed
