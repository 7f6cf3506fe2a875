"""Values of rows as JSON, and rows as a table of text."""

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

_EXACT = 2**53 - 1
_WIDEST = 40


def cell(value: Any) -> Any:
    """A value as JSON can hold it without loss: dates in ISO form, large numbers and odd floats as text."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if -_EXACT <= value <= _EXACT else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return float(value) if value.is_finite() and Decimal(repr(float(value))) == value else str(value)
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            return f"<{len(value)} bytes>"
        case dict():
            return {str(key): cell(item) for key, item in value.items()}
        case list() | tuple() | set():
            return [cell(item) for item in value]
        case _:
            return str(value)


def text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows as lines of aligned columns, cells cut at 40 characters."""
    lines = [[_shown(value) for value in line] for line in (columns, *rows)]
    widths = [max(_width(line[at]) for line in lines) for at in range(len(columns))]
    told = [
        " | ".join(_padded(text, width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
    told.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join(told)


def _shown(value: Any) -> str:
    text = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _width(text: str) -> int:
    """Columns a text takes in a terminal: a Chinese character takes two."""
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
