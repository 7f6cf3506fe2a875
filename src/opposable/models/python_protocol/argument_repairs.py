"""The arguments of a call written as Python, put right by its function's schema and the request."""

import difflib
import re
from collections.abc import Sequence
from typing import Any

from opposable.models.python_protocol.dates import as_described
from opposable.models.python_protocol.request_grounding import choices_said
from opposable.parsers.schema_coercion import Schema

_PER_CENT = re.compile(r"(\d+(?:\.\d+)?)\s*(?:%|％|per ?cent)")
_NOT_OF_ISO = {"UK": "GB", "EL": "GR"}
"""Codes of countries in common use for which ISO 3166 has others."""
_ALPHA_2 = re.compile(r"3166(?!.*alpha-?3)", re.IGNORECASE | re.DOTALL)
_EXACT = 2**53
_LIKE = 0.5
"""How much a value must be like one of the choices to be taken for it (`difflib`'s ratio)."""


def put_inside(given: dict[str, Any], schema: Schema, repairs: list[str]) -> dict[str, Any]:
    """The arguments, with those that belong into the only required object put there: `f(x=1)` for `f(body={"x": 1})`."""
    if list(schema.required()) != list(schema.properties()) or len(schema.required()) != 1:
        return given
    [name] = schema.required()
    inner = schema.property(name).branch("object").properties()
    if name in given or not given or not all(each in inner for each in given):
        return given
    repairs.append("arguments put into the object they belong to")
    return {name: given}


def without_unknown(given: dict[str, Any], schema: Schema, repairs: list[str]) -> dict[str, Any]:
    """The arguments without those that the function does not have, unless one may be another's name written wrongly."""
    names = schema.properties()
    if "additionalProperties" in schema.node or not names or not all(name in given for name in schema.required()):
        return given
    left = [name for name in names if name not in given]
    kept = {name: value for name, value in given.items() if name in names or difflib.get_close_matches(name, left, 1)}
    if len(kept) < len(given):
        repairs.append("argument that the function does not have dropped")
    return kept


def as_share(value: Any, schema: Schema, said: str, repairs: list[str]) -> Any:
    """A number spoken of in per cent as the parameter's description wants it: 5 for a percentage, 0.05 for a decimal."""
    if type(value) not in (int, float) or abs(value) >= _EXACT:
        return value
    about = schema.description().casefold()
    percentage, decimal = "percent" in about or "百分" in about, "decimal" in about or "小数" in about
    if percentage == decimal:
        return value
    wanted = round(value * 100, 6) if percentage else round(value / 100, 8)
    spoken = {float(number) for number in _PER_CENT.findall(said)}
    if max(value, wanted) not in spoken or (value >= 1 if percentage else value < 1):
        return value
    repairs.append("per cent as the description wants them")
    return wanted


def _decimal(item: Any) -> Any:
    """A whole number in a list of decimals as a decimal: such a list has items of one type."""
    return float(item) if type(item) is int and abs(item) < _EXACT else item


def chosen(value: Any, schema: Schema, asked: Sequence[str], repairs: list[str]) -> Any:
    """The value with each text that must be one of some choices made the one that was asked for or is most like it."""
    if isinstance(value, dict):
        inner = schema.branch("object")
        return {name: chosen(item, inner.property(name), asked, repairs) for name, item in value.items()}
    if isinstance(value, list):
        inner = schema.branch("array")
        items = [chosen(item, inner.items(n), asked, repairs) for n, item in enumerate(value)]
        return [_decimal(item) if inner.items(n).kinds() == {"number"} else item for n, item in enumerate(items)]
    choices = [choice for choice in schema.choices() if isinstance(choice, str)]
    if isinstance(value, str) and (dated := as_described(value, schema.description())) != value:
        repairs.append("date as the description wants it")
        return dated
    if isinstance(value, str) and value in _NOT_OF_ISO and not choices and _ALPHA_2.search(schema.description()):
        repairs.append("country code as ISO 3166 has it")
        return _NOT_OF_ISO[value]
    if not isinstance(value, str) or not choices or value in choices:
        return value
    folded = {choice.casefold(): choice for choice in reversed(choices)}
    asked_for = choices_said(choices, asked) if value.casefold() not in folded else []
    like = difflib.get_close_matches(value.casefold(), folded, n=1, cutoff=_LIKE)
    if len(asked_for) != 1 and not like:
        return value
    repairs.append("nearest choice taken")
    return asked_for[0] if len(asked_for) == 1 else folded[like[0]]
