"""How arrays and objects are written in paths, queries, headers and cookies."""

from collections.abc import Mapping
from typing import Any

import orjson

from opposable.domain.errors import FieldProblem, InvalidArguments
from opposable.domain.specs import Place

Pairs = list[tuple[str, str]]
_BETWEEN = {"spaceDelimited": " ", "pipeDelimited": "|"}


def as_text(value: Any) -> str:
    """A scalar as it is written outside of JSON: text as it is, true and false and numbers as in JSON."""
    return value if isinstance(value, str) else as_json(value)


def as_json(value: Any) -> str:
    """A value as JSON text. Raises: `InvalidArguments` for what JSON cannot hold."""
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise InvalidArguments((FieldProblem("", "must be data that JSON can hold"),)) from error


def simple(name: str, value: Any, place: Place) -> str:
    """A value of a path or header: items joined by commas. Raises: `InvalidArguments` for nested values."""
    if place.style == "json":
        return as_json(value)
    if isinstance(value, dict):
        sign = "=" if place.explode else ","
        return ",".join(f"{key}{sign}{_scalar(name, inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ",".join(_scalar(name, item) for item in value)
    return as_text(value)


def pairs(name: str, value: Any, place: Place) -> Pairs:
    """The name-value pairs of a query, form or cookie parameter, unencoded. Raises: `InvalidArguments` for nested values."""
    wire = place.name or name
    style = place.style or "form"
    explode = place.explode if place.explode is not None else style in ("form", "deepObject")
    if style == "json":
        return [(wire, as_json(value))]
    if style == "deepObject" and isinstance(value, dict):
        return [pair for key, inner in value.items() for pair in _deep(name, f"{wire}[{key}]", inner)]
    between = _BETWEEN.get(style, ",")
    if isinstance(value, dict):
        if explode:
            return [(key, _scalar(name, inner)) for key, inner in value.items()]
        return [(wire, between.join(part for key, inner in value.items() for part in (key, _scalar(name, inner))))]
    if isinstance(value, list):
        items = [_scalar(name, item) for item in value]
        return [(wire, item) for item in items] if explode else [(wire, between.join(items))]
    return [(wire, as_text(value))]


def form_pairs(values: Mapping[str, Any]) -> Pairs:
    """The fields of a form: arrays repeat their name, objects are JSON text."""
    told: Pairs = []
    for name, value in values.items():
        items = value if isinstance(value, list) else [value]
        told += [(name, as_json(item) if isinstance(item, dict | list) else as_text(item)) for item in items]
    return told


def _deep(name: str, wire: str, value: Any) -> Pairs:
    items = value if isinstance(value, list) else [value]
    return [(wire, _scalar(name, item)) for item in items]


def _scalar(name: str, value: Any) -> str:
    if isinstance(value, dict | list):
        raise InvalidArguments(
            (FieldProblem(name, "must hold plain values: nothing nested can be written here", as_json(value)[:200]),)
        )
    return as_text(value)
