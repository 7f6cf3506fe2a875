"""Built-in tools have simple schemas and accept common variants of arguments."""

import orjson
import pytest

from opposable.builtin_tools.calculator.calculator import calculator
from opposable.builtin_tools.clock import time
from opposable.builtin_tools.echo import echo
from opposable.builtin_tools.file_search import FileSearch
from opposable.builtin_tools.logs.log_transform import LogTransform
from opposable.domain.call_context import NO_CONTEXT
from opposable.tools.function import FunctionTool, tools_from_object

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"numbers": [1, 2, 3], "operation": ["mean", "max"]}, {"mean": 2, "max": 3}),
        ({"numbers": "1, 2, 3", "operation": "mean"}, {"mean": 2}),
        ({"numbers": "[1，2，3]", "operation": "mean"}, {"mean": 2}),
        ({"numbers": ["1", "2.5"], "operation": "sum"}, {"sum": 3.5}),
        ({"numbers": 16, "operation": "sqrt"}, {"sqrt": 4}),
        ({"numbers": [9007199254740993], "operation": "sum"}, {"sum": 9007199254740993}),
        ({"expression": "2**100"}, {"expression": "2**100", "result": str(2**100)}),
    ],
)
async def test_argument_variants_of_models_are_accepted(arguments, expected):
    tool = FunctionTool(calculator)
    result = await tool.run(tool.check(arguments), NO_CONTEXT)
    assert result == expected
    assert orjson.loads(orjson.dumps(result)) == expected


def test_schemas_are_simple_and_every_parameter_is_described(tmp_path):
    tools = [
        FunctionTool(echo),
        FunctionTool(calculator),
        FunctionTool(time),
        *tools_from_object(FileSearch([tmp_path]), "file_search"),
        *tools_from_object(LogTransform([tmp_path]), "log_transform"),
    ]
    parameters = {
        tool.tool_id: {name: field["type"] for name, field in tool.definition.parameters["properties"].items()}
        for tool in tools
    }
    assert parameters == {
        "echo": {"text": "string"},
        "calculator": {"expression": "string", "numbers": "array", "operation": "string"},
        "time": {"timezone": "string"},
        "file_search": {"query": "string", "root_dir": "string", "limit": "integer"},
        "file_search.read_file": {"path": "string", "start_line": "integer", "lines": "integer"},
        "log_transform": {"path": "string", "limit": "integer"},
    }
    assert all("description" in field for tool in tools for field in tool.definition.parameters["properties"].values())
    assert all(len(tool.definition.description) < 110 for tool in tools)
