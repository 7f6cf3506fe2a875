"""A real document of a public project, called operation by operation on a server made from that document."""

import gzip
import re
from pathlib import Path
from urllib.parse import parse_qsl

import orjson
import pytest
from aiohttp import web

from opposable.domain.call_context import NO_CONTEXT
from opposable.safety.network.guarded_client import GuardedClient
from opposable.tools.http.http_tool import HttpTool
from opposable.tools.http.openapi.document import OpenApiDocument, parse_document, read_document
from opposable.tools.http.openapi.importer import specs_from_openapi

pytestmark = pytest.mark.anyio

AIRFLOW = Path(__file__).parents[3] / "data" / "openapi" / "airflow-3.3.2.yaml.gz"


def read_airflow_document() -> dict:
    return parse_document(gzip.decompress(AIRFLOW.read_bytes()), AIRFLOW.name)


def create_sample(schema: dict, root: dict, depth: int = 0):
    """A value that fits a schema of the document, with text that must be encoded."""
    if "$ref" in schema:
        return create_sample(OpenApiDocument(root).resolve_reference(schema["$ref"]), root, depth)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return create_sample(schema[key][0], root, depth)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        wanted = schema.get("properties", {})
        names = wanted if depth < 4 else schema.get("required", [])
        return {name: create_sample(wanted[name], root, depth + 1) for name in names}
    if kind == "array":
        return (
            []
            if depth >= 4
            else [create_sample(schema.get("items", {}), root, depth + 1)] * max(2, schema.get("minItems", 0))
        )
    if kind == "string":
        texts = ["2026-11-20T09:24:00+08:00"] if schema.get("format") == "date-time" else ["a/b c&d=é中", "a.b-c"]
        return next(text for text in texts if re.search(schema.get("pattern", ""), text))
    numbers = {"integer": 7, "number": 1.5, "boolean": True, "null": None}
    value = numbers.get(kind, "any")
    return max(value, schema.get("minimum", value)) if kind == "integer" else value


def iterate_operations(root: dict):
    return [
        (path, method, operation)
        for path, item in root["paths"].items()
        for method, operation in item.items()
        if method in ("get", "put", "post", "patch", "delete", "head")
    ]


def test_every_operation_becomes_a_tool():
    root = read_airflow_document()
    found = specs_from_openapi(OpenApiDocument(root), prefix="airflow", server="https://airflow.example")
    assert len(iterate_operations(root)) == 128
    assert [spec.metadata["operation"] for spec in found.specs] == [
        f"{m.upper()} {p}" for p, m, _ in iterate_operations(root)
    ]
    assert found.skipped_parts == ()
    assert {spec.endpoint.auth.token for spec in found.specs} == {"", "env:AIRFLOW_HTTPBEARER_TOKEN"}
    assert [spec.tool_id for spec in found.specs if spec.mode == "streamable"] != []
    assert all(spec.read_only == (spec.endpoint.method in ("GET", "HEAD")) for spec in found.specs)
    assert all(len(orjson.dumps(spec.parameters)) < 8000 for spec in found.specs)


@pytest.fixture
async def airflow():
    """Routes as the document has them; what came to each, by operation."""
    came: dict[str, dict] = {}
    app = web.Application()

    def route(path: str, method: str, operation: dict) -> None:
        async def handle(request: web.Request) -> web.Response:
            came[operation["operationId"]] = {
                "path": dict(request.match_info),
                "query": parse_qsl(request.rel_url.raw_query_string, keep_blank_values=True),
                "body": orjson.loads(raw) if (raw := await request.read()) else None,
                "type": request.headers.get("content-type"),
                "authorization": request.headers.get("authorization"),
                "headers": request.headers,
            }
            return web.json_response({"operation": operation["operationId"]})

        app.router.add_route(method, path, handle)

    # As OpenAPI has it, a path that is written out comes before one with a parameter in that place.
    for path, method, operation in sorted(
        iterate_operations(read_airflow_document()), key=lambda one: one[0].count("{")
    ):
        route(path, method, operation)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"127.0.0.1:{runner.addresses[0][1]}", came
    await runner.cleanup()


def to_text(value) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


async def test_every_operation_arrives_with_the_right_bytes(airflow):
    host, came = airflow
    root = read_airflow_document()
    client = GuardedClient([host])
    found = specs_from_openapi(await read_document(root, client), server=f"http://{host}")
    tools = {spec.metadata["operation"]: HttpTool(spec, client, {"HTTPBEARER_TOKEN": "sesame"}) for spec in found.specs}
    assert len(tools) > 100
    for path, method, operation in iterate_operations(root):
        arguments, headers, expected = {}, {}, {"path": {}, "query": [], "body": None}
        for parameter in operation.get("parameters", []):
            value = create_sample(parameter["schema"], root)
            if parameter["name"].lower() == "accept":
                continue
            arguments[parameter["name"]] = value
            if parameter["in"] == "header":
                headers[parameter["name"]] = to_text(value)
            elif parameter["in"] == "path":
                expected["path"][parameter["name"]] = to_text(value)
            elif isinstance(value, list):
                expected["query"] += [(parameter["name"], to_text(item)) for item in value]
            else:
                expected["query"].append((parameter["name"], to_text(value)))
        tool = tools[f"{method.upper()} {path}"]
        if "requestBody" in operation:
            expected["body"] = create_sample(operation["requestBody"]["content"]["application/json"]["schema"], root)
            if tool.spec.endpoint.body_param:
                arguments["body"] = expected["body"]
            else:
                places = tool.spec.endpoint.places
                taken = {getattr(place, "name", ""): name for name, place in places.items()}
                arguments |= {taken.get(name, name): value for name, value in expected["body"].items()}
        result = await tool.run(tool.check(arguments), NO_CONTEXT)
        name = operation["operationId"]
        assert method == "head" or result == {"operation": name}, name
        got = came[name]
        assert {key: got[key] for key in expected} == expected, name
        assert {header: got["headers"][header] for header in headers} == headers
        assert got["authorization"] == ("Bearer sesame" if operation.get("security") else None)
        assert got["type"] == ("application/json" if expected["body"] is not None else None)
    assert set(came) == {operation["operationId"] for _, _, operation in iterate_operations(root)}
    await client.aclose()
