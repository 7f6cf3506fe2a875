"""What a schema says through `allOf`, `$ref` and a discriminator holds for the body as a whole."""

import pytest

from opposable.domain.errors import InvalidArguments
from opposable.safety.network.guarded_client import GuardedClient
from opposable.tools.http.http_tool import HttpTool
from opposable.tools.http.openapi.document import OpenApiDocument
from opposable.tools.http.openapi.importer import specs_from_openapi


def create_tool(schemas, body=None, kind="application/json", version="3.0.3"):
    """Create the tool of an operation whose body is the schema `Body`."""
    body = body or {"$ref": "#/components/schemas/Body"}
    operation = {"operationId": "op", "requestBody": {"required": True, "content": {kind: {"schema": body}}}}
    root = {
        "openapi": version,
        "info": {"title": "t", "version": "1"},
        "servers": [{"url": "https://api.example"}],
        "paths": {"/things": {"post": operation}},
        "components": {"schemas": schemas},
    }
    result = specs_from_openapi(OpenApiDocument(root))
    assert result.skipped_parts == ()
    [spec] = result.specs
    return HttpTool(spec, GuardedClient(), {})


def refer_to(name):
    return {"$ref": f"#/components/schemas/{name}"}


def is_valid(tool, body):
    try:
        return tool.check({"body": body}) == {"body": body}
    except InvalidArguments:
        return False


# Read-only properties.

BASE = {"type": "object", "properties": {"id": {"type": "integer", "readOnly": True}}}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}}
REQUIRED = {"required": ["id", "name"]}


@pytest.mark.parametrize(
    "body",
    [
        {"allOf": [refer_to("Base"), {**NAME, **REQUIRED}]},
        {"allOf": [{**NAME, **REQUIRED}, {"allOf": [refer_to("Base")]}]},
        {"allOf": [refer_to("Base")], **NAME, **REQUIRED},
        {"allOf": [{"allOf": [REQUIRED]}, NAME], "properties": BASE["properties"]},
    ],
)
def test_a_read_only_property_of_one_part_is_not_required_by_another(body):
    tool = create_tool({"Base": BASE, "Body": body})
    assert (is_valid(tool, {"name": "x"}), is_valid(tool, {})) == (True, False)


def test_a_recursive_part_is_converted_for_each_whole():
    """A part that is in `$defs` requires what its whole requires."""
    node = {"allOf": [refer_to("Base"), {**REQUIRED, "properties": {"name": {}, "next": refer_to("Body")}}]}
    tool = create_tool({"Base": BASE, "Body": node})
    assert is_valid(tool, {"name": "x", "next": {"name": "y", "next": {"name": "z"}}})
    assert not is_valid(tool, {"name": "x", "next": {"name": "y", "next": {}}})


# Closed parts.

CLOSED = {"type": "object", "additionalProperties": False, "properties": {"name": {"type": "string"}}}
MEOW = {"type": "object", "properties": {"meow": {"type": "boolean"}}}


@pytest.mark.parametrize(
    "body",
    [
        {"allOf": [refer_to("Closed"), {**MEOW, "additionalProperties": False}]},
        {"allOf": [refer_to("Closed")], **MEOW, "additionalProperties": False},
        {"allOf": [{"allOf": [refer_to("Closed")]}, {**MEOW, "unevaluatedProperties": False}]},
    ],
)
def test_closed_parts_refuse_only_what_no_part_has(body):
    tool = create_tool({"Closed": CLOSED, "Body": body})
    assert is_valid(tool, {"name": "Tom", "meow": True})
    assert not is_valid(tool, {"name": "Tom", "bark": True})


def test_a_part_with_further_properties_opens_the_whole():
    tool = create_tool({"Closed": CLOSED, "Body": {"allOf": [refer_to("Closed"), {"additionalProperties": {}}]}})
    assert is_valid(tool, {"name": "Tom", "bark": True})
