"""Repairs of the arguments of a Python call, by the schema of its function and the request."""

import difflib
import re
from collections.abc import Sequence
from typing import Any

from opposable.models.python_protocol.dates import format_as_described
from opposable.models.python_protocol.request_grounding import find_requested_choices
from opposable.parsers.schema_coercion import SchemaNode

_PERCENTAGE_PATTERN = re.compile(r"(\d+(?:\.\d+)?)\s*(?:%|％|per ?cent)")
_MAX_EXACT_NUMBER = 2**53
_MIN_SIMILARITY = 0.5
"""The similarity from which a value is replaced by a choice (`difflib` ratio)."""


def wrap_in_single_object(arguments: dict[str, Any], schema: SchemaNode, repairs: list[str]) -> dict[str, Any]:
    """Wrap the arguments in the only required object they belong to: `f(x=1)` as `f(body={"x": 1})`."""
    if list(schema.required_names()) != list(schema.properties()) or len(schema.required_names()) != 1:
        return arguments
    [name] = schema.required_names()
    inner = schema.get_property(name).get_alternative("object").properties()
    if name in arguments or not arguments or not all(each in inner for each in arguments):
        return arguments
    repairs.append("arguments put into the object they belong to")
    return {name: arguments}


def drop_unknown_arguments(arguments: dict[str, Any], schema: SchemaNode, repairs: list[str]) -> dict[str, Any]:
    """Drop arguments that the function does not have, unless they may be a misspelled name."""
    names = schema.properties()
    if (
        "additionalProperties" in schema.node
        or not names
        or not all(name in arguments for name in schema.required_names())
    ):
        return arguments
    missing_names = [name for name in names if name not in arguments]
    known_arguments = {
        name: value
        for name, value in arguments.items()
        if name in names or difflib.get_close_matches(name, missing_names, 1)
    }
    if len(known_arguments) < len(arguments):
        repairs.append("argument that the function does not have dropped")
    return known_arguments


def convert_percentage(value: Any, schema: SchemaNode, conversation: str, repairs: list[str]) -> Any:
    """Convert a percentage to the form that the description asks for, such as 0.05 for 5 %."""
    if type(value) not in (int, float) or abs(value) >= _MAX_EXACT_NUMBER:
        return value
    about = schema.description().casefold()
    percentage, decimal = "percent" in about or "百分" in about, "decimal" in about or "小数" in about
    if percentage == decimal:
        return value
    wanted = round(value * 100, 6) if percentage else round(value / 100, 8)
    spoken = {float(number) for number in _PERCENTAGE_PATTERN.findall(conversation)}
    if max(value, wanted) not in spoken or (value >= 1 if percentage else value < 1):
        return value
    repairs.append("per cent as the description wants them")
    return wanted


def _to_decimal(item: Any) -> Any:
    """Return an integer in a list of decimals as a decimal."""
    return float(item) if type(item) is int and abs(item) < _MAX_EXACT_NUMBER else item


def take_nearest_choice(value: Any, schema: SchemaNode, request_words: Sequence[str], repairs: list[str]) -> Any:
    """Replace each text outside its choices by the requested or most similar choice."""
    if isinstance(value, dict):
        inner = schema.get_alternative("object")
        return {
            name: take_nearest_choice(item, inner.get_property(name), request_words, repairs)
            for name, item in value.items()
        }
    if isinstance(value, list):
        inner = schema.get_alternative("array")
        items = [
            take_nearest_choice(item, inner.get_item_schema(n), request_words, repairs) for n, item in enumerate(value)
        ]
        return [
            _to_decimal(item) if inner.get_item_schema(n).allowed_types() == {"number"} else item
            for n, item in enumerate(items)
        ]
    choices = [choice for choice in schema.choices() if isinstance(choice, str)]
    if isinstance(value, str) and (dated := format_as_described(value, schema.description())) != value:
        repairs.append("date as the description wants it")
        return dated
    if not isinstance(value, str) or not choices or value in choices:
        return value
    folded = {choice.casefold(): choice for choice in reversed(choices)}
    asked_for = find_requested_choices(choices, request_words) if value.casefold() not in folded else []
    like = difflib.get_close_matches(value.casefold(), folded, n=1, cutoff=_MIN_SIMILARITY)
    if len(asked_for) != 1 and not like:
        return value
    repairs.append("nearest choice taken")
    return asked_for[0] if len(asked_for) == 1 else folded[like[0]]
