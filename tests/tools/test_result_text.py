"""The text for the model of what a tool returned."""

import sqlite3
import threading
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import numpy
import pandas
import pytest
from pydantic import BaseModel, Field
from sqlalchemy import create_engine
from sqlalchemy import text as sql_text

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


@dataclass(slots=True)
class Span:
    start: float
    end: float | None = None


class Fare(BaseModel):
    amount: float = Field(serialization_alias="fareAmount")


def test_a_dataclass_with_a_value_that_cannot_be_copied_becomes_json():
    point = Point(Decimal(1), threading.Lock())
    assert value_to_text(point) == f'{{"x":"1","tags":"{point.tags}"}}'


INFINITY, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (INFINITY, "Infinity"),
        (NAN, "NaN"),
        ({"max": -INFINITY, "n": [None, 1.5, (NAN,)]}, '{"max":"-Infinity","n":[null,1.5,["NaN"]]}'),
        ([Span(INFINITY), {"null": 1.5}], '[{"start":"Infinity","end":null},{"null":1.5}]'),
        ({"at": Decimal("1.5"), "x": [NAN, None]}, '{"at":"1.5","x":["NaN",null]}'),
        (Fare(amount=NAN), '{"fareAmount":"NaN"}'),
        (numpy.array([1.5, NAN, INFINITY]), '[1.5,"NaN","Infinity"]'),
        ({"null": None, "n": 2**70}, '{"null": null, "n": 1180591620717411303424}'),
    ],
)
def test_not_a_number_and_infinity_become_text(value, text):
    assert value_to_text(value) == text


SALES = pandas.DataFrame({"city": ["Rome", "Rome", "Oslo"], "pieces": [1, 2, 4]})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (SALES.groupby("city").pieces.sum(), '{"Oslo":4,"Rome":3}'),
        (SALES.city.value_counts(), '{"Rome":2,"Oslo":1}'),
        (SALES.pieces, "[1,2,4]"),
        (SALES.iloc[0], '{"city":"Rome","pieces":1}'),
        (pandas.Series([1, 2], index=["a", "a"]), '[["a",1],["a",2]]'),
        (SALES.groupby("city").max(), '[{"city":"Oslo","pieces":4},{"city":"Rome","pieces":2}]'),
        (SALES[:1].describe().loc[["mean"]], '[{"index":"mean","pieces":1.0}]'),
        (SALES[2:].set_index("city", drop=False), '{"index":["Oslo"],"columns":["city","pieces"],"data":[["Oslo",4]]}'),
        ({"rows": SALES[:1]}, '{"rows":[{"city":"Rome","pieces":1}]}'),
        (pandas.DataFrame({"a": [1.5, NAN, INFINITY]}), '[{"a":1.5},{"a":null},{"a":"Infinity"}]'),
        (pandas.Series([1.5, NAN]), "[1.5,null]"),
        (pandas.Series([1, None], dtype="Int64"), "[1,null]"),
        (
            pandas.DataFrame({"day": [pandas.Timestamp("2026-01-31"), None]}),
            '[{"day":"2026-01-31 00:00:00"},{"day":null}]',
        ),
        ({"first": pandas.NaT, "last": pandas.NA}, '{"first":null,"last":null}'),
        (pandas.DataFrame([[1, 2]], columns=["a", "a"]), '{"index":[0],"columns":["a","a"],"data":[[1,2]]}'),
        (pandas.DataFrame([[1, 2]], ["x"], ["a", "a"]), '{"index":["x"],"columns":["a","a"],"data":[[1,2]]}'),
        (pandas.Series([1.5, NAN], index=["a", "b"]), '{"a":1.5,"b":null}'),
    ],
)
def test_tables_and_columns_of_pandas_have_their_row_labels_and_no_missing_values(value, text):
    assert value_to_text(value) == text


class PolarsFrame:
    """Like a table of polars."""

    columns = ("a",)

    def to_dict(self, *, as_series=True):
        raise AssertionError(as_series)

    def to_dicts(self):
        return [{"a": Decimal("1.10")}]


class Place(NamedTuple):
    latitude: float
    seen: Decimal


def test_rows_have_the_names_of_their_columns():
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    assert value_to_text(connection.execute("SELECT 1 AS a, 'x' AS b").fetchall()) == '[{"a":1,"b":"x"}]'
    assert value_to_text(connection.execute("SELECT 1 AS a, 'x' AS a").fetchone()) == '[1,"x"]'
    connection.close()
    assert value_to_text(PolarsFrame()) == '[{"a":"1.10"}]'
    assert value_to_text([Place(1.5, Decimal("2.0"))]) == '[{"latitude":1.5,"seen":"2.0"}]'


def test_rows_of_sqlalchemy_have_all_columns():
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        rows = connection.execute(sql_text("SELECT 1 AS a, 'x' AS b")).all()
        joined_rows = connection.execute(sql_text("SELECT 1 AS id, 2 AS id")).all()
    engine.dispose()
    assert value_to_text(rows) == '[{"a":1,"b":"x"}]'
    assert value_to_text(joined_rows) == "[[1,2]]"


class Steps(list):
    """Steps of a plan, which have an index and a dictionary, but not those of pandas."""

    def to_dict(self):
        raise AssertionError


def test_only_objects_of_pandas_have_row_labels():
    assert value_to_text({"steps": Steps(["a", "b"])}) == '{"steps":["a","b"]}'


def test_classes_become_their_names():
    assert value_to_text({"types": [Place, Array]}) == f'{{"types":["{Place}","{Array}"]}}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("läuft\n".encode(), "läuft\n"),
        (bytearray(b"[1]"), "[1]"),
        ({"out": b"ok"}, '{"out":"ok"}'),
        (b"\x89PNG", "<4 bytes>"),
        ({"raw": b"a\x00b"}, '{"raw":"<3 bytes>"}'),
    ],
)
def test_bytes_that_are_text_become_text(value, text):
    assert value_to_text(value) == text


@pytest.mark.parametrize("depth", [300, 500, 1500])
def test_deep_values_become_json(depth):
    value = [Decimal("1.5")]
    for _ in range(depth):
        value = [value]
    assert value_to_text(value) == "[" * (depth + 1) + '"1.5"' + "]" * (depth + 1)
