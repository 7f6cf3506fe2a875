"""Schemas of arguments without alternatives at the top level."""

import orjson
import pytest

from opposable.domain.messages import user_message
from opposable.domain.schema_alternatives import flatten_alternatives
from opposable.domain.tools import ToolDefinition
from opposable.models import anthropic, openai_compatible, openai_responses
from opposable.models.base import DEFAULT_OPTIONS

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
BY_ID = {"properties": {"id": NUMBER}, "required": ["id"]}
BY_NAME = {"properties": {"name": TEXT, "exact": {"type": "boolean"}}, "required": ["name"]}


def test_a_plain_schema_is_the_same_object():
    plain = {"type": "object", "properties": {"a": {"anyOf": [TEXT, NUMBER]}}}
    assert flatten_alternatives(plain) is plain


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_the_properties_of_all_alternatives_are_listed_and_the_condition_is_described(keyword):
    schema = {"type": "object", "properties": {"limit": NUMBER}, "required": ["limit"], keyword: [BY_ID, BY_NAME]}
    flat = flatten_alternatives(schema)
    assert list(flat["properties"]) == ["limit", "id", "name", "exact"]
    assert flat["required"] == ["limit"]
    assert orjson.loads(flat["description"].partition(": ")[2]) == {keyword: [BY_ID, BY_NAME]}
    assert not flat.keys() & {"anyOf", "oneOf", "allOf"}


def test_what_all_alternatives_require_is_required():
    both = [{"properties": {"id": NUMBER}, "required": ["id", "kind"]}, {"required": ["kind", "name"]}]
    assert flatten_alternatives({"anyOf": both})["required"] == ["kind"]
    assert flatten_alternatives({"allOf": both})["required"] == ["id", "kind", "name"]


def test_references_are_followed_and_all_types_of_a_property_stay():
    schema = {
        "description": "Find it.",
        "$defs": {"a/b": {"properties": {"key": TEXT}}, "loop": {"$ref": "#/$defs/loop"}},
        "oneOf": [{"$ref": "#/$defs/a~1b"}, {"properties": {"key": NUMBER}}, {"$ref": "#/$defs/loop"}, True],
    }
    flat = flatten_alternatives(schema)
    assert flat["properties"] == {"key": {"anyOf": [TEXT, NUMBER]}}
    assert flat["description"].startswith("Find it.\nThe arguments must also match")
    assert (flat["type"], flat["$defs"]) == ("object", schema["$defs"])


def test_members_of_members_are_listed():
    schema = {
        "$defs": {"Key": {"$ref": "#/$defs/Text"}, "Text": {"properties": {"key": TEXT}, "required": ["key"]}},
        "allOf": [{"$ref": "#/$defs/Key"}, {"oneOf": [BY_ID, BY_NAME]}],
        "if": {"required": ["id"]},
        "then": {"properties": {"limit": NUMBER}, "required": ["limit"]},
        "additionalProperties": False,
    }
    flat = flatten_alternatives(schema)
    assert list(flat["properties"]) == ["key", "id", "name", "exact", "limit"]
    assert (flat["required"], flat["additionalProperties"]) == (["key"], False)


@pytest.mark.parametrize(
    "member", [{"$ref": "#/$defs/missing"}, {"allOf": [{"additionalProperties": TEXT}]}, {"patternProperties": {}}]
)
def test_a_schema_with_a_member_that_allows_further_properties_stays_open(member):
    flat = flatten_alternatives(
        {"properties": {"id": NUMBER}, "anyOf": [BY_ID, member], "unevaluatedProperties": False}
    )
    assert (flat["properties"]["id"], "unevaluatedProperties" in flat) == (NUMBER, False)


@pytest.mark.parametrize(
    "malformed",
    [
        {"allOf": True, "anyOf": {"type": "object"}},
        {"anyOf": [{"properties": ["a"], "required": True}], "description": 5},
        {"required": True, "properties": [], "anyOf": ["a", {"required": "ab"}]},
        {"oneOf": [{"$ref": "#/anyOf/9"}, {"$ref": "#/oneOf/0"}, {"$ref": 1}]},
    ],
)
def test_what_is_malformed_is_left_out(malformed):
    flat = flatten_alternatives(malformed)
    assert isinstance(flat["description"], str)
    assert (flat["type"], flat["properties"], "required" in flat) == ("object", {}, False)


def test_every_hosted_api_gets_the_flat_schema():
    tool = ToolDefinition("find", "Find.", {"type": "object", "anyOf": [BY_ID, BY_NAME]})
    claude = orjson.loads(anthropic.build_request("m", [user_message("hi")], [tool], DEFAULT_OPTIONS))
    chat = orjson.loads(b"{" + openai_compatible._encode_tools([tool], DEFAULT_OPTIONS)[1:])
    responses = openai_responses._encode_tool(tool)
    schemas = [claude["tools"][0]["input_schema"], chat["tools"][0]["function"]["parameters"], responses["parameters"]]
    assert schemas == [tool.flat_parameters] * 3
    assert all("anyOf" not in schema for schema in schemas)
