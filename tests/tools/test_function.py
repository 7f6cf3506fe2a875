"""Functions and objects as tools."""

import asyncio
import functools
import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple

import docstring_parser
import pytest
from pydantic import BaseModel, BeforeValidator, Field
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import PydanticCustomError

from opposable.domain.call_context import NO_CONTEXT, CallContext
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolRegistrationError
from opposable.tools.base import ToolOutline
from opposable.tools.function import FunctionTool, tool, tools_from_object
from opposable.tools.library import ToolLibrary
from opposable.tools.registry import count_definition_bytes

pytestmark = pytest.mark.anyio


def search(query: str, limit: int = 20, mode: Literal["fast", "deep"] = "fast", root: str | None = None) -> list[str]:
    """Search files.

    Looks into every file.

    Args:
        query: what to look for
        limit: the most
            hits
    """
    return [query, str(limit), mode, str(root)]


class Point(BaseModel):
    x: int
    y: int = 0


class Node(BaseModel):
    name: str
    children: list["Node"] = []


def test_the_schema_comes_from_signature_and_docstring():
    definition = FunctionTool(search).definition
    assert definition.name == "search"
    assert definition.description == "Search files.\n\nLooks into every file."
    assert definition.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what to look for"},
            "limit": {"type": "integer", "default": 20, "description": "the most hits"},
            "mode": {"type": "string", "enum": ["fast", "deep"], "default": "fast"},
            "root": {"type": "string"},
        },
        "required": ["query"],
    }


@pytest.mark.parametrize(
    "doc",
    [
        "Add.\n\nArgs:\n    a: the first\n",
        "Add.\n\nParameters\n----------\na : int\n    the first\n",
        "Add.\n\n:param a: the first\n",
    ],
)
def test_docstrings_in_three_styles_describe_parameters(doc):
    def add(a: int) -> int:
        return a

    add.__doc__ = doc
    assert FunctionTool(add).definition.parameters["properties"]["a"]["description"] == "the first"


def test_annotations_with_field_describe_and_bound():
    def f(n: Annotated[int, Field(description="a count", ge=1)]) -> int:
        return n

    assert FunctionTool(f).definition.parameters["properties"]["n"] == {
        "description": "a count",
        "minimum": 1,
        "type": "integer",
    }


class Color(Enum):
    RED = (255, (0, 0))
    BLUE = (0, (0, 255))


def test_lists_and_examples_of_a_docstring_keep_their_lines():
    def search(query: str) -> list[str]:
        """Search for titles
        and dates.

        Fields:
        - title:word
        - date>2020-01-01

        Args:
            query: a query, whose parts
                are joined by AND or
                OR

        Returns:
            The titles.

        Examples:
            title:cat AND date>2020
            title:"a dog"
        """
        return [query]

    definition = FunctionTool(search).definition
    assert definition.description == (
        "Search for titles and dates.\n\nFields:\n- title:word\n- date>2020-01-01\n\n"
        'Examples:\ntitle:cat AND date>2020\ntitle:"a dog"'
    )
    assert definition.parameters["properties"]["query"]["description"] == "a query, whose parts are joined by AND or OR"


@pytest.mark.parametrize("colon", [":", "："])
def test_the_headings_of_a_docstring_may_be_chinese(colon):
    def get_weather(city: str, days: int = 3) -> str:
        return city * days

    get_weather.__doc__ = f"""查询天气。

    注意：只限国内。

    参数{colon}
        city (str){colon}名称，例如：北京
        days{colon} 天数

    返回值{colon}
        天气
    """
    definition = FunctionTool(get_weather).definition
    assert definition.description == "查询天气。\n\n注意：只限国内。"
    descriptions = {name: schema["description"] for name, schema in definition.parameters["properties"].items()}
    assert descriptions == {"city": "名称，例如：北京", "days": "天数"}


class Order:
    """Create an order."""

    def __init__(self, number: int) -> None:
        self.number = number


@dataclass
class OrderData:
    number: int


class OrderModel(BaseModel):
    number: int


@pytest.mark.parametrize("constructor", [Order, OrderData, OrderModel])
def test_a_class_is_a_tool_that_creates_its_objects(constructor):
    created = FunctionTool(constructor)
    assert created.definition.parameters == {
        "type": "object",
        "properties": {"number": {"type": "integer"}},
        "required": ["number"],
    }
    assert created.check({"number": "7"}) == {"number": 7}


class Search(BaseModel):
    query: str = Field(description="What to find.", min_length=2)
    limit: int = Field(5, alias="Limit", le=9)
    fields: list[str] = Field(default_factory=lambda: ["title"])


class CustomSearch(Search):
    """Search in all."""

    def __init__(self, query: str) -> None:
        super().__init__(query=query)


@pydantic_dataclass
class SearchData:
    query: str = Field(description="What to find.", min_length=2)
    limit: int = Field(5, alias="Limit", le=9)
    fields: list[str] = Field(default_factory=lambda: ["title"])


@pytest.mark.parametrize("search", [Search, SearchData])
async def test_a_class_of_pydantic_has_the_constraints_and_defaults_of_its_fields(search):
    library = ToolLibrary([search])
    [definition] = library.definitions
    assert (definition.description, definition.parameters["properties"]) == (
        search.__name__,
        {
            "query": {"type": "string", "description": "What to find.", "minLength": 2},
            "Limit": {"type": "integer", "default": 5, "maximum": 9},
            "fields": {"type": "array", "items": {"type": "string"}},
        },
    )
    assert (await library.call(search.__name__, {"query": "ab"})).data == search(query="ab")
    assert (await library.call(search.__name__, {"query": "a", "Limit": 10})).failure == "invalid_arguments"


async def test_a_class_of_pydantic_with_a_constructor_of_its_own_has_its_parameters():
    custom = FunctionTool(CustomSearch)
    assert (custom.definition.description, list(custom.definition.parameters["properties"])) == (
        "Search in all.",
        ["query"],
    )


def test_a_callable_object_is_described_by_its_method():
    class Find:
        def __call__(self, query: str) -> str:
            """Find a text.

            Args:
                query: What to find.
            """
            return query

    assert FunctionTool(Find()).outline == ToolOutline("Find", "Find a text.", {"query": "What to find."})


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_without_time_is_refused(timeout):
    with pytest.raises(ToolRegistrationError, match=f"more than 0 seconds, not {timeout}"):
        tool(timeout=timeout)(search)


@pytest.mark.parametrize(
    ("arguments", "checked"),
    [
        ({"color": [255, [0, 0]]}, {"color": Color.RED, "others": [], "data": None}),
        (
            {"color": [0, [0, 255]], "others": [[255, [0, 0]]], "data": [1]},
            {"color": Color.BLUE, "others": [Color.RED], "data": [1]},
        ),
        ({"color": [1, [2, 3]]}, "color: must be (255, (0, 0)) or (0, (0, 255)) (given: [1,[2,3]])"),
    ],
)
def test_members_of_an_enum_that_are_tuples_are_accepted_as_lists(arguments, checked):
    def paint(color: Color, others: list[Color] = [], data: Any = None) -> None:  # noqa: B006
        """Paint."""

    try:
        received = FunctionTool(paint).check(arguments)
    except InvalidArguments as error:
        [problem] = error.problems
        received = f"{problem.field}: {problem.problem} (given: {problem.received})"
    assert received == checked


class Unit(Enum):
    CELSIUS = "C"
    FAHRENHEIT = "F"


async def test_a_literal_of_enum_members_takes_their_values():
    def convert(to: Literal[Unit.CELSIUS, "K"], others: list[Literal[Unit.FAHRENHEIT]] | None = None) -> str:
        return repr((to, others))

    converter = FunctionTool(convert)
    assert converter.definition.parameters["properties"]["to"] == {"enum": ["C", "K"], "type": "string"}
    assert converter.check({"to": "C", "others": ["F"]}) == {"to": Unit.CELSIUS, "others": [Unit.FAHRENHEIT]}
    assert converter.check({"to": Unit.CELSIUS}) == {"to": Unit.CELSIUS, "others": None}
    with pytest.raises(InvalidArguments, match="must be 'C' or 'K'"):
        converter.check({"to": "F"})


class Patch(BaseModel):
    title: str | None = None


def test_null_is_left_out_of_parameters_and_not_of_nested_fields():
    def change(patch: Patch, due: str | None = None, size: int | str | None = None) -> str:
        """Change."""
        return repr(patch.model_fields_set)

    made = FunctionTool(change)
    nullable = {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert made.definition.parameters["properties"] == {
        "patch": {"type": "object", "properties": {"title": nullable}},
        "due": {"type": "string"},
        "size": {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}], "default": None},
    }
    assert made.complete_parameters["properties"]["due"] == nullable


def test_nested_models_are_inlined_and_recursive_ones_referenced():
    def f(points: list[Point], tree: Node) -> int:
        return 1

    schema = FunctionTool(f).definition.parameters
    point = {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
    }
    assert schema["properties"]["points"] == {"type": "array", "items": point}
    assert schema["properties"]["tree"] == {"$ref": "#/$defs/Node"}
    assert list(schema["$defs"]) == ["Node"]


def test_a_parameter_named_title_or_with_an_underscore_is_supported():
    def f(title: str, _secret: int = 1, model_config: str = "", schema: str = "") -> str:
        return title

    made = FunctionTool(f)
    assert list(made.definition.parameters["properties"]) == ["title", "_secret", "model_config", "schema"]
    assert asyncio.run(made.run(made.check({"title": "x", "_secret": 2, "schema": "s"}), NO_CONTEXT)) == "x"


async def test_models_reach_the_function_as_models():
    def f(point: Point) -> int:
        return point.x + point.y

    tool = FunctionTool(f)
    assert await tool.run(tool.check({"point": {"x": 1, "y": 2}}), NO_CONTEXT) == 3


PROBLEMS = [
    ({}, [FieldProblem("query", "is required")]),
    ({"query": "q", "limit": "many"}, [FieldProblem("limit", "must be a valid integer", '"many"')]),
    ({"query": 5}, [FieldProblem("query", "must be a valid string", "5")]),
    ({"query": "q", "mode": "slow"}, [FieldProblem("mode", "must be 'fast' or 'deep'", '"slow"')]),
    (
        {"query": "q", "size": 3},
        [FieldProblem("size", "there is no such parameter; the parameters are query, limit, mode, root", "3")],
    ),
    ({"limit": []}, [FieldProblem("query", "is required"), FieldProblem("limit", "must be a valid integer", "[]")]),
]


@pytest.mark.parametrize(("arguments", "problems"), PROBLEMS)
async def test_invalid_arguments_are_reported_by_field(arguments, problems):
    with pytest.raises(InvalidArguments) as caught:
        FunctionTool(search).check(arguments)
    assert list(caught.value.problems) == problems


async def test_problems_inside_unions_and_lists_name_the_field():
    def f(points: list[Point], value: int | list[int] | None = None) -> int:
        return 1

    with pytest.raises(InvalidArguments) as caught:
        FunctionTool(f).check({"points": [{"x": 1}, {"x": "a"}], "value": {"k": 1}})
    assert [problem.field for problem in caught.value.problems] == ["points.1.x", "value"]


class Card(BaseModel):
    model_config = {"extra": "forbid"}
    kind: Literal["card"]
    number: int


class Iban(BaseModel):
    kind: Literal["iban"]
    iban: str


class Tree(BaseModel):
    children: "list[Tree]" = []
    value: int


class Place(NamedTuple):
    lat: float
    lon: float


def _refuse(kind):
    def check(value):
        raise PydanticCustomError(kind, "needs three")

    return BeforeValidator(check)


def test_the_schema_of_alternatives_names_no_definition_that_it_does_not_have():
    def pay(by: Annotated[Card | Iban, Field(discriminator="kind")], discriminator: str) -> None: ...

    parameters = FunctionTool(pay).definition.parameters
    assert "$defs" not in json.dumps(parameters)
    assert parameters["properties"]["discriminator"] == {"type": "string"}


WRONG_VALUES = [
    (Place, {"lat": 1.5}, ("lon", "is required", "字段是必需的")),
    (list[Place | None], [{"lat": "x", "lon": 2}], ("0.lat", "must be a valid number", "必须是数字")),
    (Annotated[int, _refuse("too_short")], 1, ("", "needs three", "needs three")),
    (Annotated[int, _refuse("greater_than")], 1, ("", "needs three", "needs three")),
    (Card | Iban, {"kind": "card", "number": "x"}, ("number", "must be a valid integer", "必须是整数")),
    (Card | Iban | None, {"kind": "iban"}, ("iban", "is required", "字段是必需的")),
    (list[Card | str], [{"kind": "card"}], ("0.number", "is required", "字段是必需的")),
    (
        Annotated[Card | Iban, Field(discriminator="kind")] | None,
        {"kind": "card", "number": "x"},
        ("number", "must be a valid integer", "必须是整数"),
    ),
    (
        Annotated[Card | Iban, Field(discriminator="kind")],
        {"kind": "cash"},
        ("kind", 'must be "card" or "iban"', '必须是 "card" 或 "iban"'),
    ),
    (Annotated[Card | Iban, Field(discriminator="kind")], {}, ("kind", "is required", "字段是必需的")),
    (
        Card,
        {"kind": "card", "number": 1, "x": 2},
        ("x", "there is no such parameter; take it out", "没有这个参数，请去掉"),
    ),
    (
        list[Iban],
        "x",
        (
            "",
            'must be a list of objects with kind ("iban"), iban (string)',
            '必须是 数组，元素为对象，包含 kind（"iban"）、iban（字符串）',
        ),
    ),
    (int | list[int], "x", ("", "must be a valid integer or a list of integers", "必须是 整数 或 数组，元素为整数")),
    (Tree, {"value": 1, "children": [{"value": "x"}]}, ("children.0.value", "must be a valid integer", "必须是整数")),
    (dict[str, Tree], {"a": {"value": "x"}}, ("a.value", "must be a valid integer", "必须是整数")),
    (date, "tomorrow", ("", "must be a date such as 2026-01-31", "必须是 日期，例如 2026-01-31")),
    (bool, "maybe", ("", "must be a valid boolean", "必须是布尔值（true 或 false）")),
    (Literal["a", "b"], "c", ("", "must be 'a' or 'b'", '必须是 "a" 或 "b"')),
    (Annotated[str, Field(min_length=3)], "ab", ("", "must have at least 3 characters", "至少要有 3 个字符")),
    (Annotated[list[int], Field(min_length=2)], [1], ("", "must have at least 2 items", "至少要有 2 个元素")),
    (Annotated[list[int], Field(min_length=1)], [], ("", "must have at least 1 item", "至少要有 1 个元素")),
]


@pytest.mark.parametrize(("annotation", "value", "problem"), WRONG_VALUES)
def test_a_problem_names_the_field_and_what_fits_in_both_languages(annotation, value, problem):
    def f(p) -> int:
        return 1

    f.__annotations__["p"] = annotation
    with pytest.raises(InvalidArguments) as caught:
        FunctionTool(f).check({"p": value})
    [found] = caught.value.problems
    field = found.field.removeprefix("p").removeprefix(".")
    assert (field, found.problem, getattr(found.problem, "chinese", found.problem)) == problem


async def test_async_sync_and_callable_objects_run():
    async def later(a: int) -> int:
        await asyncio.sleep(0)
        return a + 1

    def at_once(a: int) -> str:
        return threading.current_thread().name

    class Doubler:
        """Double a number."""

        def __call__(self, a: int) -> int:
            return a * 2

    assert await FunctionTool(later).run({"a": 1}, NO_CONTEXT) == 2
    assert (await FunctionTool(at_once).run({"a": 1}, NO_CONTEXT)).startswith("tool")
    assert await FunctionTool(Doubler(), tool_id="double").run({"a": 4}, NO_CONTEXT) == 8


async def test_a_partial_function_has_the_types_and_descriptions_of_its_function():
    partial = FunctionTool(functools.partial(search, mode="deep"))
    assert (partial.tool_id, partial.definition.description) == (
        "search",
        FunctionTool(search).definition.description,
    )
    properties = dict(FunctionTool(search).definition.parameters["properties"])
    del properties["mode"]
    assert partial.definition.parameters["properties"] == properties
    result = await partial.run(partial.check({"query": "q", "limit": "2"}), NO_CONTEXT)
    assert result == ["q", "2", "deep", "None"]
    with pytest.raises(InvalidArguments, match="mode: there is no such parameter"):
        partial.check({"query": "q", "mode": "fast"})
    positional = FunctionTool(functools.partial(search, "q"), tool_id="find")
    assert list(positional.definition.parameters["properties"]) == ["limit", "mode", "root"]


async def test_an_iterable_is_a_list_that_is_checked_before_the_function_runs():
    def mean(values: Iterable[float], names: Iterable[str] | None = None, rest: Iterable = ()) -> float:
        return sum(values) / len(list(values))

    mean_tool = FunctionTool(mean)
    assert await mean_tool.run(mean_tool.check({"values": [1, 2, 3]}), NO_CONTEXT) == 2
    with pytest.raises(InvalidArguments) as caught:
        mean_tool.check({"values": [1, "x"]})
    assert caught.value.problems == (FieldProblem("values.1", "must be a valid number", '"x"'),)


async def test_types_for_type_checkers_only_may_be_the_result_and_the_context():
    namespace: dict[str, Any] = {}
    source = """
def table(n: int) -> "pd.DataFrame": return n
def greet(n: int, context: "CallContext | None" = None) -> "pd.DataFrame": return context.language
def wrong(n: "pd.DataFrame") -> int: return n
"""
    exec(source, namespace)
    table, greet = FunctionTool(namespace["table"]), FunctionTool(namespace["greet"])
    assert [list(one.definition.parameters["properties"]) for one in (table, greet)] == [["n"], ["n"]]
    assert (table.output_schema, greet.takes_context) == (None, True)
    assert await greet.run(greet.check({"n": 1}), CallContext(language="zh")) == "zh"
    with pytest.raises(ToolRegistrationError, match="'pd' is not defined"):
        FunctionTool(namespace["wrong"])


async def test_the_context_is_passed_and_not_in_the_schema():
    def f(a: int, context: CallContext) -> str:
        return f"{context.call_id}:{a}"

    made = FunctionTool(f)
    assert list(made.definition.parameters["properties"]) == ["a"]
    assert await made.run({"a": 1}, CallContext(call_id="c9")) == "c9:1"


async def test_the_methods_of_an_object_are_its_actions():
    class Shop:
        def __init__(self) -> None:
            self.sold = 0

        def sell(self, n: int) -> int:
            """Sell some."""
            self.sold += n
            return self.sold

        def stock(self) -> int:
            """What is left."""
            return 10 - self.sold

        def _hidden(self) -> None: ...

    shop = Shop()
    sell, stock = tools_from_object(shop, "shop")
    assert [(t.tool_id, t.definition.name) for t in (sell, stock)] == [
        ("shop.sell", "shop_sell"),
        ("shop.stock", "shop_stock"),
    ]
    assert await sell.run({"n": 3}, NO_CONTEXT) == 3
    assert await stock.run({}, NO_CONTEXT) == 7


class Depot:
    """Methods of all kinds."""

    def __init__(self):
        self.stock = 7

    @functools.cache  # noqa: B019 - the object lives as long as the process
    def count(self, n: int) -> int:
        """Count."""
        return self.stock + n

    @classmethod
    def get_name(cls) -> str:
        """Name."""
        return cls.__name__

    @staticmethod
    def double(n: int) -> int:
        """Double."""
        return n * 2

    @tool(description="Sell pieces.", timeout=3, needs_approval=True)
    def sell(self, n: int) -> int:
        self.stock -= n
        return self.stock


async def test_methods_with_decorators_are_tools():
    tools = {t.tool_id: t for t in tools_from_object(Depot(), "depot", read_only=("count",), untrusted_output=True)}
    arguments = {"depot.count": {"n": 1}, "depot.double": {"n": 2}, "depot.get_name": {}, "depot.sell": {"n": 3}}
    results = {name: await tools[name].run(tools[name].check(arguments[name]), NO_CONTEXT) for name in tools}
    assert results == {"depot.count": 8, "depot.double": 4, "depot.get_name": "Depot", "depot.sell": 4}
    assert tools["depot.count"].spec.read_only
    sell = tools["depot.sell"]
    assert (sell.definition.description, sell.timeout, list(sell.definition.parameters["properties"])) == (
        "Sell pieces.",
        3,
        ["n"],
    )
    assert (sell.spec.needs_approval, sell.spec.untrusted_output) == (True, True)


class Till:
    """Methods with the decorator `tool`."""

    content = 7

    @tool(name="till.add", timeout=3, read_only=True)
    def add(self, n: int) -> int:
        return self.content + n

    @classmethod
    @tool
    def subtract(cls, n: int) -> int:
        return cls.content - n

    @staticmethod
    @tool
    def double(n: int) -> int:
        return n * 2

    @tool
    @staticmethod
    def halve(n: int) -> int:
        return n // 2


async def test_methods_with_the_decorator_are_tools_of_their_object():
    till = Till()
    library = ToolLibrary([till.add, till.subtract, till.double, till.halve])
    assert library.names == ("till_add", "subtract", "double", "halve")
    assert [list(one.parameters["properties"]) for one in library.definitions] == [["n"]] * 4
    assert [(await library.call(name, {"n": 4})).data for name in library.names] == [11, 3, 8, 2]
    assert (till.add.timeout, till.add.spec.read_only) == (3, True)
    actions = {one.tool_id: one for one in tools_from_object(till, "till")}
    assert {name: await one.run({"n": 4}, NO_CONTEXT) for name, one in actions.items()} == {
        "till.add": 11,
        "till.double": 8,
        "till.halve": 2,
        "till.subtract": 3,
    }


def test_the_decorator_names_describes_and_limits():
    @tool(name="天气", description="The weather.", timeout=3)
    def weather(city: str) -> str:
        return city

    @tool
    def plain(city: str) -> str:
        """Plain."""
        return city

    assert (weather.tool_id, weather.definition.description, weather.timeout) == ("天气", "The weather.", 3)
    assert weather.definition.name.isascii()
    assert plain.definition.name == "plain"


def star(*args: int) -> int:
    return 1


def keywords(**kwargs: int) -> int:
    return 1


def unknown_type(a: "Missing") -> int:  # noqa: F821 - the point of the test
    return 1


def no_schema(a: threading.Lock) -> int:
    return 1


@pytest.mark.parametrize("function", [star, keywords, unknown_type, no_schema, max, 5, object()])
def test_a_function_that_cannot_be_described_is_refused(function):
    with pytest.raises(ToolRegistrationError):
        FunctionTool(function)


def test_a_class_in_place_of_an_object_is_refused():
    with pytest.raises(ToolRegistrationError, match=r"Point is a class\. Pass an object, such as Point\(…\)\."):
        tools_from_object(Point, "point")


def test_an_object_without_methods_is_refused():
    with pytest.raises(ToolRegistrationError, match="no public method"):
        tools_from_object(object(), "empty")


async def test_the_generator_of_a_decorated_function_is_collected():
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapper

    @decorate
    def count():
        """Count."""
        yield "one "
        yield "two"

    result = await ToolLibrary([count]).call("count", {})
    assert (result.content, result.failure) == ("one two", None)


async def test_an_alias_of_a_parameter_counts_only_where_the_arguments_do_not_fit():
    def columns(table: str, database: str = "main") -> str:
        """List columns."""
        return f"{database}.{table}"

    tool = FunctionTool(columns)
    tool.aliases, tool.parameter_aliases = ("get_schema",), {"table_name": "table", "database": ""}
    library = ToolLibrary([tool])
    assert (await library.call("get_schema", {"table_name": "t"})).content == "main.t"
    assert (await library.call("columns", {"table": "t", "database": "x"})).content == "x.t"
    assert (await library.call("columns", {"tabel": "t"})).failure == "invalid_arguments"
    assert library.names == ("columns",)


def test_the_schema_of_plain_types_is_made_when_it_is_first_needed():
    library = ToolLibrary([search])
    [found] = library.search("files")
    assert (found.name, library.names) == ("search", ("search",))
    found_tool = library.find_tool("search")
    assert "definition" not in vars(found_tool)
    assert library.definitions == (found_tool.definition,)


@pytest.mark.parametrize("function", [search, lambda: None, Point, FunctionTool(search, tool_id="Suche.Ä")])
def test_an_outline_never_overestimates_the_definition(function):
    tool = function if isinstance(function, FunctionTool) else FunctionTool(function, tool_id="find")
    definition = tool.definition
    assert (tool.outline.name, tool.outline.description) == (definition.name, definition.description)
    assert tool.outline.count_min_bytes() <= count_definition_bytes(definition)
    properties = definition.parameters["properties"]
    assert tool.outline.parameters == {name: schema.get("description", "") for name, schema in properties.items()}


REST = """Search files.

:param query: what to look for
"""
NUMPY = """Search files.

Parameters
----------
query : str
    what to look for
"""
EPYTEXT = """Search files.

@param query: what to look for
"""
GOOGLE_LIST = """Search files.

Parameters:

* ``query`` (str): what to look for
"""


@pytest.mark.parametrize("doc", [REST, NUMPY, EPYTEXT, GOOGLE_LIST, ".. deprecated:: 2.0\n    Use another."])
def test_docstrings_of_every_style_are_read_as_the_parser_reads_them(doc):
    def find(query: str) -> str:
        return query

    find.__doc__ = doc
    parsed = docstring_parser.parse(doc)
    outline = FunctionTool(find).outline
    assert outline.parameters == {"query": next((param.description for param in parsed.params), "")}
    assert outline.description.startswith(parsed.short_description or "find")


async def test_a_pattern_that_cannot_be_compiled_is_reported():
    def find(text: Annotated[str, Field(pattern="(?=a)b")]) -> str:
        """Find a text."""
        return text

    with pytest.raises(ToolRegistrationError, match=r"find: .* look-around"):
        _ = FunctionTool(find).definition
