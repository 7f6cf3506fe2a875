"""The grammar of a reply."""

import pytest

from opposable.domain.tools import ToolDefinition
from opposable.models.python_protocol.grammar import build_grammar, simplify_schema


def define_tool(name: str, required: tuple[str, ...] = (), **properties: object) -> ToolDefinition:
    return ToolDefinition(name, "", {"type": "object", "properties": properties, "required": list(required)})


TEXT = {"type": "string", "description": "Any text."}
NUMBER = {"type": "integer", "minimum": 1}


def test_required_arguments_come_first_and_optional_ones_may_follow():
    grammar = build_grammar((define_tool("find", ("what",), limit=NUMBER, what=TEXT),), may_pass=True)
    assert grammar.splitlines() == [
        "%llguidance {}",
        'start: (lines | "pass") "\\n```"',
        'lines: call ("\\n" call){0,15}',
        "call: call_0",
        'call_0: "find(" (arg_0_0 (", " arg_0_1)?) ")"',
        'arg_0_0: "what=" %json {"type":"string"}',
        'arg_0_1: "limit=" %json {"type":"integer"}',
    ]


def test_any_optional_argument_may_be_the_first():
    lines = build_grammar((define_tool("ping"), define_tool("get", a=TEXT, b=TEXT)), may_pass=False).splitlines()
    assert lines[1] == 'start: (lines) "\\n```"'
    assert lines[3] == "call: call_0 | call_1"
    assert 'call_0: "ping("  ")"' in lines
    assert 'call_1: "get(" (arg_1_0 (", " arg_1_1)? | arg_1_1)? ")"' in lines


def test_names_are_quoted():
    grammar = build_grammar((define_tool("f", ('say-"hi"',), **{'say-"hi"': TEXT}),), may_pass=False)
    assert 'arg_0_0: "say-\\"hi\\"=" %json {"type":"string"}' in grammar


@pytest.mark.parametrize(
    ("schema", "simple"),
    [
        ({}, {}),
        ({"type": "string", "minLength": 3, "format": "uri"}, {"type": "string"}),
        ({"enum": ["a", 1]}, {"enum": ["a", 1]}),
        (
            {
                "type": "object",
                "properties": {"a": True, "b": {"type": "integer", "title": "B"}},
                "required": ["a", "z"],
            },
            {
                "type": "object",
                "properties": {"a": {}, "b": {"type": "integer"}},
                "required": ["a"],
                "additionalProperties": False,
            },
        ),
        ({"type": "object", "required": ["a"]}, {"type": "object"}),
        ({"type": "array", "items": {"type": "string", "title": "x"}}, {"type": "array", "items": {"type": "string"}}),
        (
            {"anyOf": [{"type": "null"}, {"type": "string", "title": "x"}]},
            {"anyOf": [{"type": "null"}, {"type": "string"}]},
        ),
    ],
)
def test_a_schema_is_cut_to_the_enforced_keywords(schema, simple):
    assert simplify_schema(schema) == simple


def test_a_date_has_the_format_that_its_description_names():
    schema = {"type": "string", "description": "The day, as YYYY-MM-DD."}
    assert simplify_schema(schema) == {"type": "string", "pattern": "^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}$"}
