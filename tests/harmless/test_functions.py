"""Python functions as tools of a capable model: each receives what was written, and its value reaches the model."""

import dataclasses
import datetime
import enum
import types
from collections import UserList, UserString, deque
from collections.abc import Mapping, Sequence
from decimal import Decimal
from email.message import EmailMessage
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, Required, TypedDict, TypeVar

import pytest
from multidict import CIMultiDict
from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import QueryParams

from opposable.agent.agent import Agent
from opposable.domain.call_context import CallContext
from opposable.domain.messages import assistant_message
from opposable.domain.tools import ToolCall
from opposable.models.scripted import ScriptedModel
from opposable.tools.function import FunctionTool

pytestmark = pytest.mark.anyio


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 2


class Size(enum.StrEnum):
    SMALL = "s"


class Text(str, enum.Enum):  # noqa: UP042 - older code has it, and it formats as its name
    SMALL = "s"


@dataclasses.dataclass
class Address:
    street: str
    tags: list[str] = dataclasses.field(default_factory=list)


class Item(BaseModel):
    model_config = ConfigDict(extra="allow")
    sku: str
    note: str | None = None
    start: datetime.date = Field(datetime.date(2026, 1, 1), alias="startDate")


class Exact(BaseModel):
    model_config = ConfigDict(strict=True)
    day: datetime.date
    price: Decimal
    corners: tuple[int, int]
    colors: set[Color]


class Node(BaseModel):
    children: list["Node"] = []


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]
    bark: int = 1


class Point(NamedTuple):
    x: int
    y: int = 0


class Place(TypedDict, total=False):
    zip: str


class Trip(TypedDict):
    """Where to go."""

    to: Required[Place]
    stops: list[Place]
    note: NotRequired[str | None]


T = TypeVar("T")
UserId = NewType("UserId", int)
WIDE = str | int | float | bool | None | list[Any] | dict[str, Any]

RECEIVED = [
    (Color, "red", Color.RED),
    (Level, 2, Level.HIGH),
    (Size, "s", Size.SMALL),
    (list[Color], ["red"], [Color.RED]),
    (dict[Color, int], {"red": 1}, {Color.RED: 1}),
    (Literal["a", "B", 1, None], "B", "B"),
    (Literal["a", "B", 1, None], 1, 1),
    (Literal["a", "B", 1, None], None, None),
    (Address, {"street": "x", "tags": ["t"]}, Address("x", ["t"])),
    (Item, {"sku": "s", "startDate": "2026-05-01"}, Item(sku="s", startDate=datetime.date(2026, 5, 1))),
    (Item, {"sku": "s", "more": None, "z": []}, Item(sku="s", more=None, z=[])),
    (list[Item], [{"sku": "s"}, {"sku": "t", "note": None}], [Item(sku="s"), Item(sku="t")]),
    (Item | None, None, None),
    (
        Exact,
        {"day": "2026-05-01", "price": "1.10", "corners": [1, 2], "colors": ["red"]},
        Exact(day=datetime.date(2026, 5, 1), price=Decimal("1.10"), corners=(1, 2), colors={Color.RED}),
    ),
    (Annotated[datetime.date, Field(strict=True)], "2026-05-01", datetime.date(2026, 5, 1)),
    (Node, {"children": [{"children": []}]}, Node(children=[Node()])),
    (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "dog", "bark": 2}, Dog(kind="dog", bark=2)),
    (int | str, "42", "42"),
    (int | str, 42, 42),
    (datetime.date | str, "tomorrow", "tomorrow"),
    (list[int] | int, [1], [1]),
    (list[int] | int, 1, 1),
    (float | int, 3, 3),
    *((WIDE, value, value) for value in ("1", 1, 1.5, True, None, [1, "a"], {"a": None}, "null", "true", "")),
    (datetime.date, "2026-11-23", datetime.date(2026, 11, 23)),
    (
        datetime.datetime,
        "2026-11-23T09:00:00+02:00",
        datetime.datetime(2026, 11, 23, 9, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    ),
    (datetime.datetime, "2026-11-23T09:00", datetime.datetime(2026, 11, 23, 9)),  # noqa: DTZ001 - as it was written
    (datetime.time, "09:30", datetime.time(9, 30)),
    (datetime.timedelta, "PT1H", datetime.timedelta(hours=1)),
    (Decimal, "10.10", Decimal("10.10")),
    (Decimal, 0.1, Decimal("0.1")),
    (bytes, "héllo 你", "héllo 你".encode()),
    (list[list[float]], [[1, 2.5], []], [[1.0, 2.5], []]),
    (tuple[int, str], [1, "a"], (1, "a")),
    (set[str], ["x", "x"], {"x"}),
    (Point, [1, 2], Point(1, 2)),
    (Path, "a/../b", Path("a/../b")),
    (dict[int, str], {"1": "a"}, {1: "a"}),
    (Sequence[str], ["a"], ["a"]),
    (Trip, {"to": {}, "stops": [{"zip": "1"}]}, {"to": {}, "stops": [{"zip": "1"}]}),
    (
        Annotated[list[Trip] | None, Field(max_length=2)],
        [{"to": {}, "stops": [], "note": None}],
        [{"to": {}, "stops": [], "note": None}],
    ),
    (Mapping[str, int], {"a": 1}, {"a": 1}),
    (UserId, 3, 3),
    (T, {"a": [1]}, {"a": [1]}),
    (object, {"a": None}, {"a": None}),
    *((str, value, value) for value in ("  a ", "", "\n", "5", "null", "[1]", "ＡＢＣ")),
]


async def call(function: Any, arguments: dict[str, Any]) -> str:
    """Let a model call a function once. Return the result that the model received."""
    model = ScriptedModel(assistant_message("", (ToolCall("c1", "t", arguments),)), "Done.")
    async with Agent(model, [FunctionTool(function, tool_id="t")]) as agent:
        end = await agent.run("Do it.")
    assert (end.text, len(model.requests), end.messages[0].tool_calls[0].arguments) == ("Done.", 2, arguments)
    [result] = [message.content for message in end.messages if message.role == "tool"]
    assert type(result) is str
    return result


@pytest.mark.parametrize(("hint", "given", "received"), RECEIVED)
async def test_a_parameter_of_any_type_receives_the_value(hint, given, received):
    values = []

    def function(value):
        values.append(value)

    function.__annotations__ = {"value": hint}
    await call(function, {"value": given})
    assert repr(values) == repr([received]) or (values == [received] and isinstance(received, datetime.datetime))


def with_pydantic_defaults(
    n: int = Field(5, ge=1, description="A count."),
    names: list[str] = Field(default_factory=list),
) -> str:
    return f"{n} {names}"


def with_text_default(note: str | None = "unchanged", count: int = 5) -> str:
    return f"{note!r} {count}"


def with_optional_context(a: int, context: CallContext | None = None) -> str:
    return f"{a} {context is not None and context.call_id}"


def with_schema_words(title: str, type: str = "t", properties: dict[str, Any] = {}) -> str:  # noqa: B006
    return f"{title} {type} {properties}"


def with_long_default(n: int = 2**256) -> str:
    return str(n)


def with_chinese_names(城市: str, 日期: str = "今天") -> str:  # noqa: N803 - the names that the model writes
    return f"{城市} {日期}"


@pytest.mark.parametrize(
    ("function", "arguments", "result"),
    [
        (with_pydantic_defaults, {}, "5 []"),
        (with_pydantic_defaults, {"n": 7, "names": ["a"]}, "7 ['a']"),
        (with_text_default, {"note": None}, "None 5"),
        (with_text_default, {}, "'unchanged' 5"),
        (with_optional_context, {"a": 1}, "1 c1"),
        (with_schema_words, {"title": "T", "type": "object", "properties": {"title": "x"}}, "T object {'title': 'x'}"),
        (with_chinese_names, {"城市": "北京"}, "北京 今天"),
        (with_long_default, {"n": 2**70}, str(2**70)),
    ],
)
async def test_defaults_and_nulls_mean_what_the_function_says(function, arguments, result):
    assert await call(function, arguments) == result


def test_a_null_that_differs_from_the_default_is_in_the_schema():
    parameters = FunctionTool(with_text_default).definition.parameters["properties"]
    assert parameters["note"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    assert FunctionTool(with_pydantic_defaults).definition.parameters["properties"]["n"] == {
        "default": 5,
        "description": "A count.",
        "minimum": 1,
        "type": "integer",
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Size.SMALL, "s"),
        (Text.SMALL, "s"),
        (Color.RED, '"red"'),
        ([Size.SMALL, Level.HIGH], '["s",2]'),
        ({"a": 1}.keys(), '["a"]'),
        (deque([1, 2]), "[1,2]"),
        (types.MappingProxyType({"a": 1}), '{"a":1}'),
        (Address("x"), '{"street":"x","tags":[]}'),
        ({"p": Decimal("1.10"), "d": datetime.date(2026, 1, 1)}, '{"p":"1.10","d":"2026-01-01"}'),
        ({"城市": "北京"}, '{"城市":"北京"}'),
        ('{"a": 1.10,\n "b":2}', '{"a": 1.10,\n "b":2}'),
        ("a\r\nb", "a\r\nb"),
    ],
)
async def test_a_value_of_any_type_reaches_the_model(value, text):
    assert await call(lambda: value, {}) == text


class Permission(enum.Flag):
    READ = 1
    WRITE = 2


def make_mail() -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = "Invoice"
    mail.set_content("Pay by Friday.")
    return mail


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        (make_mail(), ["Invoice", "Pay by Friday."]),
        ({"mail": make_mail()}, ["Invoice", "Pay by Friday."]),
        ({"permissions": Permission.READ | Permission.WRITE}, ['{"permissions":3}']),
        ({"permissions": Permission.READ | Permission.WRITE, "tags": {"a"}}, ['{"permissions":3,"tags":["a"]}']),
        ({"name": UserString("Ada")}, ['"Ada"']),
        (UserList([1, UserString("b")]), ['[1,"b"]']),
        ({"a": 1}.values(), ["[1]"]),
        (CIMultiDict([("a", "1"), ("b", "2")]), ['{"a":"1","b":"2"}']),
        (CIMultiDict([("link", "one"), ("link", "two")]), ["one", "two"]),
        (QueryParams("a=1&a=2"), ["a=1", "a=2"]),
    ],
)
async def test_no_part_of_a_value_is_lost(value, parts):
    result = await call(lambda: value, {})
    assert [part for part in parts if part not in result] == []
