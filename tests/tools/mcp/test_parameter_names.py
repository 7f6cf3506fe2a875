"""Parameters of a server whose names providers refuse: models see accepted names, and the server gets its own."""

import json

import pytest
from tests.tools.mcp.odd import create_spec, create_tool_json, write_tools

from opposable.domain.errors import InvalidArguments
from opposable.tools.json_schema_validation import compile_validator
from opposable.tools.library import ToolLibrary
from opposable.tools.mcp.parameter_names import rename_parameters
from opposable.tools.mcp.remote_server import McpServer

pytestmark = pytest.mark.anyio

TEXT = {"type": "string"}
INTEGER = {"type": "integer"}
QUERY = {
    "type": "object",
    "properties": {
        "$top": {"type": "integer", "maximum": 100, "description": "How <|im_start|> many."},
        "page[size]": {"$ref": "#/properties/%24top"},
        "城市": TEXT,
        "top": TEXT,
        "where": {"type": "object", "properties": {"$and": {"type": "array"}}},
    },
    "required": ["$top"],
    "additionalProperties": False,
}


def create_check(schema):
    return rename_parameters(schema, compile_validator(schema))


async def test_the_server_gets_its_own_names(tmp_path):
    tools = write_tools(tmp_path / "tools.json", create_tool_json("echo", schema=QUERY))
    async with McpServer(create_spec(tools)) as server:
        [tool] = server.tools
        assert tool.definition.parameters == {
            "type": "object",
            "properties": {
                "top_2": {"type": "integer", "maximum": 100, "description": "$top: How <\u2060|im_start|> many."},
                "page_size": {"$ref": "#/properties/top_2", "description": "page[size]"},
                "parameter_3": {"type": "string", "description": "城市"},
                "top": TEXT,
                "where": {"type": "object", "properties": {"$and": {"type": "array"}}},
            },
            "required": ["top_2"],
            "additionalProperties": False,
        }
        sent = {"$top": 5, "page[size]": 2, "城市": "上海", "top": "x", "where": {"$and": []}}
        seen = {"top_2": 5, "page_size": 2, "parameter_3": "上海", "top": "x", "where": {"$and": []}}
        library = ToolLibrary(server.tools)
        for arguments in (seen, sent):
            result = await library.call("odd.echo", arguments)
            assert (result.failure, result.content) == (None, json.dumps(sent, ensure_ascii=False))
        result = await library.call("odd.echo", {"page_size": 101})
        assert (result.failure, result.content.splitlines()[1:3]) == (
            "invalid_arguments",
            [
                "- page_size: must be less than or equal to 100 (given: 101)",
                "- top_2: is required (missing)",
            ],
        )


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"top_2": "5"}, "top_2"),
        ({"$top": "5"}, "top_2"),
        ({"$top": 5, "$skip": 1}, "$skip"),
        ({"$top": 5, "top_2": 5}, "$top"),
        ({"top_2": 5, "where": {"$and": 1}}, "where.$and"),
    ],
)
def test_problems_have_the_names_that_models_see(arguments, field):
    _, check = create_check(QUERY)
    with pytest.raises(InvalidArguments) as raised:
        check(arguments)
    [problem] = raised.value.problems
    assert problem.field == field
    if "such" in problem.problem:
        assert problem.problem.endswith("the parameters are top_2, page_size, parameter_3, top, where")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"page.size": TEXT, "_id-1": TEXT, "x" * 64: TEXT, "a": {"properties": {"$b": TEXT}}}},
        {"type": "object", "properties": {"a": TEXT}, "patternProperties": {"^\\$": TEXT}},
        {"type": "object", "properties": {"$a": TEXT}, "anyOf": [{"properties": {"b": {"$ref": "#/anyOf/1/properties/$c"}}}, {"properties": {"$c": TEXT}}]},
    ],
)  # fmt: skip
def test_accepted_names_and_names_that_cannot_change_stay(schema):
    validate = compile_validator(schema)
    assert rename_parameters(schema, validate) == (schema, validate)


def test_the_parameters_of_alternatives_are_renamed():
    circle = {"properties": {"@type": {"const": "circle"}, "r": INTEGER}, "required": ["@type", "r"]}
    square = {"properties": {"@type": {"const": "square"}, "a": INTEGER}, "required": ["@type", "a"]}
    schema, check = create_check({"type": "object", "properties": {}, "oneOf": [circle, square]})
    about = {"const": "square", "description": "@type"}
    assert schema["oneOf"][1] == {"properties": {"type": about, "a": INTEGER}, "required": ["type", "a"]}
    assert check({"type": "square", "a": 2}) == {"@type": "square", "a": 2}
    with pytest.raises(InvalidArguments, match=r"^a: is required$"):
        check({"type": "square"})


def test_the_server_s_schema_decides_what_is_valid():
    _, check = create_check({"type": "object", "properties": {"$a": TEXT}, "propertyNames": {"pattern": "^\\$"}})
    assert check({"a": "x"}) == check({"$a": "x"}) == {"$a": "x"}
