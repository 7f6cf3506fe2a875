"""Values in the shape that the descriptions of their parameters show."""

import pytest

from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.python_protocol.value_formats import find_format_mismatches, find_literal

PLACE = "Where, in the form 'City, State (abbr)', such as 'San Francisco, CA', or 'City, Country'."


def list_mismatches(about: str, value: str, **more) -> list[str]:
    tool = ToolDefinition("find", "", {"type": "object", "properties": {"at": {"description": about, **more}}})
    call = ToolCall("1", "find", {"at": value})
    return [each.prefix for each in find_format_mismatches(call, (tool,))]


@pytest.mark.parametrize(
    ("about", "value", "begun"),
    [
        (PLACE, "Oslo", ["Oslo,"]),
        ("The city and state, e.g. Portland, OR", "Salem", ["Salem,"]),
        ("The town. In the format City, Country", "Bergen", ["Bergen,"]),
        ("格式为“城市，国家”", "奥斯陆", ["奥斯陆，"]),
        (PLACE, "Oslo, Norway", []),
        (PLACE, "", []),
        (PLACE, "0150 Oslo", []),
        ("The name of a city, such as 'Portland, OR'", "Oslo", []),
        ("Cities separated by commas, as in the state: 'Oslo, Bergen'", "Oslo", []),
        ("A state's colour, e.g. 'red'", "green", []),
        ("The state, e.g. Ohio, Iowa, Utah", "Oregon", []),
        ("An address such as 'https://example.org http://example.org'", "example.com", []),
        ("A time as 'HH:MM:SS'", "noon", []),
        ("", "Oslo", []),
    ],
)
def test_a_text_lacks_the_shape_that_its_description_shows(about, value, begun):
    assert list_mismatches(about, value) == begun


def test_a_choice_has_no_shape_to_lack():
    assert list_mismatches(PLACE, "Oslo", enum=["Oslo"]) == []


@pytest.mark.parametrize(
    ("about", "value", "rest", "whole"),
    [
        (PLACE, "Oslo", " Norway", "Oslo, Norway"),
        (PLACE, "Kyiv", "Ukraine", "Kyiv, Ukraine"),
        ("如“城市，国家”", "奥斯陆", "挪威", "奥斯陆，挪威"),
        (PLACE, "Oslo", "", None),
        (PLACE, "Oslo", " Oslo", None),
        (PLACE, "Oslo", " 0150", None),
        (PLACE, "Oslo", " unit=celsius", None),
        (PLACE, "Oslo", " The Kingdom of Norway", None),
    ],
)
def test_what_the_model_goes_on_with_is_taken_where_it_makes_the_shape(about, value, rest, whole):
    tool = ToolDefinition("find", "", {"type": "object", "properties": {"at": {"description": about}}})
    [each] = find_format_mismatches(ToolCall("1", "find", {"at": value}), (tool,))
    assert each.complete_value(rest) == whole


@pytest.mark.parametrize(
    ("code", "at"),
    [("find(at='Oslo')", 9), ('find(at="Oslo")', 9), ("find(at='Oslo', to='Oslo')", None), ("find(at=Oslo)", None)],
)
def test_a_literal_is_found_if_it_is_the_only_one(code, at):
    assert find_literal(code, "Oslo") == at
