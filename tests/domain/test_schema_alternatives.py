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


def test_every_hosted_api_gets_the_flat_schema():
    tool = ToolDefinition("find", "Find.", {"type": "object", "anyOf": [BY_ID, BY_NAME]})
    claude = orjson.loads(anthropic.build_request("m", [user_message("hi")], [tool], DEFAULT_OPTIONS))
    chat = orjson.loads(b"{" + openai_compatible._encode_tools([tool], "auto")[1:])
    responses = openai_responses._encode_tool(tool)
    schemas = [claude["tools"][0]["input_schema"], chat["tools"][0]["function"]["parameters"], responses["parameters"]]
    assert schemas == [tool.flat_parameters] * 3
    assert all("anyOf" not in schema for schema in schemas)
