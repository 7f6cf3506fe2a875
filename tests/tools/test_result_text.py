"""The text for the model of what a tool returned."""

from dataclasses import dataclass
from decimal import Decimal

import pytest

from opposable.tools.result_text import value_to_text


@dataclass
class Point:
    x: Decimal
    tags: set[str]


class Array:
    """Like an array of numpy."""

    def __init__(self, values):
        self.values = values

    def tolist(self):
        return self.values


class Frame:
    """Like a table of pandas."""

    columns = ("a",)

    def to_dict(self, orient):
        assert orient == "records"
        return [{"a": Array(1)}]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (range(3), "[0,1,2]"),
        (2**70, "1180591620717411303424"),
        ([Point(Decimal("1.50"), {"a"})], '[{"x":"1.50","tags":["a"]}]'),
        ({"mean": Array(1.5), "rows": Array([1, 2])}, '{"mean":1.5,"rows":[1,2]}'),
        (Frame(), '[{"a":1}]'),
    ],
)
def test_values_of_common_libraries_become_json(value, text):
    assert value_to_text(value) == text
