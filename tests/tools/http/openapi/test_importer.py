"""What of an OpenAPI document becomes which tool, and what is named as left out."""

import tracemalloc

import orjson
import pytest
from aiohttp import web
from tests.safety.network.web_server import run_web_server

from opposable.domain.call_context import NO_CONTEXT
from opposable.domain.errors import BadInput
from opposable.safety.network.guarded_client import GuardedClient
from opposable.tools.http.http_tool import HttpTool
from opposable.tools.http.openapi.document import OpenApiDocument, parse_document, read_document
from opposable.tools.http.openapi.importer import SkippedPart, specs_from_openapi

pytestmark = pytest.mark.anyio


def create_document(operation=None, *, version="3.1.0", method="post", path="/things", components=None, **more):
    item = {method: operation or {}}
    return {
        "openapi": version,
        "info": {"title": "Things", "version": "2.5"},
        "servers": [{"url": "https://api.example/v1/"}],
        "paths": {path: item},
        "components": components or {},
        **more,
    }


def create_body(schema, kind="application/json", required=True, **media):
    return {"requestBody": {"required": required, "content": {kind: {"schema": schema, **media}}}}


def import_one_spec(*args, **kwargs):
    [spec] = specs_from_openapi(OpenApiDocument(create_document(*args, **kwargs))).specs
    return spec


def test_an_operation_is_converted_completely():
    spec = import_one_spec(
        {
            "operationId": "Things: create!",
            "summary": "Create a thing.",
            "description": "Create a thing. It is\n  kept.",
            "tags": ["things"],
            "deprecated": True,
            "parameters": [{"name": "dry", "in": "query", "schema": {"type": "boolean"}, "description": "Only check."}],
            **create_body(
                {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "title": "Name"}}}
            ),
        }
    )
    assert spec.model_dump(exclude_defaults=True) == {
        "tool_id": "Things_create",
        "display_name": "Create a thing.",
        "description": "Deprecated. Create a thing. It is kept.",
        "tags": ("things",),
        "version": "2.5",
        "read_only": False,
        "metadata": {"operation": "POST /things", "deprecated": True},
        "endpoint": {
            "url_template": "https://api.example/v1/things",
            "method": "POST",
            "places": {"dry": "query"},
            "body_required": True,
        },
        "parameters": {
            "type": "object",
            "properties": {"dry": {"description": "Only check.", "type": "boolean"}, "name": {"type": "string"}},
            "required": ["name"],
        },
    }


def test_ids_are_safe_and_no_two_alike():
    paths = {
        "/a/{id}": {"get": {}, "delete": {"operationId": "x"}},
        "/b": {"get": {"operationId": "x"}, "put": {"operationId": "查询"}, "post": {"operationId": "y" * 200}},
    }
    found = specs_from_openapi(OpenApiDocument({**create_document(), "paths": paths}), prefix="p")
    ids = [spec.tool_id for spec in found.specs]
    assert ids[:4] == ["p.get_a_id", "p.x", "p.x_2", "p.查询"]
    assert len(ids[4]) == 100


# Schemas.

PET = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "id": {"type": "integer", "readOnly": True}},
    "required": ["name", "id"],
}
NODE = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}, "v": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("version", "schema", "expected"),
    [
        ("3.0.3", {"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ("3.0.3", {"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ("3.0.3", {"allOf": [{"$ref": "#/components/schemas/a~1b%20c"}], "nullable": True}, {"allOf": [{"type": "integer"}], "nullable": True}),
        ("3.0.3", {"$ref": "#/components/schemas/a~1b%20c", "nullable": True}, {"type": "integer", "nullable": True}),
        ("3.0.3", {"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ("3.0.3", {"type": "integer", "maximum": 9, "exclusiveMaximum": False}, {"type": "integer", "maximum": 9}),
        ("3.1.0", {"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ("3.1.0", {"$ref": "#/components/schemas/a~1b%20c", "nullable": True}, {"type": "integer", "nullable": True}),
        ("3.1.0", {"type": "string", "enum": ["latest", 1.1, 2, True]}, {"type": "string", "enum": ["latest", "1.1", "2", "true"]}),
        ("3.1.0", {"type": ["string", "integer"], "enum": ["latest", 2]}, {"type": ["string", "integer"], "enum": ["latest", 2]}),
        ("3.1.0", {"type": "object", "unevaluatedProperties": {"type": "string"}}, {"type": "object", "unevaluatedProperties": {"type": "string"}}),
        ("3.1.0", {"type": "integer", "exclusiveMinimum": 1}, {"type": "integer", "exclusiveMinimum": 1}),
        ("3.1.0", {"type": ["string", "null"], "const": "a"}, {"type": ["string", "null"], "const": "a"}),
        ("3.1.0", {"type": "string", "example": "x", "xml": {}, "x-y": 1, "title": "T", "default": "d"}, {"type": "string", "description": "Example: x", "default": "d"}),
        ("3.1.0", {"type": "string", "description": "a\n  b " + "c" * 5_000}, {"type": "string", "description": "a b " + "c" * 3_996 + "…"}),
        ("3.1.0", {"$ref": "#/components/schemas/Pet"}, {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}),
        ("3.1.0", {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"type": "object"}]}, {"allOf": [{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}, {"type": "object"}]}),
        ("3.1.0", {"type": "array", "items": {"$ref": "#/components/schemas/a~1b%20c"}}, {"type": "array", "items": {"type": "integer"}}),
        ("3.1.0", {"type": "object", "additionalProperties": {"type": "string"}}, {"type": "object", "additionalProperties": {"type": "string"}}),
        ("3.1.0", {"type": "object", "properties": {"a": True, "b": False}}, {"type": "object", "properties": {"a": {}, "b": {"not": {}}}}),
    ],
)  # fmt: skip
def test_a_converted_schema_is_self_contained(version, schema, expected):
    components = {"schemas": {"Pet": PET, "a/b c": {"type": "integer"}}}
    parameter = {"name": "q", "in": "query", "schema": schema}
    spec = import_one_spec({"parameters": [parameter]}, method="get", version=version, components=components)
    assert spec.parameters["properties"]["q"] == expected
    assert "$defs" not in spec.parameters


def test_examples_are_in_the_descriptions():
    month = {"type": "string", "description": "A month.", "examples": ["2024-01", "2024-02", None, "3", "4"]}
    day = {"name": "day", "in": "query", "description": "Such as 2024-01-31.", "schema": {"type": "string"}}
    pet = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "example": 4}}}
    operation = {
        "parameters": [
            {"name": "month", "in": "query", "description": "The month to report.", "schema": month},
            day | {"example": "2024-01-31"},
            {
                "name": "where",
                "in": "query",
                "schema": {},
                "examples": {"a": {"value": {"x": 1}}, "b": {"$ref": "#/x"}},
            },
            {"name": "large", "in": "query", "schema": {"example": [1] * 100, "type": "array"}},
        ],
        "requestBody": {"content": {"application/json": {"schema": pet, "example": {"name": "旺财", "age": 5}}}},
    }
    properties = import_one_spec(operation).parameters["properties"]
    assert {name: schema.get("description") for name, schema in properties.items()} == {
        "month": "The month to report.\nA month.\nExample: 2024-01, 2024-02, 3",
        "day": "Such as 2024-01-31.",
        "where": 'Example: {"x":1}',
        "large": None,
        "name": "Example: 旺财",
        "age": "Example: 4",
    }


def test_a_recursive_schema_is_defined_once():
    spec = import_one_spec(create_body({"$ref": "#/components/schemas/Node"}), components={"schemas": {"Node": NODE}})
    assert spec.parameters == {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/Node"}, "v": {"type": "integer"}},
        "$defs": {
            "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "v": {"type": "integer"}}}
        },
    }


def test_a_schema_that_is_nested_too_deeply_skips_its_operation():
    schema = {"type": "string"}
    for _ in range(900):
        schema = {"type": "array", "items": schema}
    result = specs_from_openapi(OpenApiDocument(create_document(create_body(schema))))
    assert result.specs == ()
    assert [part.reason for part in result.skipped_parts] == ["no tool: its schemas are too large"]


def test_schemas_that_double_at_each_step_stay_small():
    schemas = {
        f"L{n}": {"type": "object", "properties": {k: {"$ref": f"#/components/schemas/L{n + 1}"} for k in "abcd"}}
        for n in range(40)
    }
    schemas["L40"] = {"type": "string"}
    spec = import_one_spec(create_body({"$ref": "#/components/schemas/L0"}), components={"schemas": schemas})
    assert len(orjson.dumps(spec.parameters)) < 200_000


@pytest.mark.parametrize(
    "reference", ["https://evil.example/s.json", "other.yaml#/X", "file:///etc/passwd", "#/components/schemas/Gone"]
)
async def test_a_reference_out_of_the_document_is_named_and_not_followed(reference):
    async with run_web_server() as server:
        found = specs_from_openapi(
            OpenApiDocument(create_document(create_body({"type": "object", "properties": {"a": {"$ref": reference}}})))
        )
        assert found.specs[0].parameters["properties"] == {"a": {}}
        assert [(one.location, reference in one.reason) for one in found.skipped_parts] == [("POST /things", True)]
        assert server.seen == []


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "pattern": "(?<=a)b\\Z("}, {"type": "string"}),
        ({"type": "object", "patternProperties": {"(": {}}}, {"type": "object", "patternProperties": {}}),
        ({"type": "file"}, {}),
        ({"type": "integer", "minimum": "0"}, {"type": "integer"}),
    ],
)
def test_a_malformed_keyword_is_left_out_and_named(schema, expected):
    properties = {"a": schema, "b": {"type": "string", "pattern": "^[a-z]+$"}}
    found = specs_from_openapi(OpenApiDocument(create_document(create_body({"properties": properties}))))
    assert found.specs[0].parameters["properties"] == {**properties, "a": expected}
    assert "malformed keywords" in found.skipped_parts[0].reason


# Parameters, bodies, servers, security: against a real server.


async def send_request(server, spec_document, arguments, environ=None):
    """The request a document's only tool makes."""
    client = GuardedClient([server.host])
    found = specs_from_openapi(await read_document(spec_document, client), server=server.url)
    [spec] = found.specs
    assert found.skipped_parts == ()
    await HttpTool(spec, client, environ or {}).run(arguments, NO_CONTEXT)
    await client.aclose()
    return server.seen[-1]


@pytest.mark.parametrize(
    ("parameter", "value", "path"),
    [
        ({"in": "query", "schema": {"type": "array"}}, ["a", "b"], "/t?q=a&q=b"),
        ({"in": "query", "explode": False, "schema": {"type": "array"}}, ["a,b", "c"], "/t?q=a%2Cb,c"),
        ({"in": "query", "schema": {}}, ["a", None], "/t?q=a"),
        ({"in": "query", "schema": {}}, [None], "/t"),
        ({"in": "query", "schema": {}}, {"a": None, "b": 1}, "/t?b=1"),
        ({"in": "query", "style": "deepObject", "schema": {}}, {"a": None, "b": [1, None]}, "/t?q%5Bb%5D%5B%5D=1"),
        ({"in": "query", "style": "pipeDelimited", "explode": False, "schema": {}}, ["a", "b"], "/t?q=a%7Cb"),
        ({"in": "query", "style": "spaceDelimited", "schema": {}}, ["a", "b"], "/t?q=a%20b"),
        ({"in": "query", "schema": {"type": "object"}}, {"a": 1, "b": True}, "/t?a=1&b=true"),
        ({"in": "query", "explode": False, "schema": {}}, {"a": 1, "b": 2}, "/t?q=a,1,b,2"),
        ({"in": "query", "style": "deepObject", "explode": True, "schema": {}}, {"a": 1, "b": 2}, "/t?q%5Ba%5D=1&q%5Bb%5D=2"),
        ({"in": "query", "style": "deepObject", "explode": False, "schema": {}}, {"a": {"b": 1}}, "/t?q%5Ba%5D%5Bb%5D=1"),
        ({"in": "query", "style": "deepObject", "schema": {}}, {"a": [{"b": 1}, {"b": 2}]}, "/t?q%5Ba%5D%5B0%5D%5Bb%5D=1&q%5Ba%5D%5B1%5D%5Bb%5D=2"),
        ({"in": "query", "style": "deepObject", "schema": {}}, ["甲"], "/t?q%5B%5D=%E7%94%B2"),
        ({"in": "query", "explode": False, "schema": {}}, [], "/t"),
        ({"in": "query", "explode": False, "schema": {}}, {}, "/t"),
        ({"in": "query", "content": {"application/json": {"schema": {}}}}, {"a": [1]}, "/t?q=%7B%22a%22%3A%5B1%5D%7D"),
    ],
)  # fmt: skip
async def test_query_styles(server, parameter, value, path):
    made = create_document({"parameters": [{"name": "q", **parameter}]}, method="get", path="/t")
    assert (await send_request(server, made, {"q": value})).path == path


@pytest.mark.parametrize(
    ("explode", "value", "path"),
    [
        (False, ["1,/", 2, None], "/t/1%2C%2F,2"),
        (False, {"a": 1, "b": None}, "/t/a,1"),
        (False, {"a": None}, "/t/a,null"),
        (False, [None], "/t/null"),
        (True, {"a": 1, "b=": "2="}, "/t/a=1,b%3D=2%3D"),
        (False, "x/y", "/t/x%2Fy"),
    ],
)
async def test_path_styles(server, explode, value, path):
    parameter = {"name": "p", "in": "path", "required": True, "explode": explode, "schema": {}}
    assert (
        await send_request(
            server, create_document({"parameters": [parameter]}, method="get", path="/t/{p}"), {"p": value}
        )
    ).path == path


async def test_names_of_an_object_in_a_cookie_are_encoded(server):
    made = create_document(
        {"parameters": [{"name": "c", "in": "cookie", "schema": {"type": "object"}}]}, method="get", path="/t"
    )
    assert (await send_request(server, made, {"c": {"a; b": "c"}})).headers["cookie"] == "a%3B%20b=c"


async def test_a_discriminator_allows_schemas_that_overlap(server):
    kinds = [
        {"type": "object", "properties": {"kind": {"type": "string"}, field: {"type": "integer"}}}
        for field in ("bark", "meow")
    ]
    made = create_document(create_body({"oneOf": kinds, "discriminator": {"propertyName": "kind"}}), path="/t")
    [spec] = specs_from_openapi(await read_document(made, GuardedClient()), server=server.url).specs
    tool = HttpTool(spec, GuardedClient([server.host]), {})
    arguments = {"body": {"kind": "dog", "bark": 2}}
    assert tool.check(arguments) == arguments


def test_a_discriminator_leaves_other_alternatives_as_they_are():
    thing = {"anyOf": [{"type": "object"}], "oneOf": [{"required": ["a"]}], "discriminator": {"propertyName": "a"}}
    spec = import_one_spec(create_body({"type": "object", "properties": {"thing": thing}}))
    assert spec.parameters["properties"]["thing"] == {"anyOf": thing["anyOf"], "oneOf": thing["oneOf"]}


async def test_one_name_in_several_places(server):
    made = create_document(
        {
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
                {"name": "id", "in": "query", "schema": {"type": "string"}},
                {"name": "id", "in": "header", "schema": {"type": "string"}},
                {"name": "id", "in": "cookie", "schema": {"type": "string"}},
            ],
            **create_body({"type": "object", "properties": {"id": {"type": "string"}}}),
        },
        path="/t/{id}",
    )
    arguments = {"id": 1, "query_id": "q", "header_id": "h", "cookie_id": "c", "body_id": "b"}
    seen = await send_request(server, made, arguments)
    assert (seen.path, seen.headers["id"], seen.headers["cookie"], seen.body) == (
        "/t/1?id=q",
        "h",
        "id=c",
        b'{"id":"b"}',
    )


@pytest.mark.parametrize(
    ("request_body", "arguments", "content_type", "raw"),
    [
        (create_body({"type": "array", "items": {"type": "integer"}}), {"body": [1, 2]}, "application/json", b"[1,2]"),
        (create_body({"type": "object", "properties": {"a": {}}}, "application/merge-patch+json"), {"a": None}, "application/merge-patch+json", b'{"a":null}'),
        (create_body({"type": "object", "properties": {"a": {}}}), {}, "application/json", b"{}"),
        (create_body({"type": "object", "properties": {"a": {}}}, required=False), {}, None, b""),
        (create_body({"type": "object", "properties": {"a": {}}, "required": ["a"]}, required=False), {"body": {"a": 1}}, "application/json", b'{"a":1}'),
        (create_body({"type": "object", "properties": {"a": {}}, "additionalProperties": True}), {"body": {"b": 1}}, "application/json", b'{"b":1}'),
        (create_body({"type": "object", "properties": {"a": {}}, "additionalProperties": {}}), {"a": 1}, "application/json", b'{"a":1}'),
        (create_body({"type": ["object", "null"], "properties": {"a": {}}, "format": "x", "maxProperties": 5}), {"a": 1}, "application/json", b'{"a":1}'),
        (create_body({"type": "object", "nullable": True, "properties": {"a": {}}, "propertyNames": {"maxLength": 3}}), {"a": 1}, "application/json", b'{"a":1}'),
        (create_body({"type": "object", "properties": {"a": {}}, "unevaluatedProperties": True}), {"body": {"b": 1}}, "application/json", b'{"b":1}'),
        (create_body({"type": "object", "properties": {"a": {}}, "unevaluatedProperties": False}), {"a": 1}, "application/json", b'{"a":1}'),
        (create_body({"type": "object", "properties": {"a": {}}, "dependentRequired": {"a": ["b"]}}), {"body": {"a": 1, "b": 2}}, "application/json", b'{"a":1,"b":2}'),
        (create_body({"type": "object", "properties": {"a": {}, "b": {}}}, "application/x-www-form-urlencoded"), {"a": "x y", "b": [1, 2]}, "application/x-www-form-urlencoded", b"a=x+y&b=1&b=2"),
        (create_body({"type": "object", "properties": {"a": {}}}, "application/x-www-form-urlencoded"), {"a": None}, "application/x-www-form-urlencoded", b"a="),
        (create_body({"type": "object", "properties": {"m": {}, "n": {}}}, "application/x-www-form-urlencoded", encoding={"m": {"style": "deepObject", "explode": True}}), {"m": {"order": "17"}, "n": 1}, "application/x-www-form-urlencoded", b"m%5Border%5D=17&n=1"),
        (create_body({"type": "object", "properties": {"m": {}}}, "application/x-www-form-urlencoded", encoding={"m": {"style": "form", "explode": False}}), {"m": ["1,", 2]}, "application/x-www-form-urlencoded", b"m=1%2C,2"),
        (create_body({"type": "object", "properties": {"m": {}}}, "application/x-www-form-urlencoded", encoding={"m": {"explode": False}}), {"m": [1, None, 2]}, "application/x-www-form-urlencoded", b"m=1,null,2"),
        (create_body({"type": "object", "properties": {"m": {}}}, "application/x-www-form-urlencoded"), {"m": [{"a": None}, None]}, "application/x-www-form-urlencoded", b"m=%7B%22a%22%3Anull%7D&m=null"),
        (create_body({"type": "object", "properties": {"a": {}}}, "text/xml"), {"body": "<a/>"}, "text/xml", b"<a/>"),
        (create_body({"type": "string"}, "application/yaml"), {"body": "a: 1"}, "application/yaml", b"a: 1"),
        (create_body({"type": "string", "format": "binary"}, "application/pdf"), {"body": {"base64": "AAE="}}, "application/pdf", b"\0\1"),
        (create_body({"type": "string"}, "text/plain"), {"body": "hi"}, "text/plain; charset=utf-8", b"hi"),
        (create_body({"type": "string"}, "text/csv"), {"body": "a,b"}, "text/csv", b"a,b"),
        (create_body({"type": "string", "format": "binary"}, "application/octet-stream"), {"body": {"base64": "AAE="}}, "application/octet-stream", b"\0\1"),
        (create_body({"type": "string", "format": "binary"}, "image/png"), {"body": {"base64": "AAE="}}, "image/png", b"\0\1"),
    ],
)  # fmt: skip
async def test_bodies(server, request_body, arguments, content_type, raw):
    seen = await send_request(server, create_document(request_body), arguments)
    assert (seen.headers.get("content-type"), seen.body) == (content_type, raw)


async def test_a_multipart_body_with_files(server):
    schema = {
        "type": ["object", "null"],
        "properties": {
            "note": {"type": "string"},
            "file": {"type": "string", "format": "binary"},
            "more": {"type": "array", "items": {"type": "string", "contentMediaType": "image/png"}},
        },
        "additionalProperties": {},
    }
    arguments = {
        "note": "n",
        "file": {"filename": "a.txt", "text": "hi"},
        "more": [{"filename": "b.png", "base64": "AAE="}],
    }
    seen = await send_request(server, create_document(create_body(schema, "multipart/form-data")), arguments)
    assert seen.headers["content-type"].startswith("multipart/form-data; boundary=")
    for part in (b'name="note"', b'filename="a.txt"', b"\r\n\r\nhi\r\n", b'filename="b.png"', b"\r\n\r\n\0\1\r\n"):
        assert part in seen.body


async def test_objects_of_a_multipart_list_are_json(server):
    schema = {"type": "object", "properties": {"notes": {"type": "array", "items": {}}}}
    made = create_document(create_body(schema, "multipart/form-data"))
    seen = await send_request(server, made, {"notes": [{"a": 1}, "x", None]})
    parts = [part for part in seen.body.split(b"--") if b"form-data" in part]
    assert [(b"application/json" in part, part.split(b"\r\n\r\n")[1].strip()) for part in parts] == [
        (True, b'{"a":1}'),
        (False, b"x"),
        (False, b"null"),
    ]


async def test_a_list_in_a_cookie_is_encoded(server):
    parameter = {"name": "c", "in": "cookie", "explode": False, "schema": {}}
    made = create_document({"parameters": [parameter]}, method="get", path="/t")
    assert (await send_request(server, made, {"c": ["a", "b"]})).headers["cookie"] == "c=a%2Cb"


SCHEMES = {
    "bearerAuth": {"type": "http", "scheme": "Bearer"},
    "basic": {"type": "http", "scheme": "basic"},
    "app-key": {"type": "apiKey", "in": "header", "name": "X-App"},
    "query": {"type": "apiKey", "in": "query", "name": "key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "oauth": {"type": "oauth2", "flows": {}},
    "digest": {"type": "http", "scheme": "digest"},
}
ENVIRON = {
    "BEARERAUTH_TOKEN": "bearer1",
    "BASIC_USERNAME": "ann",
    "BASIC_PASSWORD": "pass1",
    "APP_KEY_API_KEY": "app1",
    "QUERY_API_KEY": "query1",
    "COOKIE_API_KEY": "cookie1",
    "OAUTH_TOKEN": "oauth1",
}


@pytest.mark.parametrize(
    ("security", "path", "headers"),
    [
        ([{"bearerAuth": []}], "/t", {"authorization": "Bearer bearer1"}),
        ([{"basic": []}], "/t", {"authorization": "Basic YW5uOnBhc3Mx"}),
        ([{"app-key": []}], "/t", {"x-app": "app1"}),
        ([{"query": []}], "/t?key=query1", {}),
        ([{"cookie": []}], "/t", {"cookie": "sid=cookie1"}),
        ([{"oauth": ["read"]}], "/t", {"authorization": "Bearer oauth1"}),
        ([{"oauth": []}, {"digest": []}, {"app-key": []}], "/t", {"x-app": "app1"}),
        ([{"bearerAuth": [], "app-key": []}], "/t", {"authorization": "Bearer bearer1", "x-app": "app1"}),
        ([{"bearerAuth": []}, {}], "/t", {"authorization": "Bearer bearer1"}),
        ([{}, {"oauth": []}, {"query": []}], "/t?key=query1", {}),
        ([{}, {"digest": []}], "/t", {}),
        ([{}], "/t", {}),
        ([], "/t", {}),
    ],
)
@pytest.mark.parametrize("at", ["document", "operation"])
async def test_security(server, security, path, headers, at):
    operation = {"security": security} if at == "operation" else {}
    more = {"security": security} if at == "document" else {"security": [{"digest": []}]}
    made = create_document(operation, method="get", path="/t", components={"securitySchemes": SCHEMES}, **more)
    seen = await send_request(server, made, {}, ENVIRON)
    names = {"authorization", "x-app", "cookie"}
    assert (seen.path, {name: seen.headers[name] for name in names if name in seen.headers}) == (path, headers)


@pytest.mark.parametrize(
    ("requirement", "environ"),
    [
        ({"bearerAuth": []}, {}),
        ({"query": []}, {"QUERY_API_KEY": " "}),
        ({"basic": []}, {"BASIC_USERNAME": "ann"}),
        ({"bearerAuth": [], "app-key": []}, {"BEARERAUTH_TOKEN": "bearer1"}),
        ({"bearerAuth": [], "app-key": []}, {"APP_KEY_API_KEY": "app1"}),
    ],
)
async def test_optional_authentication_is_not_sent_without_its_secrets(server, requirement, environ):
    operation = {"security": [{}, requirement]}
    made = create_document(operation, method="get", path="/t", components={"securitySchemes": SCHEMES})
    seen = await send_request(server, made, {}, environ)
    assert (seen.path, {"authorization", "x-app", "cookie"} & set(seen.headers)) == ("/t", set())


@pytest.mark.parametrize("security", [[{"basic": []}], [{"basic": []}, {}]])
def test_authentication_is_optional_where_an_empty_requirement_is_listed(security):
    made = create_document({"security": security}, components={"securitySchemes": SCHEMES})
    [spec] = specs_from_openapi(OpenApiDocument(made)).specs
    assert (spec.endpoint.auth.type, spec.endpoint.auth.optional) == ("basic", {} in security)


def test_secrets_are_named_after_the_prefix_and_the_scheme():
    made = create_document({"security": [{"bearerAuth": []}]}, components={"securitySchemes": SCHEMES})
    [spec] = specs_from_openapi(OpenApiDocument(made), prefix="shop").specs
    assert (spec.tool_id, spec.category, spec.endpoint.auth.token) == (
        "shop.post_things",
        "shop",
        "env:SHOP_BEARERAUTH_TOKEN",
    )


@pytest.mark.parametrize(
    ("servers", "source", "url"),
    [
        ([{"url": "https://a.example/v1"}], "", "https://a.example/v1/things"),
        ([{"url": "https://{r}.a.example:{p}/", "variables": {"r": {"default": "eu"}, "p": {"default": "8443"}}}], "", "https://eu.a.example:8443/things"),
        ([{"url": "/api"}], "https://b.example/docs/openapi.json", "https://b.example/api/things"),
        ([], "https://b.example/docs/openapi.json", "https://b.example/things"),
        ([{"url": "https://a.example/v1/?version=2"}], "", "https://a.example/v1/things?version=2"),
    ],
)  # fmt: skip
def test_servers(servers, source, url):
    [spec] = specs_from_openapi(OpenApiDocument({**create_document(), "servers": servers}, source)).specs
    assert spec.endpoint.url_template == url


def test_the_nearest_server_counts_and_a_missing_one_is_asked_for():
    made = create_document({"servers": [{"url": "https://near.example"}]})
    assert specs_from_openapi(OpenApiDocument(made)).specs[0].endpoint.url_template == "https://near.example/things"
    assert (
        specs_from_openapi(OpenApiDocument(made), server="https://mine.example/").specs[0].endpoint.url_template
        == "https://mine.example/things"
    )
    with pytest.raises(BadInput, match=r"has no host\. Give the server's URL"):
        specs_from_openapi(OpenApiDocument({**create_document(), "servers": [{"url": "/"}]}))


@pytest.mark.parametrize(
    ("summary", "text", "description"),
    [
        ("Lists things", "", "Lists things."),
        ("列出物品。", "按名称排序。", "列出物品。 按名称排序。"),
        ("列出物品。", "列出物品，按名称排序。", "列出物品，按名称排序。"),
        ("Lists things!", "Sorted.", "Lists things! Sorted."),
    ],
)
def test_a_summary_and_a_description_are_two_sentences(summary, text, description):
    assert import_one_spec({"summary": summary, "description": text}).description == description


def test_a_link_that_the_document_describes_is_shown():
    responses = {"200": {"description": "", "headers": {1: {}, "Link": {"schema": {"type": "string"}}}}}
    assert import_one_spec({"responses": responses}, method="get").response_transform.headers == ("link",)
    assert import_one_spec({"responses": {"404": responses["200"]}}).response_transform.headers == ()


def test_streams_are_streamable_and_reads_are_read_only():
    content = {"responses": {"200": {"content": {"text/event-stream": {}}}}}
    assert (import_one_spec(content, method="get").mode, import_one_spec(content, method="get").read_only) == (
        "streamable",
        True,
    )
    assert (import_one_spec(method="head").mode, import_one_spec(method="head").read_only) == ("invokable", True)
    assert import_one_spec(method="put").read_only is False


@pytest.mark.parametrize("name", ["Accept", "Content-Length", "Host", "Expect", "Connection", "Transfer-Encoding"])
def test_headers_that_the_client_sets_are_not_parameters(name):
    header = {"name": name, "in": "header", "required": True, "schema": {"type": "string"}}
    result = specs_from_openapi(OpenApiDocument(create_document({"parameters": [header]})))
    assert [spec.parameters["properties"] for spec in result.specs] == [{}]
    assert result.skipped_parts == ()


def test_keys_without_a_value_are_as_if_left_out():
    operation = dict.fromkeys(("parameters", "requestBody", "security", "servers", "tags", "responses"))
    document = create_document(operation, components={"securitySchemes": SCHEMES}, security=[{"query": []}])
    document["paths"]["/things"] |= {"parameters": None, "get": None}
    result = specs_from_openapi(OpenApiDocument(document))
    assert [spec.endpoint.auth.type for spec in result.specs] == ["api_key"]
    assert result.skipped_parts == ()


# What is left out.


@pytest.mark.parametrize(
    ("operation", "made", "why"),
    [
        (create_body({}, "application/xml"), 0, "no tool: its body is application/xml, none of which is supported"),
        (create_body({}, "application/xml", required=False), 1, "its body is application/xml, none of which is supported; it is sent without one"),
        ({"parameters": [{"name": "p", "in": "query", "required": True, "style": "label"}]}, 0, "no tool: style label is not supported in a query"),
        ({"parameters": [{"name": "p", "in": "query", "style": "label"}]}, 1, "parameter p: style label is not supported in a query"),
        ({"parameters": [{"name": "p", "in": "querystring"}]}, 0, "no tool: has a parameter in 'querystring', which is not supported"),
        ({"parameters": [{"$ref": "x.yaml#/p"}]}, 0, "no tool: refers to x.yaml#/p, outside of the document; nothing is fetched for it"),
        ({"parameters": [{"name": "p", "in": "query", "allowReserved": True, "schema": {}}]}, 1, "parameter p: reserved characters are percent-encoded all the same"),
        ({"security": [{"digest": []}]}, 0, "no tool: cannot be authenticated: the security scheme digest (http digest) is not supported"),
        ({"security": [{"gone": []}]}, 0, "no tool: cannot be authenticated: the security scheme gone is not described"),
        ({"security": [{"basic": [], "query": []}]}, 0, "no tool: cannot be authenticated: basic and query are needed together"),
    ],
)  # fmt: skip
def test_unusable_operations_are_reported(operation, made, why):
    found = specs_from_openapi(OpenApiDocument(create_document(operation, components={"securitySchemes": SCHEMES})))
    assert (len(found.specs), found.skipped_parts) == (made, (SkippedPart("POST /things", why),))


@pytest.mark.parametrize("path", [".evil.example/things", ":8443/things", "-evil.example", "things", "x-notes"])
def test_a_path_cannot_change_the_host_of_the_server(path):
    found = specs_from_openapi(OpenApiDocument(create_document(path=path)), server="https://api.example")
    assert (found.specs, found.skipped_parts) == ((), (SkippedPart(path, "is not a path, which begins with /"),))


def test_methods_and_webhooks_that_are_not_called_are_named():
    made = create_document(method="trace", webhooks={"x": {}})
    made["paths"]["/x"] = {"$ref": "gone.yaml"}
    found = specs_from_openapi(OpenApiDocument(made))
    assert found.specs == ()
    assert [one.location for one in found.skipped_parts] == ["TRACE /things", "/x", "webhooks"]


def test_only_the_tags_and_operations_wanted():
    paths = {
        f"/{name}": {"get": {"operationId": name, "tags": [tag]}} for name, tag in (("a", "x"), ("b", "y"), ("c", "z"))
    }
    found = specs_from_openapi(OpenApiDocument({**create_document(), "paths": paths}), include=["x", "c"])
    assert [spec.tool_id for spec in found.specs] == ["a", "c"]


# Reading.


def test_json_with_half_characters_or_deep_nesting_is_read():
    text = f'{{"openapi": "3.1.0", "info": "\\ud83d", "deep": {"[" * 5000}{"]" * 5000}}}'
    document = parse_document(text.encode(), "x")
    assert (document["openapi"], document["info"], len(document["deep"])) == ("3.1.0", "?", 1)


def test_yaml_keeps_words_as_they_are_written():
    text = b"a: 2026-11-20\nb: yes\nc: true\nd: 1.5\ne: 012\nf: 7\ng: 1e3\nh: ~\ni: 12:30\nj: {k: off}\n200: x\n1.10: {true: y}\n"
    assert parse_document(text, "x") == {
        "a": "2026-11-20", "b": "yes", "c": True, "d": 1.5, "e": "012", "f": 7, "g": 1000.0, "h": None, "i": "12:30", "j": {"k": "off"}, "200": "x", "1.10": {"true": "y"}
    }  # fmt: skip


@pytest.mark.parametrize("name", ["", 5, None])
def test_a_parameter_without_a_name_is_the_reason_for_a_skipped_operation(name):
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}}]
    root = {
        "openapi": "3.1.0",
        "servers": [{"url": "https://a.example"}],
        "paths": {"/b": {"get": {"parameters": parameters}}},
    }
    result = specs_from_openapi(OpenApiDocument(root))
    assert [part.reason for part in result.skipped_parts] == [
        f"no tool: has a parameter named {str(name)!r}; a name is a text that is not empty"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "neither JSON nor YAML"),
        (b"a: !!python/object/apply:os.system [id]", "neither JSON nor YAML"),
        (b"\0\1", "is not a text file"),
        (b"[]", "not an OpenAPI document"),
        (b"swagger: '2.0'\npaths: {}", "Swagger 2.0"),
        (b"openapi: 4.0.0\npaths: {}", "not an OpenAPI 3 document"),
        (b"openapi: 3.0.0", "no paths"),
        (b"paths: " + b"[" * 100_000, "nested too deep"),
        (b"- " * 100_000, "nested too deep"),
        (b"openapi: 3.0.0\npaths:\n  /a: {}\n  /a: {}", "line 4: /a is defined twice"),
    ],
)
async def test_an_invalid_document_is_refused_with_the_reason(tmp_path, text, said):
    path = tmp_path / "x.yaml"
    path.write_bytes(text)
    with pytest.raises(BadInput, match=said):
        await read_document(path, GuardedClient())


async def test_a_document_is_read_from_file_and_url(server, tmp_path):
    made = create_document({"operationId": "x"}, servers=[{"url": "/api"}])

    async def answer(request):
        return web.json_response(made, status=200 if request.path == "/openapi.json" else 404)

    server.answer = answer
    client = GuardedClient([server.host])
    read = await read_document(f"{server.url}/openapi.json", client)
    assert specs_from_openapi(read).specs[0].endpoint.url_template == f"{server.url}/api/things"
    with pytest.raises(BadInput, match="answered HTTP 404"):
        await read_document(f"{server.url}/gone", client)
    with pytest.raises(BadInput, match=r"cannot be fetched: 10\.0\.0\.1 is a private address"):
        await read_document("http://10.0.0.1/openapi.json", client)
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        await read_document(tmp_path / "gone.json", client)
    await client.aclose()


async def test_a_document_with_multiplying_aliases_is_read_quickly(tmp_path):
    levels = "\n".join(f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30))
    operation = "summary: *l29\n      description: *l29\n      tags: *l29\n      operationId: *l29"
    schema = "{type: array, items: {enum: *l29, default: *l29, const: *l29}, description: *l29}"
    parameter = f"[{{name: q, in: query, style: form, schema: {schema}}}, {{name: r, in: query, style: *l29}}]"
    (tmp_path / "bomb.yaml").write_text(
        f"x:\n  l0: &l0 [a]\n{levels}\n"
        f"openapi: 3.1.0\ninfo: {{version: *l29}}\nservers: [{{url: 'https://a.example'}}]\n"
        f"paths:\n  /x:\n    get:\n      {operation}\n      parameters: {parameter}\n"
    )
    [spec] = specs_from_openapi(await read_document(tmp_path / "bomb.yaml", GuardedClient())).specs
    assert (spec.tool_id, spec.description, spec.version, spec.tags) == ("get_x", "GET /x", "a list", ())
    assert spec.parameters["properties"] == {"q": {"type": "array", "items": {}}}


def test_multiplying_merge_keys_are_refused():
    levels = "\n".join(f"l{n}: &l{n} {{<<: [*l{n - 1}, *l{n - 1}]}}" for n in range(1, 40))
    with pytest.raises(BadInput, match="merge keys"):
        parse_document(f"l0: &l0 {{a: 1}}\n{levels}\n".encode(), "The text")


def test_merge_keys_are_counted_before_they_are_merged():
    pairs = ", ".join(f"k{n}: 1" for n in range(2000))
    document = f"a: &a {{{pairs}}}\nb: {{<<: [{', '.join(['*a'] * 2000)}]}}\n"
    parse_document(b"a: 1", "The text")  # what it imports is not measured
    tracemalloc.start()
    with pytest.raises(BadInput, match="merge keys"):
        parse_document(document.encode(), "The text")
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 10_000_000


def test_an_invalid_prefix_is_refused():
    with pytest.raises(BadInput, match="is not a valid prefix"):
        specs_from_openapi(OpenApiDocument(create_document()), prefix="a b")
