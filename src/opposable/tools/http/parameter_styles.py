"""Serialization of arguments in paths, queries, headers and cookies, by OpenAPI's parameter styles."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote_plus

from opposable.domain.argument_problems import must_be
from opposable.domain.errors import FieldProblem, InvalidArguments
from opposable.domain.json_text import dump_json
from opposable.domain.specs import ParameterPlacement

NameValuePairs = list[tuple[str, str]]
Encode = Callable[[str], str]
"""Encodes one name or value, or a separator that its place does not allow."""
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


def format_simple(name: str, value: Any, place: ParameterPlacement, encode: Encode = str) -> str:
    """Serialize a value of a path or header, with commas. Raises: `InvalidArguments` for nested values.

    Nulls are left out unless there is nothing else: a path cannot be without a value.
    """
    if place.style == "json":
        return encode(to_json_text(value))
    value = _drop_nulls(value) or value
    if isinstance(value, dict):
        sign = "=" if place.explode else ","
        return ",".join(f"{encode(key)}{sign}{encode(_format_scalar(name, inner))}" for key, inner in value.items())
    if isinstance(value, list):
        return ",".join(encode(_format_scalar(name, item)) for item in value)
    return encode(scalar_to_text(value))


def format_pairs(
    name: str, value: Any, place: ParameterPlacement, encode: Encode = str, *, keep_nulls: bool = False
) -> NameValuePairs:
    """Return the encoded pairs of a query, form or cookie parameter. Raises: `InvalidArguments` for nested values."""
    wire = encode(place.name or name)
    style = place.style or "form"
    explode = place.explode if place.explode is not None else style in ("form", "deepObject")
    if style == "json":
        return [(wire, encode(to_json_text(value)))]
    value = value if keep_nulls else _drop_nulls(value)
    if style == "deepObject":
        return [(encode(key), encode(text)) for key, text in _format_deep_object(place.name or name, value)]
    if value in ([], {}):  # not sent, as in RFC 6570
        return []
    separator = encode(_SEPARATORS[style]) if style in _SEPARATORS else ","
    if isinstance(value, dict):
        items = [(encode(key), encode(_format_scalar(name, inner))) for key, inner in value.items()]
        return items if explode else [(wire, separator.join(part for item in items for part in item))]
    if isinstance(value, list):
        texts = [encode(_format_scalar(name, item)) for item in value]
        return [(wire, text) for text in texts] if explode else [(wire, separator.join(texts))]
    return [(wire, encode(scalar_to_text(value)))]


def format_form(values: Mapping[str, Any], styled: Mapping[str, ParameterPlacement]) -> str:
    """Return a form: fields in `styled` by their style; else arrays repeat their name, and objects are JSON text.

    A null is an empty field: JSON's `null` would be read as a text. In an array or object, it is the word `null`.
    """
    pairs: NameValuePairs = []
    for name, value in values.items():
        if name in styled and value is not None:
            pairs += format_pairs(name, value, styled[name], _encode_form_text, keep_nulls=True)
            continue
        pairs += [(_encode_form_text(name), _encode_form_text(scalar_to_text(item))) for item in to_field_values(value)]
    return "&".join(f"{key}={text}" for key, text in pairs)


def to_field_values(value: Any) -> list[Any]:
    """Return the values of a form field, which repeats its name for each item of a list."""
    return value if isinstance(value, list) else ["" if value is None else value]


def _encode_form_text(text: str) -> str:
    return quote_plus(text, errors="replace")


def _drop_nulls(value: Any) -> Any:
    """Return an object or list without the nulls in it, which RFC 6570 leaves out."""
    if isinstance(value, dict):
        return {key: _drop_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_drop_nulls(item) for item in value if item is not None] if isinstance(value, list) else value


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
        problem = "must hold plain values: nothing nested can be written here"
        raise InvalidArguments((FieldProblem(name, problem, to_json_text(value)[:200]),))
    return scalar_to_text(value)
