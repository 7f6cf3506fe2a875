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
        'call_0: "find(" (rule_2 (", " rule_3)?) ")"',
        'rule_0: %json {"type":"string"}',
        'rule_1: %json {"type":"integer"}',
        'rule_2: "what=" rule_0',
        'rule_3: "limit=" rule_1',
    ]


def test_any_optional_argument_may_be_the_first():
    lines = build_grammar((define_tool("ping"), define_tool("get", a=TEXT, b=TEXT)), may_pass=False).splitlines()
    assert lines[1] == 'start: (lines) "\\n```"'
    assert lines[3] == "call: call_0 | call_1"
    assert 'call_0: "ping("  ")"' in lines
    assert 'call_1: "get(" (rule_1 (", " rule_2)? | rule_2)? ")"' in lines


def test_names_are_quoted():
    grammar = build_grammar((define_tool("f", ('say-"hi"',), **{'say-"hi"': TEXT}),), may_pass=False)
    assert 'rule_1: "say-\\"hi\\"=" rule_0' in grammar


@pytest.mark.parametrize(
    ("schema", "rules"),
    [
        ({"type": "boolean"}, ['"True" | "False"']),
        ({"enum": ["a", None]}, ['"\\"a\\"" | "None"']),
        ({"type": ["string", "null"]}, ['%json {"type":"string"}', '"None"', "rule_0 | rule_1"]),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, ['"None"', '%json {"type":"integer"}', "rule_0 | rule_1"]),
        ({"type": "array", "items": {"type": "boolean"}}, ['"True" | "False"', '"[" (rule_0 (", " rule_0)*)? "]"']),
        (
            {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "integer"}}, "required": ["b"]},
            [
                '%json {"type":"integer"}',
                '"True" | "False"',
                r'"\"b\": " rule_0',
                r'"\"a\": " rule_1',
                '"{" (rule_2 (", " rule_3)?) "}"',
            ],
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}},
            ['%json {"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}'],
        ),
    ],
    ids=["boolean", "choice", "types", "alternatives", "list", "object", "object without booleans"],
)
def test_booleans_and_null_are_literals_of_python(schema, rules):
    lines = build_grammar((define_tool("f", ("x",), x=schema),), may_pass=False).splitlines()[5:]
    assert lines == [f"rule_{n}: {body}" for n, body in enumerate([*rules, f'"x=" rule_{len(rules) - 1}'])]


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
