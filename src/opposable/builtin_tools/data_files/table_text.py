"""Conversion of table values to JSON, and of rows to a text table."""

import datetime
import math
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

_MAX_EXACT_INTEGER = 2**53 - 1
_MAX_CELL_WIDTH = 40


def to_json_value(value: Any) -> Any:
    """Convert a value to JSON without loss: dates in ISO format, large integers and non-finite floats as text."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if -_MAX_EXACT_INTEGER <= value <= _MAX_EXACT_INTEGER else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return float(value) if value.is_finite() and Decimal(repr(float(value))) == value else str(value)
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            return f"<{len(value)} bytes>"
        case dict():
            return {str(key): to_json_value(item) for key, item in value.items()}
        case list() | tuple() | set():
            return [to_json_value(item) for item in value]
        case _:
            return str(value)


def format_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Format rows as aligned columns. Cells have at most 40 characters."""
    lines = [[_format_cell(value) for value in cells] for cells in (columns, *rows)]
    widths = [max(_get_display_width(cells[index]) for cells in lines) for index in range(len(columns))]
    text_lines = [
        " | ".join(_pad(text, width) for text, width in zip(cells, widths, strict=True)).rstrip() for cells in lines
    ]
    text_lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join(text_lines)


def _format_cell(value: Any) -> str:
    text = "" if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _MAX_CELL_WIDTH else text[: _MAX_CELL_WIDTH - 1] + "…"


def _get_display_width(text: str) -> int:
    """Return the terminal columns of a text. A Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _get_display_width(text))
