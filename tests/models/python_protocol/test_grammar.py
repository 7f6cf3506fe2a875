"""The grammar of a reply."""

import pytest

from opposable.domain.tools import ToolDefinition
from opposable.models.python_protocol.grammar import NUMBER_PATTERN, build_grammar, find_pattern, simplify_schema


def define_tool(name: str, required: tuple[str, ...] = (), **properties: object) -> ToolDefinition:
    return ToolDefinition(name, "", {"type": "object", "properties": properties, "required": list(required)})


TEXT = {"type": "string", "description": "Any text."}
NUMBER = {"type": "integer", "minimum": 1}


def test_required_arguments_come_first_and_optional_ones_may_follow():
    grammar = build_grammar((define_tool("find", ("what",), limit=NUMBER, what=TEXT),))
    assert grammar.splitlines() == [
        "%llguidance {}",
        'start: call ("\\n" call){0,15} "\\n```"',
        "call: call_0",
        'call_0: "find(" (rule_3 (", " rule_5){0,1}) ")"',
        'rule_0: %json {"type":"string"}',
        f"rule_1: rule_0 | /{NUMBER_PATTERN.pattern}/",
        'rule_2: %json {"type":"integer"}',
        'rule_3: "what=" rule_1',
        'rule_4: "limit=" rule_2',
        "rule_5: rule_4",
    ]


def test_optional_arguments_may_come_in_any_order():
    parameters = {"a": NUMBER, "b": NUMBER, "c": NUMBER}
    lines = build_grammar((define_tool("ping"), define_tool("get", **parameters))).splitlines()
    assert lines[2] == "call: call_0 | call_1"
    assert 'call_0: "ping("  ")"' in lines
    assert 'call_1: "get(" (rule_4 (", " rule_4){0,2})? ")"' in lines
    assert "rule_4: rule_1 | rule_2 | rule_3" in lines


def test_a_single_optional_argument_has_no_repetition_which_llguidance_rejects():
    lines = build_grammar((define_tool("get", a=NUMBER),)).splitlines()
    assert 'call_0: "get(" (rule_2 )? ")"' in lines
    assert "rule_2: rule_1" in lines


def test_a_number_may_stand_for_a_text():
    lines = build_grammar((define_tool("f", ("x",), x={"enum": ["2010", "any"], "type": "string"}),))
    assert lines.splitlines()[4:6] == [r'rule_0: "\"2010\"" | "\"any\""', 'rule_1: rule_0 | "2010"']


def test_names_are_quoted():
    grammar = build_grammar((define_tool("f", ('say-"hi"',), **{'say-"hi"': NUMBER}),))
    assert 'rule_1: "say-\\"hi\\"=" rule_0' in grammar


@pytest.mark.parametrize(
    ("schema", "rules"),
    [
        ({"type": "boolean"}, ['"True" | "False"']),
        ({"enum": ["a", None]}, ['"\\"a\\"" | "None"']),
        ({"type": ["string", "null"]}, ['%json {"type":"string"}', '"None"', "rule_0 | rule_1"]),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, ['"None"', '%json {"type":"integer"}', "rule_0 | rule_1"]),
        (
            {"type": "array", "items": {"type": "boolean"}},
            ['"True" | "False"', r'"[" (rule_0 (/,( |\n {0,16})/ rule_0)*)? "]"'],
        ),
        (
            {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "integer"}}, "required": ["b"]},
            [
                '%json {"type":"integer"}',
                '"True" | "False"',
                r'"\"b\": " rule_0',
                r'"\"a\": " rule_1',
                "rule_3",
                '"{" (rule_2 (", " rule_4){0,1}) "}"',
            ],
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}},
                "anyOf": [{"required": ["a"]}, {"title": "Any"}],
                "required": ["a"],
            },
            ['%json {"type":"integer"}', r'"\"a\": " rule_0', '"{" (rule_1) "}"'],
        ),
    ],
    ids=["boolean", "choice", "types", "alternatives", "list", "object", "object with alternatives"],
)
def test_booleans_and_null_are_literals_of_python(schema, rules):
    lines = build_grammar((define_tool("f", ("x",), x=schema),)).splitlines()[4:]
    assert lines == [f"rule_{n}: {body}" for n, body in enumerate([*rules, f'"x=" rule_{len(rules) - 1}'])]


@pytest.mark.parametrize(
    ("schema", "simple"),
    [
        ({}, {}),
        ({"type": "string", "minLength": 3, "format": "uri"}, {"type": "string"}),
        ({"enum": ["a", 1]}, {"enum": ["a", 1]}),
        (
            {"type": "string", "description": "The place, in the format 'City, State'."},
            {"type": "string", "pattern": "^[^,]+(, [^,]+){1,}$"},
        ),
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


@pytest.mark.parametrize(
    ("description", "pattern"),
    [
        ("The city, in the format 'City, State', such as 'Berkeley, CA'.", "^[^,]+(, [^,]+){1,}$"),
        ('Formatted as "Street, City, State (abbr)".', "^[^,]+(, [^,]+){2,}$"),
        ("In the format of 'City, State' or 'City, Country'.", "^[^,]+(, [^,]+){1,}$"),
        ("Format: 'City, State', or in the format 'Street, City, State'.", ""),
        ("The format, one of (e.g., standard, 3D, IMAX).", ""),
        ("The city, such as 'Berkeley, CA'.", ""),
        ("The day, in the format YYYY-MM-DD.", ""),
        (None, ""),
    ],
)
def test_the_parts_of_a_described_format_are_required(description, pattern):
    schema = {"type": "string", "description": description}
    assert find_pattern(schema) == pattern
    assert find_pattern({**schema, "enum": ["Berkeley"]}) == find_pattern({**schema, "type": "integer"}) == ""
