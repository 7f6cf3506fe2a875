"""The tool library."""

import asyncio
import datetime
import decimal
import threading

import pytest
from pydantic import BaseModel

from opposable.domain.call_context import CallContext
from opposable.domain.errors import ToolFailed, ToolRefused, ToolRegistrationError, ToolUnavailable
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio

CHINESE = CallContext(call_id="c", language="zh")


def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def file_search(query: str, limit: int = 20) -> str:
    """Search."""
    return query


async def test_a_call_returns_its_value_as_text_and_data():
    result = await ToolLibrary([add]).call("add", {"a": 2, "b": 3}, CallContext(call_id="c1"))
    assert (result.call_id, result.name, result.content, result.data, result.failure) == ("c1", "add", "5", 5, None)
    assert result.seconds > 0


async def test_invalid_arguments_are_reported_in_the_language_of_the_run():
    library = ToolLibrary([file_search])
    english = await library.call("file_search", {"limit": "x"})
    chinese = await library.call("file_search", {"limit": "x"}, CHINESE)
    assert english.failure == chinese.failure == "invalid_arguments"
    assert english.content == (
        "The arguments of file_search do not fit:\n"
        "- query: is required (missing)\n"
        '- limit: must be a valid integer (given: "x")\n\n'
        "Correct the arguments and try again."
    )
    assert chinese.content == (
        "工具 file_search 的调用参数格式错误：\n"
        "- query: 字段是必需的（缺失）\n"
        '- limit: 必须是整数（当前值: "x"）\n\n'
        "请修正参数后重试。"
    )


@pytest.mark.parametrize(
    ("error", "failure", "content"),
    [
        (ToolRefused("not there"), "refused", "not there"),
        (ToolUnavailable("server is down"), "unavailable", "server is down"),
        (ToolFailed("no luck"), "failed", "no luck"),
        (ValueError("bad value"), "failed", "f failed: ValueError: bad value"),
        (
            TimeoutError("socket"),
            "timeout",
            "f failed: TimeoutError: socket. Its outcome is unknown: it may have taken effect. Check that before you call it again.",
        ),
        (KeyError("k"), "failed", "f failed: KeyError: 'k'"),
        (RecursionError(), "failed", "f failed: RecursionError"),
    ],
)
async def test_every_failure_has_a_kind_and_a_message(error, failure, content):
    def f() -> None:
        raise error

    result = await ToolLibrary([f]).call("f", {})
    assert (result.failure, result.content, result.data) == (failure, content, None)


@pytest.mark.parametrize(("arguments", "given"), [('{"a": 2}', '"{\\"a\\": 2}"'), ([2], "[2]"), (None, "null")])
async def test_arguments_that_are_not_a_dict_are_invalid(arguments, given):
    result = await ToolLibrary([add]).call("add", arguments)
    assert result.failure == "invalid_arguments"
    assert result.content.splitlines()[1] == f"- arguments: must be a valid dictionary (given: {given})"


async def test_a_tool_that_takes_too_long_is_stopped():
    async def slow() -> None:
        await asyncio.sleep(30)

    result = await ToolLibrary([FunctionTool(slow, timeout=0.05, read_only=True)]).call("slow", {})
    assert (result.failure, result.content) == ("timeout", "slow did not finish within 0.05 seconds and was stopped.")


async def test_outcome_of_a_changing_call_that_timed_out_is_unknown():
    made = 0

    async def pay() -> None:
        nonlocal made
        made += 1
        await asyncio.sleep(30)

    library = ToolLibrary([FunctionTool(pay, timeout=0.05)])
    english = await library.call("pay", {})
    chinese = await library.call("pay", {}, CallContext(language="zh"))
    assert made == 2
    assert english.content == (
        "pay did not finish within 0.05 seconds and was stopped. "
        "Its outcome is unknown: it may have taken effect. Check that before you call it again."
    )
    assert "结果未知" in chinese.content


async def test_an_unknown_tool_is_answered_with_the_likeliest_first():
    library = ToolLibrary([add, file_search])
    result = await library.call("search_file", {})
    assert result.failure == "unknown_tool"
    assert result.content == "There is no tool named 'search_file'. The tools are: file_search, add."


@pytest.mark.parametrize("name", ["functions.add", "ADD", "add ", "tools/add", "function:add"])
async def test_a_miswritten_name_is_understood(name):
    assert ToolLibrary([add]).find_tool(name).definition.name == "add"


def test_ids_with_dots_are_found_both_ways_and_ambiguous_ones_not_at_all():
    first, second = FunctionTool(add, tool_id="math.add"), FunctionTool(add, tool_id="ma.thadd")
    assert ToolLibrary([first]).find_tool("math.add") is first
    assert ToolLibrary([first]).find_tool("math_add") is first
    both = ToolLibrary([first, second])
    assert both.find_tool("math_add") is first
    assert both.find_tool("mathadd") is None


def test_a_taken_name_is_refused():
    with pytest.raises(ToolRegistrationError, match="already"):
        ToolLibrary([add, add])


def test_a_function_that_is_not_in_a_list_is_refused():
    with pytest.raises(ToolRegistrationError, match=r"must be a list, such as \[function\], not <function add"):
        ToolLibrary(add)


def test_a_value_that_is_not_a_tool_is_refused():
    with pytest.raises(ToolRegistrationError, match="not a tool"):
        ToolLibrary([5])


async def test_long_output_is_cut_in_the_middle_and_says_so():
    def much() -> str:
        return "a" * 6000 + "b" * 6000

    result = await ToolLibrary([much], max_result_characters=1000).call("much", {})
    assert result.cut == 11000
    assert result.content == "a" * 750 + "\n…[11,000 of 12,000 characters left out here]…\n" + "b" * 250


@pytest.mark.parametrize(
    ("window", "character", "characters"),
    [
        (None, "a", 100_000),
        (None, "数", 33_333),
        (16_384, "a", 20_000),
        (32_768, "a", 32_768),
        (32_768, "数", 20_000),
        (1_000_000, "a", 100_000),
    ],
)
async def test_the_length_of_a_result_depends_on_the_context_window(window, character, characters):
    def much() -> str:
        return character * 120_000

    library = ToolLibrary([much]).for_model(window)
    assert (await library.call("much", {})).cut == 120_000 - characters


class Shape(BaseModel):
    sides: int


VALUES = [
    (None, "null"),
    ("text", "text"),
    ("a\ud800b", "a?b"),
    (b"\xff2345", "<5 bytes>"),
    ({"中": [1, 2.5, True, None]}, '{"中":[1,2.5,true,null]}'),
    ({1: "x"}, '{"1":"x"}'),
    (datetime.date(2026, 11, 20), '"2026-11-20"'),
    (decimal.Decimal("1.10"), '"1.10"'),
    (
        {
            3,
        },
        "[3]",
    ),
    (Shape(sides=3), '{"sides":3}'),
    ([Shape(sides=3)], '[{"sides":3}]'),
    (2**80, "1208925819614629174706176"),
    ({"x": "\ud800"}, '{"x":"?"}'),
    (float("nan"), "NaN"),
    (object, "\"<class 'object'>\""),
]


@pytest.mark.parametrize(("value", "content"), VALUES)
async def test_any_value_becomes_text(value, content):
    def f() -> None:
        return value

    result = await ToolLibrary([f]).call("f", {})
    assert (result.failure, result.content) == (None, content)


async def test_twenty_sync_calls_run_at_once():
    barrier = threading.Barrier(20, timeout=20)

    def meet() -> int:
        barrier.wait()
        return 1

    results = await ToolLibrary([meet]).call_many([("meet", {})] * 20, max_concurrency=20)
    assert [result.data for result in results] == [1] * 20


def test_definitions_are_the_same_object_until_a_tool_is_added():
    library = ToolLibrary([add])
    before = library.definitions
    assert library.definitions is before
    library.register(file_search)
    assert [definition.name for definition in library.definitions] == ["add", "file_search"]


async def test_a_null_is_reported_where_the_schema_forbids_it():
    def total(a: int, limit: int = 20, maybe: int | None = 5, other: int | None = None) -> str:
        """Add up."""
        return f"{a + limit} {maybe} {other}"

    library = ToolLibrary([total])
    assert (await library.call("total", {"a": 1, "limit": None})).failure == "invalid_arguments"
    assert (await library.call("total", {"a": 1, "maybe": None, "other": None})).content == "21 None None"


async def test_a_null_for_a_required_argument_is_reported():
    def total(a: int) -> int:
        """Add up."""
        return a

    assert (await ToolLibrary([total]).call("total", {"a": None})).failure == "invalid_arguments"
