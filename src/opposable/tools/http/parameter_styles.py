"""Serialization of arguments in paths, queries, headers and cookies, by OpenAPI's parameter styles."""

from collections.abc import Mapping
from typing import Any

from opposable.domain.argument_problems import must_be
from opposable.domain.errors import FieldProblem, InvalidArguments
from opposable.domain.json_text import dump_json
from opposable.domain.specs import ParameterPlacement

NameValuePairs = list[tuple[str, str]]
_SEPARATORS = {"spaceDelimited": " ", "pipeDelimited": "|"}


def scalar_to_text(value: Any) -> str:
    """Return a scalar as it is written outside of JSON: text as it is, anything else as in JSON."""
    return value if isinstance(value, str) else to_json_text(value)


def to_json_text(value: Any) -> str:
    """Serialize a value as JSON. Raises: `InvalidArguments` if JSON cannot represent it."""
    try:
        return dump_json(value).decode()
    except TypeError as error:
        raise InvalidArguments((FieldProblem("", must_be("data that JSON can hold")),)) from error


def format_simple(name: str, value: Any, place: ParameterPlacement) -> str:
    """Serialize a value of a path or header, with commas. Raises: `InvalidArguments` for nested values."""
    if place.style == "json":
        return to_json_text(value)
    if isinstance(value, dict):
        sign = "=" if place.explode else ","
        return ",".join(f"{key}{sign}{_format_scalar(name, inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ",".join(_format_scalar(name, item) for item in value)
    return scalar_to_text(value)


def format_pairs(name: str, value: Any, place: ParameterPlacement) -> NameValuePairs:
    """Return the unencoded pairs of a query, form or cookie parameter. Raises: `InvalidArguments` for nested values."""
    wire = place.name or name
    style = place.style or "form"
    explode = place.explode if place.explode is not None else style in ("form", "deepObject")
    if style == "json":
        return [(wire, to_json_text(value))]
    if style == "deepObject":
        return _format_deep_object(wire, value)
    if value in ([], {}):  # not sent, as in RFC 6570
        return []
    separator = _SEPARATORS.get(style, ",")
    if isinstance(value, dict):
        if explode:
            return [(key, _format_scalar(name, inner)) for key, inner in value.items()]
        return [
            (wire, separator.join(part for key, inner in value.items() for part in (key, _format_scalar(name, inner))))
        ]
    if isinstance(value, list):
        items = [_format_scalar(name, item) for item in value]
        return [(wire, item) for item in items] if explode else [(wire, separator.join(items))]
    return [(wire, scalar_to_text(value))]


def format_form_pairs(values: Mapping[str, Any], styled: Mapping[str, ParameterPlacement]) -> NameValuePairs:
    """Return the fields of a form: those in `styled` by their style; else arrays repeat their name, objects are JSON text.

    A null is an empty field: JSON's `null` would be read as a text.
    """
    pairs: NameValuePairs = []
    for name, value in values.items():
        if name in styled and value is not None:
            pairs += format_pairs(name, value, styled[name])
            continue
        items = value if isinstance(value, list) else [value if value is not None else ""]
        pairs += [
            (name, to_json_text(item) if isinstance(item, dict | list) else scalar_to_text(item)) for item in items
        ]
    return pairs


def _format_deep_object(wire_name: str, value: Any) -> NameValuePairs:
    """Return `a[b]=1` for an object, `a[]=1` for a list, and `a[0][b]=1` for a list of objects or lists.

    OpenAPI leaves nested values open; servers in PHP, Ruby and Node read these names.
    """
    if isinstance(value, dict):
        items = [(f"[{key}]", inner) for key, inner in value.items()]
    elif isinstance(value, list):
        is_nested = any(isinstance(item, dict | list) for item in value)
        items = [(f"[{index}]" if is_nested else "[]", item) for index, item in enumerate(value)]
    else:
        return [(wire_name, scalar_to_text(value))]
    return [pair for suffix, inner in items for pair in _format_deep_object(f"{wire_name}{suffix}", inner)]


def _format_scalar(name: str, value: Any) -> str:
    if isinstance(value, dict | list):
        raise InvalidArguments(
            (
                FieldProblem(
                    name, "must hold plain values: nothing nested can be written here", to_json_text(value)[:200]
                ),
            )
        )
    return scalar_to_text(value)
