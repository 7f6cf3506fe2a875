"""Texts in the described format."""

import pytest

from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.python_protocol.described_formats import (
    REPAIR,
    build_date_pattern,
    find_date_format,
    find_pattern,
    pad_dates,
)


@pytest.mark.parametrize(
    ("description", "date_format", "pattern"),
    [
        ("The day, in the format YYYY-MM-DD.", "yyyy-mm-dd", "^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}$"),
        ("日期，格式 yyyy.mm.dd", "yyyy.mm.dd", "^[0-9]{4}[.][0-9]{1,2}[.][0-9]{1,2}$"),
        ("MM/DD/YYYY, such as 01/31/2025 (MM/DD/YYYY)", "mm/dd/yyyy", "^[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}$"),
        ("YYYY-MM-DD or MM/DD/YYYY", "", "^$"),
        ("YYYY-MM-DD HH:MM", "", "^$"),
        ("YYYY-MM-DDTHH:MM:SS", "", "^$"),
        ("Any day.", "", "^$"),
        (None, "", "^$"),
    ],
)
def test_a_description_names_one_format(description, date_format, pattern):
    schema = {"type": "string", "description": description}
    assert find_date_format(schema) == date_format
    assert build_date_pattern(date_format) == pattern
    assert find_date_format({**schema, "enum": ["today"]}) == find_date_format({**schema, "type": "integer"}) == ""


@pytest.mark.parametrize(
    ("description", "pattern"),
    [
        ("The city, in the format 'City, State', such as 'Berkeley, CA'.", "^[^,]+(, [^,]+){1,}$"),
        ('Formatted as "Street, City, State (abbr)".', "^[^,]+(, [^,]+){2,}$"),
        ("In the format of 'City, State' or 'City, Country'.", "^[^,]+(, [^,]+){1,}$"),
        ("Format: 'City, State', or in the format 'Street, City, State'.", ""),
        ("The format, one of (e.g., standard, 3D, IMAX).", ""),
        ("The city, such as 'Berkeley, CA'.", ""),
        ("The day, in the format YYYY-MM-DD.", "^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}$"),
        (None, ""),
    ],
)
def test_the_parts_of_a_described_format_are_required(description, pattern):
    schema = {"type": "string", "description": description}
    assert find_pattern(schema) == pattern
    assert find_pattern({**schema, "enum": ["Berkeley"]}) == find_pattern({**schema, "type": "integer"}) == ""


@pytest.mark.parametrize(
    ("value", "padded"),
    [
        ("2023-10-1", "2023-10-01"),
        ("2023-10-01", "2023-10-01"),
        ("1 October", "1 October"),
        ("1-2-2023", "1-2-2023"),
        (7, 7),
    ],
)
def test_days_and_months_are_padded(value, padded):
    about = {"type": "string", "description": "As YYYY-MM-DD."}
    tool = ToolDefinition("book", "", {"type": "object", "properties": {"day": about, "note": {"type": "string"}}})
    call = ToolCall("c", "book", {"day": value, "note": "2023-10-1"})
    [made] = pad_dates((call,), (tool,))
    assert made.arguments == {"day": padded, "note": "2023-10-1"}
    assert made.repairs == ((REPAIR,) if padded != value else ())
