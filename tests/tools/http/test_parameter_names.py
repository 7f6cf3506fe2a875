"""Parameters whose names providers refuse: models see accepted names, and the request has the original ones."""

import json
import re

import pytest

from opposable.domain.call_context import NO_CONTEXT
from opposable.domain.errors import InvalidArguments
from opposable.domain.parameter_names import choose_names
from opposable.domain.specs import HttpToolSpec
from opposable.tools.http.http_tool import HttpTool
from opposable.tools.http.openapi.document import OpenApiDocument
from opposable.tools.http.openapi.importer import specs_from_openapi

pytestmark = pytest.mark.anyio

TEXT = {"type": "string"}
INTEGER = {"type": "integer"}


def import_tool(server, client, operation, path="/things", method="post") -> HttpTool:
    document = {"openapi": "3.1.0", "info": {"title": "Things"}, "paths": {path: {method: operation}}}
    [spec] = specs_from_openapi(OpenApiDocument(document), server=server.url).specs
    return HttpTool(spec, client, {})


def create_tool(server, client, schema, **endpoint) -> HttpTool:
    endpoint = {"url_template": f"{server.url}/things", **endpoint}
    return HttpTool(HttpToolSpec(tool_id="things", parameters=schema, endpoint=endpoint), client, {})


def create_body(kind, **properties):
    schema = {"type": "object", "properties": properties, "required": [next(iter(properties))]}
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema}}}}


ODATA = {
    "parameters": [
        {"name": "$filter", "in": "query", "schema": TEXT, "description": "An OData filter."},
        {"name": "page[size]", "in": "query", "schema": {"type": "integer", "maximum": 100}},
        {"name": "filter", "in": "query", "schema": TEXT},
        {"name": "编号", "in": "path", "required": True, "schema": INTEGER},
    ],
    **create_body("application/json", **{"@type": TEXT, "name": TEXT}),
}


async def test_models_see_accepted_names(server, client):
    assert import_tool(server, client, ODATA, "/things/{编号}").definition.parameters == {
        "type": "object",
        "properties": {
            "filter_2": {"description": "$filter: An OData filter.", "type": "string"},
            "page_size": {"type": "integer", "maximum": 100, "description": "page[size]"},
            "filter": {"type": "string"},
            "parameter_4": {"type": "integer", "description": "编号"},
            "type": {"type": "string", "description": "@type"},
            "name": {"type": "string"},
        },
        "required": ["parameter_4", "type"],
    }


@pytest.mark.parametrize(
    "arguments",
    [
        {"filter_2": "a eq 1", "page_size": 5, "filter": "x", "parameter_4": 7, "type": "t", "name": "n"},
        {"$filter": "a eq 1", "page[size]": 5, "filter": "x", "编号": 7, "@type": "t", "name": "n"},
    ],
)
async def test_the_request_has_the_original_names(server, client, arguments):
    tool = import_tool(server, client, ODATA, "/things/{编号}")
    await tool.run(tool.check(arguments), NO_CONTEXT)
    [seen] = server.seen
    assert seen.path == "/things/7?%24filter=a%20eq%201&page%5Bsize%5D=5&filter=x"
    assert seen.body == b'{"@type":"t","name":"n"}'


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parameter_4": 1, "type": "t", "page[size]": 101}, "page_size: must be less than or equal to 100"),
        ({"parameter_4": 1}, "type: is required"),
        (
            {"parameter_4": 1, "type": "t", "$top": 1},
            "$top: there is no such parameter; the parameters are filter_2, page_size, filter, parameter_4, type, name",
        ),
        (
            {"parameter_4": 1, "type": "t", "@type": "u"},
            "@type: there is no such parameter; the parameters are filter_2, page_size, filter, parameter_4, type, name",
        ),
    ],
)
async def test_problems_have_the_names_that_models_see(server, client, arguments, message):
    with pytest.raises(InvalidArguments, match=re.escape(message)):
        import_tool(server, client, ODATA, "/things/{编号}").check(arguments)


async def test_files_and_styled_fields_have_their_original_names(server, client):
    file = {"type": "string", "format": "binary"}
    operation = create_body("multipart/form-data", **{"file[]": {"type": "array", "items": file}})
    tool = import_tool(server, client, operation)
    await tool.run(tool.check({"file": [{"filename": "a.txt", "text": "hi"}]}), NO_CONTEXT)
    assert b'name="file[]"; filename="a.txt"\r\n\r\nhi' in server.seen[0].body
    with pytest.raises(InvalidArguments, match=r"file\.base64: must be valid base64"):
        await tool.run(tool.check({"file[]": [{"base64": "?"}]}), NO_CONTEXT)
    operation = {"parameters": [{"name": "$q", "in": "query", "style": "deepObject", "schema": {"type": "object"}}]}
    tool = import_tool(server, client, operation, method="get")
    await tool.run(tool.check({"q": {"a": 1}}), NO_CONTEXT)
    assert server.seen[1].path == "/things?%24q%5Ba%5D=1"


async def test_the_defaults_and_the_whole_body_of_a_spec_are_sent(server, client):
    schema = {"type": "object", "properties": {"$top": {"type": "integer", "default": 5}, "内容": {"type": "object"}}}
    endpoint = {"method": "POST", "body_param": "内容", "defaults": True, "places": {"$top": "query"}}
    tool = create_tool(server, client, schema, **endpoint)
    assert list(tool.definition.parameters["properties"]) == ["top", "parameter_2"]
    await tool.run(tool.check({"parameter_2": {"$a": 1}}), NO_CONTEXT)
    assert (server.seen[0].path, json.loads(server.seen[0].body)) == ("/things?%24top=5", {"$a": 1})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"page.size": TEXT, "_id-1": TEXT, "x" * 64: TEXT}},
        {"type": "object", "properties": {"$a": TEXT, "$b": TEXT}, "anyOf": [{"required": ["$a"]}]},
        {"type": "object", "properties": {"$a": TEXT, "b": {"$ref": "#/properties/$a"}}},
    ],
)
async def test_accepted_names_and_names_that_the_schema_refers_to_do_not_change(server, client, schema):
    tool = create_tool(server, client, schema)
    arguments = dict.fromkeys(schema["properties"], "x")
    assert tool.definition.parameters == tool.spec.parameters == schema
    assert tool.check(arguments) is arguments


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ([], {}),
        (["filter", "$filter", "filter[]"], {"$filter": "filter_2", "filter[]": "filter_3"}),
        (["城市", "parameter_1", "用户 id"], {"城市": "parameter_1_2", "用户 id": "id"}),
        (["a" * 65, ""], {"a" * 65: "a" * 60, "": "parameter_2"}),
        (["filter[owner][name]", "x.y[]"], {"filter[owner][name]": "filter_owner_name", "x.y[]": "x.y"}),
    ],
)
def test_new_names_are_readable_and_free(parameters, names):
    assert choose_names(parameters) == names
