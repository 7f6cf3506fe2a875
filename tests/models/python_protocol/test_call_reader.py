"""Calls in the code of a reply."""

import pytest

from opposable.domain.tools import ToolDefinition
from opposable.models.python_protocol.call_reader import MAX_CALLS, read_calls

FIND = ToolDefinition(
    "find",
    "",
    {
        "type": "object",
        "properties": {
            "what": {"type": "string"},
            "what-else": {"type": "string"},
            "near": {},
            "version": {"type": "string", "nullable": True},
            "limit": {"type": "integer"},
        },
    },
)
PING = ToolDefinition("net-ping", "", {"type": "object"})
FIND_ALL = ToolDefinition("find_all", "", {"type": "object", "properties": {"what": {"type": "string"}}})


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        ('find(what="tea")\n', [("find", {"what": "tea"})]),
        ('find(what="tea", limit=3)\nnet-ping()', [("find", {"what": "tea", "limit": 3}), ("net-ping", {})]),
        ('find(what-else="a, limit=2) \\"b\\" \\u8336")', [("find", {"what-else": 'a, limit=2) "b" 茶'})]),
        (
            'find(near={"lat": 1.5,\n "tags": ["a", null, true]})',
            [("find", {"near": {"lat": 1.5, "tags": ["a", None, True]}})],
        ),
        (
            'find(what="None is \\"True\\"", near={"open": False, "tags": [None, true]})',
            [("find", {"what": 'None is "True"', "near": {"open": False, "tags": [None, True]}})],
        ),
        ('find_all(what="x")', [("find_all", {"what": "x"})]),
        ("find(what=007, limit=3)", [("find", {"what": "007", "limit": 3})]),
        ("find(limit=3, what=1.10, limit=4)", [("find", {"limit": 3, "what": "1.10"})]),
        ("find(version=1.10, what=-5)", [("find", {"version": "1.10", "what": "-5"})]),
        ("pass", []),
        ("", []),
        ("unknown(what=1)", []),
    ],
    ids=[
        "one",
        "two",
        "text",
        "nested",
        "literals of Python",
        "a longer name",
        "a number for a text",
        "a repeated argument",
        "a number for a text or null",
        "no call",
        "nothing",
        "unknown",
    ],
)
def test_calls_with_literal_values_are_read(code, calls):
    assert [(call.name, call.arguments) for call in read_calls(code, (FIND, FIND_ALL, PING))] == calls


@pytest.mark.parametrize(
    "code",
    [
        "find(what='tea', limit=3)",
        "find(\n    limit=3,\n    what='tea',\n)",
        "find(what = 'tea', limit = 3)",
        '# for tea\nfind(what="tea", limit=3)',
        'await find(what="tea", limit=3)',
        'result = find(what="tea", limit=3)',
        'find(what="tea", limit=3)\nI will wait for the result.',
        'result = await find(what="tea", limit=3)\nprint(result)',
    ],
)
def test_python_that_no_grammar_enforced_is_left_to_the_parser_of_written_calls(code):
    [call] = read_calls(code, (FIND,))
    assert (call.name, call.arguments) == ("find", {"what": "tea", "limit": 3})


def test_what_the_token_limit_cut_off_is_left_out():
    code = 'find(what="tea")\nfind(what="cof'
    assert [call.arguments for call in read_calls(code, (FIND,), is_truncated=True)] == [{"what": "tea"}]
    assert read_calls('find(what="cof', (FIND,), is_truncated=True) == ()


def test_calls_without_end_are_bounded():
    assert len(read_calls("net-ping()\n" * 500, (PING,))) == MAX_CALLS


@pytest.mark.parametrize(
    ("items", "written", "read"),
    [
        ({"type": "number"}, "[1, 2.5]", [1.0, 2.5]),
        ({"type": "array", "items": {"type": "number"}}, "[[1], [-2]]", [[1.0], [-2.0]]),
        ({"type": "integer"}, "[1, 2]", [1, 2]),
        ({"type": ["integer", "number"]}, "[1, 2.5]", [1, 2.5]),
        ({"type": "number"}, "[9007199254740993]", [9007199254740993]),
        ({}, "[1]", [1]),
    ],
)
def test_a_list_of_numbers_holds_floats(items, written, read):
    numbers = {"type": "array", "items": items}
    tool = ToolDefinition("mean", "", {"type": "object", "properties": {"numbers": numbers}})
    [call] = read_calls(f"mean(numbers={written})", (tool,))
    assert repr(call.arguments["numbers"]) == repr(read)
