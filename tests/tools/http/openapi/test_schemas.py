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


# Discriminators.

PET = {
    "type": "object",
    "required": ["petType"],
    "properties": {"petType": {"type": "string"}, "friend": refer_to("Body")},
    "discriminator": {"propertyName": "petType"},
}
CAT = {
    "allOf": [refer_to("Body"), {"type": "object", "properties": {"meow": {"type": "boolean"}}, "required": ["meow"]}]
}
DOG = {"allOf": [refer_to("Body"), {"type": "object", "properties": {"bark": {"type": "boolean"}}}]}
MAPPING = {"cat": refer_to("Cat")["$ref"], "kitten": "Cat", "dog": "Dog"}


def map_values(schema, mapping):
    return {**schema, "discriminator": {**schema["discriminator"], "mapping": mapping}}


def test_a_base_with_a_discriminator_is_a_choice_of_what_extends_it():
    base = {key: value for key, value in PET.items() if key != "properties"}
    base |= {"properties": {"petType": {"type": "string"}}, "description": "A pet."}
    tool = create_tool({"Body": map_values(base, MAPPING), "Cat": CAT, "Dog": DOG})
    part = {"type": "object", "properties": {"petType": {"type": "string"}}, "required": ["petType"]}
    part = {"type": "object", "description": "A pet.", **part}
    assert tool.spec.parameters["properties"]["body"] == {
        "anyOf": [
            {"allOf": [part, CAT["allOf"][1]], "properties": {"petType": {"enum": ["cat", "kitten"]}}},
            {"allOf": [part, DOG["allOf"][1]], "properties": {"petType": {"enum": ["dog"]}}},
        ],
        "description": "A pet.",
    }


@pytest.mark.parametrize(
    ("mapping", "cat", "dog"),
    [(MAPPING, "cat", "dog"), (MAPPING, "kitten", "dog"), ({"cat": "Cat"}, "cat", "Dog"), ({}, "Cat", "Dog")],
)
def test_values_of_a_discriminator_select_a_schema(mapping, cat, dog):
    """A schema without a value in the mapping is selected by its name."""
    tool = create_tool({"Body": map_values(PET, mapping), "Cat": CAT, "Dog": DOG})
    assert is_valid(tool, {"petType": cat, "meow": True, "friend": {"petType": dog, "friend": {"petType": dog}}})
    assert not is_valid(tool, {"petType": cat})
    assert not is_valid(tool, {"petType": dog, "friend": {"petType": cat}})
    assert not is_valid(tool, {"petType": "bird"})


@pytest.mark.parametrize(("count", "properties"), [(21, 1), (20, 20)])
def test_a_base_with_many_or_large_extensions_stays_as_it_is(count, properties):
    own = {"type": "object", "properties": {f"p{index}": {"type": "string"} for index in range(properties)}}
    base = {**PET, "properties": {"petType": {"type": "string"}}}
    tool = create_tool({"Body": base, **{f"Pet{index}": {"allOf": [refer_to("Body"), own]} for index in range(count)}})
    assert list(tool.spec.parameters["properties"]) == ["petType"]
    assert "$defs" not in tool.spec.parameters


def test_a_base_in_its_own_mapping_is_one_of_the_choices():
    base = map_values(PET, {"pet": "Body", "cat": "Cat"})
    tool = create_tool({"Body": base, "Cat": CAT, "Lion": {"allOf": [refer_to("Cat"), {"required": ["mane"]}]}})
    bodies = [{"petType": "pet"}, {"petType": "cat", "meow": True}, {"petType": "Lion", "meow": True, "mane": 1}]
    assert [is_valid(tool, body) for body in bodies] == [True, True, True]
    assert not is_valid(tool, {"petType": "Lion", "meow": True})


def test_a_reference_with_a_description_is_a_reference():
    wrapped = {"allOf": [refer_to("Pet")], "description": "The pet.", "nullable": True}
    pet = {**map_values(PET, MAPPING), "properties": {"petType": {"type": "string"}}, "additionalProperties": False}
    extensions = [{"allOf": [refer_to("Pet"), one["allOf"][1]]} for one in (CAT, DOG)]
    schemas = {"Pet": pet, "Cat": extensions[0], "Dog": extensions[1], "Tiger": {"allOf": [refer_to("Pet")]}}
    tool = create_tool({**schemas, "Body": {"type": "array", "items": wrapped}})
    assert is_valid(tool, [{"petType": "cat", "meow": True}, {"petType": "Tiger"}, None])
    for body in ({"petType": "cat"}, {"petType": "cat", "meow": True, "bark": 1}, {"petType": "Tiger", "meow": 1}):
        assert not is_valid(tool, [body])


def test_a_schema_that_extends_a_base_is_no_choice():
    tool = create_tool({"Pet": map_values(PET, MAPPING), "Body": {"allOf": [refer_to("Pet"), CAT["allOf"][1]]}})
    assert tool.spec.parameters["properties"]["body"]["allOf"][0]["properties"]["petType"] == {"type": "string"}


def test_a_mapped_schema_outside_of_the_document_allows_any_value():
    base = map_values(PET, {"cat": "Cat", "bird": "https://other.example/bird.json"})
    root = {"paths": {"/t": {"post": {"requestBody": {"content": {"application/json": {"schema": refer_to("Body")}}}}}}}
    root |= {"openapi": "3.1.0", "components": {"schemas": {"Body": base, "Cat": CAT}}}
    result = specs_from_openapi(OpenApiDocument(root), server="https://api.example")
    assert "other.example/bird.json, outside of the document" in result.skipped_parts[0].reason
    assert is_valid(HttpTool(result.specs[0], GuardedClient(), {}), {"petType": "bird", "wings": 2})


CARD = {"type": "object", "properties": {"kind": {"type": "string"}, "number": {"type": "string"}}}
IBAN = {"allOf": [{"properties": {"kind": {"enum": ["sepa", "card"]}}}], "properties": {"iban": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schemas", "discriminator", "kinds"),
    [
        ({"Card": CARD, "Iban": IBAN}, {"mapping": {"card": "Card", "sepa": "Iban"}}, [["card"], ["sepa"]]),
        ({"Card": CARD, "Iban": CARD}, {}, [["Card"], ["Iban"]]),
        ({"Card": CARD, "Iban": IBAN}, {}, [["Card"], None]),  # its own values are others than its name
        ({"Card": CARD, "Iban": {"oneOf": [CARD]}}, {}, [["Card"], None]),  # which have values of their own
        ({"Card": CARD, "Iban": {"properties": {"kind": {"const": "Iban"}}}}, {}, [["Card"], None]),
        ({"Card": CARD, "Iban": {"properties": {"kind": {"type": "integer"}}}}, {}, [["Card"], None]),
        ({"Card": CARD, "Iban": CARD}, {"defaultMapping": "Iban"}, [["Card"], None]),
    ],
)
def test_each_choice_of_a_discriminator_shows_its_values(schemas, discriminator, kinds):
    choice = {"oneOf": [refer_to("Card"), refer_to("Iban")], "discriminator": {"propertyName": "kind", **discriminator}}
    tool = create_tool({**schemas, "Body": choice})
    choices = tool.spec.parameters["properties"]["body"]["anyOf"]
    assert [one.get("properties", {}).get("kind", {}).get("enum") for one in choices] == kinds


def test_a_multipart_body_stays_a_list_of_fields():
    tool = create_tool({"Body": map_values(PET, MAPPING), "Cat": CAT, "Dog": DOG}, kind="multipart/form-data")
    assert set(tool.spec.parameters["properties"]) == {"petType", "friend"}


def test_a_choice_that_is_too_large_is_left_out():
    wide = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(3_000)}}
    cats = {f"Cat{n}": {"allOf": [refer_to("Body"), wide]} for n in range(10)}
    tool = create_tool({"Body": PET, **cats})
    assert set(tool.spec.parameters["properties"]) == {"petType", "friend"}
