"""Conversion of engine values to JSON values."""

import datetime
import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import orjson

from opposable.domain.json_text import format_non_finite

_MAX_SAFE_INTEGER = 2**53 - 1
"""Larger integers lose digits in JavaScript, so they become text."""

_MAX_DIGITS = 200_000
"""Digits of the largest decimal that is written without an exponent; PostgreSQL has up to 131,072."""


def to_json_value(value: Any) -> Any:
    """Return `value` as a JSON value.

    Dates become ISO text, blobs "<blob 12 bytes>", NaN and infinities text. A decimal becomes a number where a float
    holds it exactly, else text. Integers beyond 2**53 become text, as does a value nested beyond Python's recursion limit.
    """
    try:
        return _convert(value)
    except RecursionError:
        return str(value)


def _convert(value: Any) -> Any:
    match value:
        case None | bool():
            return value
        case str():
            return value if value.isascii() else value.encode("utf-8", "replace").decode()
        case int():
            return value if -_MAX_SAFE_INTEGER <= value <= _MAX_SAFE_INTEGER else str(value)
        case float():
            return value if math.isfinite(value) else format_non_finite(value)
        case Decimal():
            return _decimal_to_json(value)
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            return f"<blob {len(value)} bytes>"
        case Mapping():
            return {
                str(key).lower() if isinstance(key, bool) else str(_convert(key)): _convert(item)
                for key, item in value.items()
            }
        case list() | tuple() | set() | frozenset():
            return [_convert(item) for item in value]
        case _:
            return str(value)


def truncate_cell(value: Any, max_characters: int) -> tuple[Any, bool]:
    """Truncate a JSON value, and return it and whether it was truncated.

    Lists and objects are truncated as JSON text. Those nested too deeply for orjson (254 levels) are returned as text.
    """
    if isinstance(value, str):
        return (value, False) if len(value) <= max_characters else (value[:max_characters] + "…", True)
    if isinstance(value, list | dict):
        try:
            text = orjson.dumps(value).decode()
        except TypeError:
            return truncate_cell(json.dumps(value, ensure_ascii=False, separators=(",", ":")), max_characters)
        return (value, False) if len(text) <= max_characters else (text[:max_characters] + "…", True)
    return value, False


def _decimal_to_json(value: Decimal) -> Any:
    if not value.is_finite():
        return format_non_finite(float(value))
    if value.adjusted() > _MAX_DIGITS:
        return str(value)
    if value == value.to_integral_value():
        return int(value) if abs(value) <= _MAX_SAFE_INTEGER else f"{value.to_integral_value():f}"
    return float(value) if Decimal(repr(float(value))) == value else str(value)
