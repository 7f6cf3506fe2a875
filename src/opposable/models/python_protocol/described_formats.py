"""Texts in the only format that a parameter description names, such as YYYY-MM-DD or 'City, State'."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.python_protocol.prompts import get_schema

REPAIR = "date in the described format"

_DATE_FORMAT_PATTERN = re.compile(
    r"(?<![a-z])(y{4}|[md]{1,2})([-/.])([md]{1,2})\2(y{4}|[md]{1,2})(?![a-z]|.?h{1,2}:)", re.IGNORECASE
)

_PARTS_FORMAT_PATTERN = re.compile(r"[Ff]ormat\w*[^'\"`]{0,25}['\"`]([A-Z][A-Za-z ]*(?:, [A-Z][A-Za-z ]*)+)")
"""A quoted format of parts between commas."""


def find_pattern(schema: dict[str, Any]) -> str:
    """Return a pattern for the only format that the description of a text names; "" without one."""
    if date_format := find_date_format(schema):
        return build_date_pattern(date_format)
    comma_counts = {parts.count(",") for parts in _PARTS_FORMAT_PATTERN.findall(_get_description(schema))}
    return f"^[^,]+(, [^,]+){{{comma_counts.pop()},}}$" if len(comma_counts) == 1 else ""


def find_date_format(schema: dict[str, Any]) -> str:
    """Return the only format that the description of a text names, such as "yyyy-mm-dd"; "" without one."""
    formats = {match[0].lower() for match in _DATE_FORMAT_PATTERN.finditer(_get_description(schema))}
    return formats.pop() if len(formats) == 1 else ""


def build_date_pattern(date_format: str) -> str:
    """Return a pattern for dates in a format, in which days and months may have one digit.

    A small model that must write two digits continues 2023-10-1 to 2023-10-10.
    """
    digits = re.sub("y+", "[0-9]{4}", re.sub("[md]+", "[0-9]{1,2}", date_format.replace(".", "[.]")))
    return f"^{digits}$"


def pad_dates(calls: Sequence[ToolCall], tools: Sequence[ToolDefinition]) -> list[ToolCall]:
    """Write days and months with as many digits as the described format."""
    padded_calls = []
    for call in calls:
        properties = get_schema(call, tools).properties()
        padded = {name: _pad_date(value, properties.get(name)) for name, value in call.arguments.items()}
        repaired = replace(call, arguments=padded, raw=None, repairs=(*call.repairs, REPAIR))
        padded_calls.append(call if padded == call.arguments else repaired)
    return padded_calls


def _pad_date(value: Any, schema: Any) -> Any:
    date_format = find_date_format(schema) if isinstance(schema, dict) and isinstance(value, str) else ""
    if not date_format or not re.match(build_date_pattern(date_format), value):
        return value
    lengths = [len(part) for part in re.split("[-/.]", date_format)]
    mark = date_format[lengths[0]]
    return mark.join(part.zfill(length) for part, length in zip(value.split(mark), lengths, strict=True))


def _get_description(schema: dict[str, Any]) -> str:
    """Return the description of a text without choices; "" for another value."""
    description = schema.get("description")
    is_free_text = schema.get("type") == "string" and "enum" not in schema and isinstance(description, str)
    return description if is_free_text else ""  # type: ignore[return-value]  # a text, as just checked
