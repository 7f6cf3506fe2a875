"""Arguments are parsed with the types of the schema, and never guessed."""

import pytest
from tests.parsers.linear_time import assert_linear

from opposable.domain.errors import FieldProblem
from opposable.parsers import ParsedArguments, parse_arguments, repair_arguments

ADD = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
GOOD = {"a": 2, "b": 3}

PARSED = {
    "JSON": ('{"a": 2, "b": 3}', ()),
    "closing bracket missing": ('{"a": 2, "b": 3', ("missing closing bracket added",)),
    "single quotes": ("{'a': 2, 'b': 3}", ("single quotes",)),
    "keywords": ("a=2, b=3", ("keyword arguments for JSON",)),
    "encoded twice": ('"{\\"a\\": 2, \\"b\\": 3}"', ("arguments encoded twice",)),
    "numbers as text": ('{"a": "2", "b": 3}', ("value given as text",)),
    "whole decimal": ('{"a": 2.0, "b": 3}', ("whole number written as a decimal",)),
    "fence": ('```json\n{"a": 2, "b": 3}\n```', ("code fence dropped",)),
    "wrapper": ('{"arguments": {"a": 2, "b": 3}}', ("wrapper around the arguments dropped",)),
    "wrapper with a name": (
        '{"name": "add", "parameters": {"a": 2, "b": 3}}',
        ("wrapper around the arguments dropped",),
    ),
    "list of one": ('[{"a": 2, "b": 3}]', ("list around the arguments dropped",)),
    "unquoted keys": ("{a: 2, b: 3}", ("unquoted key",)),
    "trailing comma": ('{"a": 2, "b": 3,}', ("trailing comma dropped",)),
    "comments": ('{"a": 2, // first\n "b": 3 /* second */}', ()),
    "doubled braces": ('{{"a": 2, "b": 3}}', ("doubled braces",)),
    "Chinese punctuation": ("{“a”：2，“b”：3}", ("other quotation marks", "full-width punctuation")),
    "comma missing": ('{"a": 2 "b": 3}', ("missing comma added",)),
    "bracket too many": ('{"a": 2, "b": 3}}', ("extra closing bracket dropped",)),
}


@pytest.mark.parametrize(("text", "repairs"), PARSED.values(), ids=PARSED)
def test_arguments_are_parsed_and_the_repair_is_reported(text, repairs):
    assert parse_arguments(text, ADD) == ParsedArguments(GOOD, None, repairs)


UNREADABLE = {
    "empty": "",
    "blank": " \n",
    "list": "[2, 3]",
    "number": "5",
    "words": "two and three",
    "unknown keyword": "a=2, c=3",
    "no value": '{"a": 2, "b":',
    "after a comma": '{"a": 2,',
    "within a string": '{"a": "2',
    "within a word": '{"a": tru',
    "without required": '{"a": 2',
    "two objects": '{"a": 2} {"b": 3}',
    "expression": '{"a": 1 + 1, "b": 3}',
    "prose inside": '{"a": two, "b": 3}',
    "not a number": '{"a": NaN, "b": 3}',
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable_arguments_have_a_problem(text):
    result = parse_arguments(text, ADD)
    assert result.value is None
    assert result.problem


def test_unfinished_arguments_of_a_truncated_reply_are_not_repaired():
    result = parse_arguments('{"a": 2, "b": 3', ADD, truncated=True)
    assert (result.value, result.is_cut_off) == (None, True)


def test_empty_text_is_no_arguments_if_none_are_required():
    assert parse_arguments("", {"type": "object", "properties": {"x": {"type": "integer"}}}) == ParsedArguments({})


def test_missing_arguments_are_named():
    assert parse_arguments("", ADD).problem == "they are empty, but a, b must be given"


def test_invalid_values_are_left_for_the_validator():
    assert parse_arguments('{"a": "two", "b": 3, "c": 4}', ADD).value == {"a": "two", "b": 3, "c": 4}


def schema_of_x(schema):
    return {"type": "object", "properties": {"x": schema}, "$defs": {"N": {"type": "integer"}}}


STRING, INTEGER, NUMBER, BOOLEAN = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
TYPED = [
    (STRING, '"1"', "1"),
    (STRING, '"true"', "true"),
    (STRING, '"null"', "null"),
    (STRING, '"{\\"a\\": 1}"', '{"a": 1}'),
    (STRING, "12", "12"),
    (STRING, "1.5", 1.5),
    (STRING, "0012", "0012"),
    (INTEGER, "0012", 12),
    ({}, "0012", "0012"),
    ({"type": "integer", "enum": [1, 8]}, "08", 8),
    ({"type": ["string", "null"], "enum": ["low", "high", None]}, '"Low"', "low"),
    ({"type": ["string", "null"], "enum": ["low", "high", None]}, '"so-so"', "so-so"),
    ({"type": "array", "items": {"type": ["string", "null"], "enum": ["low", None]}}, '["Low"]', ["low"]),
    ({"enum": [1, 8]}, "08", 8),
    ({"type": "integer", "enum": [1, 8]}, "09", "09"),
    (STRING, "true", True),
    (INTEGER, '"-7"', -7),
    (INTEGER, '"7.5"', "7.5"),
    (INTEGER, '"9007199254740993.0"', 9007199254740993),
    (INTEGER, '"1e30"', 10**30),
    (INTEGER, "1e30", 10**30),
    (INTEGER, '"1e999"', "1e999"),
    (INTEGER, '"12345678901234567890.5"', "12345678901234567890.5"),
    (INTEGER, '"seven"', "seven"),
    (INTEGER, "123456789012345678901234567890", 123456789012345678901234567890),
    (NUMBER, '"1.5e3"', 1500.0),
    (NUMBER, "3", 3),
    (BOOLEAN, '"true"', True),
    (BOOLEAN, '"False"', False),
    (BOOLEAN, '"maybe"', "maybe"),
    ({"type": "array", "items": {"enum": ["gas", "Heat"]}}, '"heat, gas"', ["Heat", "gas"]),
    ({"type": "array", "items": {"enum": ["gas", "Heat"]}}, '"gas"', ["gas"]),
    ({"type": "array", "items": {"enum": ["煤气", "热水"]}}, '"煤气、热水"', ["煤气", "热水"]),
    ({"type": "array", "items": {"enum": ["m", "M"]}}, '"M"', ["M"]),
    ({"type": "array", "items": {"enum": ["km", "KM"]}}, '"Km"', "Km"),
    ({"type": "array", "items": {"enum": ["gas", "Heat"]}}, '"gas, light"', "gas, light"),
    ({"type": "array", "items": {"type": "string"}}, '"a, b"', "a, b"),
    ({"type": "array", "items": {"type": "string"}}, '"a"', ["a"]),
    ({"type": "array", "items": {"type": "string"}}, '"[a"', "[a"),
    ({"type": "array", "items": {"type": "string"}}, '""', ""),
    ({"type": "array", "items": {"type": "string"}}, '{"a": 1}', {"a": 1}),
    ({"type": "array", "items": INTEGER}, "7", [7]),
    ({"type": "array", "items": INTEGER}, '"7"', [7]),
    ({"type": "array", "items": {"type": "object"}}, '{"a": 1}', [{"a": 1}]),
    ({"type": "array"}, '"a"', ["a"]),
    ({"type": "array"}, "null", None),
    ({"anyOf": [{"type": "array", "items": STRING}, {"type": "null"}]}, '"a"', ["a"]),
    ({"type": ["array", "string"]}, '"a"', "a"),
    ({"type": ["array", "string"], "items": {"enum": ["gas", "Heat"]}}, '"gas"', "gas"),
    ({"type": ["string", "null"]}, '"null"', "null"),
    ({"type": ["integer", "null"]}, '"null"', None),
    ({"type": "integer", "nullable": True}, '"null"', None),
    ({"anyOf": [INTEGER, {"type": "null"}]}, '"5"', 5),
    ({"type": "object"}, '"{\\"a\\": 1}"', {"a": 1}),
    ({"type": "array"}, '"[1, 2]"', [1, 2]),
    ({"type": "array", "items": INTEGER}, '["1", 2]', [1, 2]),
    ({"type": "object", "properties": {"n": INTEGER}}, '{"n": "4"}', {"n": 4}),
    ({"anyOf": [STRING, {"type": "object"}]}, '"{\\"a\\": 1}"', '{"a": 1}'),
    ({"enum": ["celsius", "kelvin"]}, '"Celsius"', "celsius"),
    ({"type": "string", "enum": ["A", "a"]}, '"a"', "a"),
    ({"enum": [1, 2]}, '"2"', 2),
    ({"$ref": "#/$defs/N"}, '"9"', 9),
    ({"$ref": "#/nowhere"}, '"9"', "9"),
    ({}, '"1"', "1"),
    ({"type": "array", "items": {"type": "array", "items": NUMBER}}, '[["1.5"]]', [[1.5]]),
]


@pytest.mark.parametrize(("schema", "written", "value"), TYPED)
def test_a_value_has_the_type_its_schema_asks_for(schema, written, value):
    result = parse_arguments(f'{{"x": {written}}}', schema_of_x(schema)).value
    assert result == {"x": value}
    assert type(result["x"]) is type(value)


STRINGS = [
    ('{"x": "a\nb"}', "a\nb"),
    ('{"x": "say "hi" now"}', 'say "hi" now'),
    (r'{"x": "C:\dir"}', "C:\\dir"),
    (r"{'x': 'it\'s'}", "it's"),
    ('{"x": "it\'s"}', "it's"),
    (r'{"x": "\ud83d\ude00"}', "😀"),
    ('{"x": """two\nlines""",}', "two\nlines"),
    ('{"x": "{{a}} [b] // c # d"}', "{{a}} [b] // c # d"),
    ('{"x": "</tool_call>",}', "</tool_call>"),
    ("{'x': '你好，“世界”'}", "你好，“世界”"),
]


@pytest.mark.parametrize(("text", "value"), STRINGS)
def test_the_content_of_a_string_is_preserved(text, value):
    assert parse_arguments(text, schema_of_x(STRING)).value == {"x": value}


def test_a_property_named_like_a_wrapper_is_not_unwrapped():
    schema = {"type": "object", "properties": {"input": {"type": "object"}}}
    assert parse_arguments('{"input": {"a": 1}}', schema) == ParsedArguments({"input": {"a": 1}})


def test_deep_nesting_is_reported_and_does_not_raise():
    assert parse_arguments('{"x": ' + "[" * 5000 + "1", schema_of_x({})).value is None


REF = {"anyOf": [{"const": "HEAD"}, {"type": "string"}]}
REPAIRS = [
    ({"ref": "head", "count": "5"}, "count", {"ref": "head", "count": 5}),
    ({"ref": "head", "counts": [{"n": "5"}]}, "counts.0.n", {"ref": "head", "counts": [{"n": 5}]}),
    (
        {"counts": [{"n": "5", "ref": "head"}, {"n": "6"}]},
        "counts.0.n",
        {"counts": [{"n": 5, "ref": "head"}, {"n": "6"}]},
    ),
    ({"nested": {"ref": "head", "n": "5"}}, "nested.n", {"nested": {"ref": "head", "n": 5}}),
    ({"nested": {"n": "5"}}, "nested.int.n", {"nested": {"n": 5}}),
    ({"count": "5"}, "", {"count": 5}),
    ('{"count": "5"}', "count", {"count": 5}),
    ({"arguments": {"count": "5"}}, "arguments", {"count": 5}),
    ({"count": "5", "input": {"x": 1}}, "input", {"count": 5, "input": {"x": 1}}),
]


@pytest.mark.parametrize(("given", "field", "repaired"), REPAIRS)
def test_an_argument_without_a_problem_is_not_changed(given, field, repaired):
    nested = {"type": "object", "properties": {"n": {"type": "integer"}, "ref": REF}}
    counts = {"type": "array", "items": nested}
    properties = {"ref": REF, "count": {"type": "integer"}, "counts": counts, "nested": nested}
    schema = {"type": "object", "properties": properties}
    assert repair_arguments(given, schema, [FieldProblem(field, "is wrong")]).value == repaired


@pytest.mark.parametrize("other", [{"id": "A-17"}, {"type": "urgent"}])
def test_a_wrapper_with_another_value_is_not_unwrapped(other):
    assert parse_arguments({"input": {"x": 1}, **other}, schema_of_x({})).value == {"input": {"x": 1}, **other}


CODES = {"code": {"type": "integer"}, "unit": {"enum": ["C"]}, "n": {"type": "integer"}}
TEXT_CODES = {"code": {"type": ["string", "integer"]}, "unit": {"type": "string"}, "n": {"type": "integer"}}


def alternative(properties, required=(), **kind):
    return {"type": "object", "properties": properties | kind, "required": list(required)}


UNIONS = {
    "by a constant": [alternative(CODES, kind={"const": "cat"}), alternative(TEXT_CODES, kind={"const": "dog"})],
    "by choices": [alternative(CODES, kind={"enum": ["cat"]}), alternative(TEXT_CODES, kind={"enum": ["dog", "fox"]})],
    "by a required property": [alternative(CODES, ["name"]), alternative(TEXT_CODES, ["kind"])],
    "next to null": [{"type": "null"}, alternative(TEXT_CODES)],
}
TEXT_CODE = {"kind": "dog", "code": "007", "unit": "c", "n": "3"}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
@pytest.mark.parametrize("alternatives", UNIONS.values(), ids=UNIONS)
def test_an_object_is_coerced_by_the_one_alternative_that_it_may_fit(alternatives, keyword):
    schema = schema_of_x({keyword: alternatives})
    for problems in ([FieldProblem("x", "is wrong")], []):
        repaired = repair_arguments({"x": TEXT_CODE}, schema, problems).value
        assert repaired == {"x": {"kind": "dog", "code": "007", "unit": "c", "n": 3}}


def test_the_constant_of_an_alternative_may_have_another_case():
    alternatives = [alternative({"n": {"type": "string"}}, kind={"const": "cat"}), *UNIONS["by a constant"][1:]]
    repaired = repair_arguments({"x": {"kind": "Dog", "n": "3"}}, schema_of_x({"anyOf": alternatives}), []).value
    assert repaired == {"x": {"kind": "dog", "n": 3}}


def test_an_object_that_can_fit_several_alternatives_is_coerced_where_they_agree():
    schema = {"anyOf": [alternative(CODES), alternative(TEXT_CODES)]}
    assert repair_arguments({"x": TEXT_CODE}, schema_of_x(schema), []).value == {"x": TEXT_CODE | {"n": 3}}


def test_unfinished_text_is_not_completed_where_an_argument_may_be_lost():
    schema = {"type": "object", "properties": {"to": STRING, "body": STRING}, "required": ["to"]}
    assert parse_arguments('{"to": "a@b.c"', schema).is_cut_off
    assert parse_arguments('{"to": "a@b.c", "body": "x"', schema).value == {"to": "a@b.c", "body": "x"}


def test_a_number_that_is_too_large_is_reported():
    assert parse_arguments('{"x": 1e400}', schema_of_x({})).problem == "1e400 is too large a number"


@pytest.mark.parametrize("space", [" ", "\n"])
def test_an_open_fence_before_endless_space_takes_linear_time(space):
    assert_linear(lambda size: parse_arguments("```json" + space * size, ADD), 3_000)
