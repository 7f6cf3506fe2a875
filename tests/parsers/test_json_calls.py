"""Arguments of calls in JSON arrive as they are written if they are valid."""

import json

import pytest
from tests.parsers.splits import parse_in_every_split

from opposable.parsers import parse

FORMS = {
    "hermes": '<tool_call>\n{{"name": "t", "arguments": {}}}\n</tool_call>',
    "mistral": '[TOOL_CALLS][{{"name": "t", "arguments": {}}}]',
    "mistral, with a name": "[TOOL_CALLS]t[ARGS]{}",
    "llama": '<|python_tag|>{{"name": "t", "parameters": {}}}',
    "function tag": "<function=t>{}</function>",
    "bare": '{{"name": "t", "arguments": {}}}',
    "encoded twice": '<tool_call>\n{{"name": "t", "arguments": {!r}}}\n</tool_call>',
}


def call_tool(form, written, schema):
    text = json.dumps(written) if form == "encoded twice" else written
    result = parse_in_every_split(FORMS[form].replace("!r", "").format(text), [{"name": "t", "parameters": schema}])
    return [(call.name, call.arguments_json) for call in result.calls]


def schema_of(properties, required=(), **keywords):
    return {"type": "object", "properties": properties, "required": list(required), **keywords}


INTEGER, TEXT = {"type": "integer"}, {"type": "string"}
FREE_FORM = {"type": "object", "additionalProperties": True}
VALID = {
    **{f"a free-form object in {key}": (FREE_FORM, {key: {"a": 1}}) for key in ("arguments", "parameters", "args", "kwargs")},
    "a text in a free-form input": (FREE_FORM, {"input": "hello"}),
    "a text in a free-form input with a name": ({"type": "object"}, {"input": "ls", "name": "x"}),
    "JSON text": (FREE_FORM, {"arguments": '{"a": 1}'}),
    "no properties": ({}, {"input": {"x": "1"}}),
    "a whole decimal": (schema_of({"n": INTEGER}), {"n": 5.0}),
    "a choice or any text": (schema_of({"ref": {"anyOf": [{"const": "HEAD"}, TEXT]}}), {"ref": "head"}),
    "by a reference": ({"$ref": "#/$defs/F", "$defs": {"F": schema_of({"n": {"$ref": "#/$defs/N"}}), "N": INTEGER}}, {"n": 5.0}),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "arguments"), VALID.values(), ids=VALID)
@pytest.mark.parametrize("form", FORMS)
def test_valid_arguments_are_not_changed(form, schema, arguments):
    written = json.dumps(arguments, separators=(",", ":"))
    assert call_tool(form, written, schema) == [("t", written)]


REPAIRED = {
    "a wrapper without a required property": (schema_of({"x": INTEGER}, ["x"]), {"arguments": {"x": 1}}, {"x": 1}),
    "a wrapper where nothing else is allowed": (
        schema_of({"x": INTEGER}, additionalProperties=False),
        {"kwargs": {"x": "1"}},
        {"x": 1},
    ),
    "a number as text": (schema_of({"n": INTEGER}), {"n": "5"}, {"n": 5}),
    "one invalid value": (
        schema_of({"n": INTEGER, "m": INTEGER, "ref": {"anyOf": [{"const": "HEAD"}, TEXT]}}),
        {"n": "5", "m": 6.0, "ref": "head"},
        {"n": 5, "m": 6.0, "ref": "head"},
    ),
    "an unknown type": (schema_of({"n": {"type": "int"}}), {"n": 5.0}, {"n": 5}),
    "a remote reference": (schema_of({"n": INTEGER, "r": {"$ref": "http://127.0.0.1:1/s"}}), {"n": "5"}, {"n": 5}),
}


@pytest.mark.parametrize(("schema", "arguments", "repaired"), REPAIRED.values(), ids=REPAIRED)
@pytest.mark.parametrize("form", FORMS)
def test_the_invalid_arguments_are_repaired(form, schema, arguments, repaired):
    assert [json.loads(found) for _, found in call_tool(form, json.dumps(arguments), schema)] == [repaired]


def test_valid_arguments_have_no_repairs():
    text = FORMS["hermes"].format('{"arguments": {"a": 1}}')
    assert parse(text, [{"name": "t", "parameters": FREE_FORM}]).calls[0].repairs == ()


@pytest.mark.parametrize("depth", [50, 300, 1500])
def test_deeply_nested_arguments_do_not_raise(depth):
    value = "[" * depth + "]" * depth
    parse(
        FORMS["hermes"].format(f'{{"n": "5", "x": {value}}}'), [{"name": "t", "parameters": schema_of({"n": INTEGER})}]
    )
