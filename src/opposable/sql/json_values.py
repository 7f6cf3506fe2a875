"""Turns what engines return into values that JSON can hold."""

import datetime
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_EXACT = 2**53 - 1
"""Whole numbers beyond this lose digits in JavaScript, so they travel as text."""


def json_value(value: Any) -> Any:
    """`value` as JSON: dates in ISO form, blobs as "<blob 12 bytes>", NaN and infinities as text.

    A decimal becomes a number when that number is exactly it, else text, and so does a whole number beyond 2**53.
    """
    match value:
        case None | bool():
            return value
        case str():
            return value.encode("utf-8", "replace").decode() if _has_surrogates(value) else value
        case int():
            return value if -_EXACT <= value <= _EXACT else str(value)
        case float():
            return value if math.isfinite(value) else _not_finite(value)
        case Decimal():
            return _decimal(value)
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            return f"<blob {len(value)} bytes>"
        case Mapping():
            return {str(json_value(key)): json_value(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [json_value(item) for item in value]
        case _:
            return str(value)


def cut_cell(value: Any, characters: int) -> tuple[Any, bool]:
    """A JSON value of at most `characters` characters, and whether it was cut; lists and objects are cut as text."""
    if isinstance(value, str):
        return (value, False) if len(value) <= characters else (value[:characters] + "…", True)
    if isinstance(value, list | dict):
        text = str(value)
        return (value, False) if len(text) <= characters else (text[:characters] + "…", True)
    return value, False


def _decimal(value: Decimal) -> Any:
    if not value.is_finite():
        return _not_finite(float(value))
    if value == value.to_integral_value():
        return json_value(int(value))
    return float(value) if Decimal(repr(float(value))) == value else str(value)


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _has_surrogates(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)
