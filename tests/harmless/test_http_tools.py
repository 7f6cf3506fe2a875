"""HTTP endpoints as tools of a capable model: the request has its arguments, and the whole answer reaches it."""

import json

import pytest
from aiohttp import web
from tests.safety.network.web_server import run_web_server

from opposable.agent.agent import Agent
from opposable.domain.messages import Message, assistant_message
from opposable.domain.specs import HttpToolSpec
from opposable.domain.tools import ToolCall
from opposable.models.scripted import ScriptedModel
from opposable.safety.network.guarded_client import GuardedClient
from opposable.tools.http.http_tool import HttpTool
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server():
    async with run_web_server() as server:
        yield server


@pytest.fixture
async def client(server):
    client = GuardedClient([server.host])
    yield client
    await client.aclose()


async def call(server, client, path: str, arguments: dict, **endpoint) -> Message:
    """Let a model call an endpoint once. Return the result that it received."""
    spec = HttpToolSpec(
        tool_id="t",
        parameters={"type": "object", "properties": {name: {} for name in arguments}},
        endpoint={"url_template": server.url + path, **endpoint},
    )
    library = ToolLibrary()
    library.register(spec, [HttpTool(spec, client, {})])
    model = ScriptedModel(assistant_message("", (ToolCall("c1", "t", arguments),)), "Done.")
    async with Agent(model, library) as agent:
        end = await agent.run("Do it.")
    assert (end.text, len(model.requests), len(server.seen)) == ("Done.", 2, 1)
    [result] = [message for message in end.messages if message.role == "tool"]
    return result


POST = {"method": "POST"}


@pytest.mark.parametrize(
    ("path", "endpoint", "arguments", "target", "body"),
    [
        ("/q", {}, {"q": ""}, "/q?q=", ""),
        ("/q", {}, {"a": False, "b": 0, "c": 0.5}, "/q?a=false&b=0&c=0.5", ""),
        ("/q", {}, {"q": "C++ & 你 +1"}, "/q?q=C%2B%2B%20%26%20%E4%BD%A0%20%2B1", ""),
        ("/q/{id}", {}, {"id": 12345678901234567890123}, "/q/12345678901234567890123", ""),
        ("/files/{name}", {}, {"name": "..."}, "/files/...", ""),
        ("/tags/{name}", {}, {"name": "v1..2"}, "/tags/v1..2", ""),
        ("/o/{p}", {}, {"p": "src/main.py"}, "/o/src%2Fmain.py", ""),
        ("/b/{id}", {"method": "DELETE"}, {"id": "7", "force": True}, "/b/7?force=true", ""),
        (
            "/b/{id}",
            {"method": "DELETE", "places": {"reason": "body"}},
            {"id": "7", "reason": "x"},
            "/b/7",
            '{"reason":"x"}',
        ),
        ("/b", {"method": "PATCH"}, {"a": None, "b": {"c": None, "d": []}}, "/b", '{"a":null,"b":{"c":null,"d":[]}}'),
        ("/b", POST, {"n": [2**70, 1.0]}, "/b", '{"n": [1180591620717411303424, 1.0]}'),
        ("/b", {**POST, "body_param": "o"}, {"o": [{"op": "replace", "value": None}]}, "/b", '[{"op":"replace","value":null}]'),
        ("/b", {"method": "PUT", "body_type": "text", "body_param": "t"}, {"t": " a\r\n你 "}, "/b", " a\r\n你 "),
        ("/f", {**POST, "body_type": "form"}, {"a": ["x", "y"], "b": "a b&c=你"}, "/f", "a=x&a=y&b=a+b%26c%3D%E4%BD%A0"),
    ],
)  # fmt: skip
async def test_the_request_has_the_arguments(server, client, path, endpoint, arguments, target, body):
    await call(server, client, path, arguments, **endpoint)
    assert (server.seen[0].path, server.seen[0].body.decode()) == (target, body)


async def test_the_fields_and_files_of_a_form_have_their_names(server, client):
    arguments = {"files[]": {"filename": '报告 "1"\r\n.txt', "text": "x"}, "标题": "你好", "meta[a]": "b"}
    await call(server, client, "/u", arguments, method="POST", body_type="multipart", files=["files[]"])
    body = server.seen[0].body.decode()
    assert 'form-data; name="files[]"; filename="报告 %221%22%0D%0A.txt"\r\n' in body
    assert 'form-data; name="标题"\r\n\r\n你好\r\n' in body
    assert 'form-data; name="meta[a]"\r\n\r\nb\r\n' in body


@pytest.mark.parametrize(
    ("status", "answer", "headers", "received"),
    [
        (409, {"message": "version conflict", "current_version": 7}, {}, '"current_version":7'),
        (402, {"title": "No credit", "detail": "Balance 30, cost 50", "balance": 30}, {}, '"balance":30'),
        (400, {"error": {"code": "stock", "message": "3 left", "available": 3}}, {}, '"code":"stock"'),
        (400, {"error": {"message": "bad"}, "request_id": "r1"}, {}, '"request_id":"r1"'),
        (422, {"errors": [{"field": "a", "message": "bad"}], "allowed": ["S"]}, {}, '"allowed":["S"]'),
        (400, {"error": "invalid_grant", "error_description": "expired"}, {}, '"error":"invalid_grant"'),
        (422, {"email": ["Enter a valid address."]}, {}, '{"email":["Enter a valid address."]}'),
        (400, {"code": 40013, "msg": "库存不足"}, {}, '{"code":40013,"msg":"库存不足"}'),
        (400, {"errors": [f"line {n}" for n in range(200)]}, {}, '"line 199"'),
        (404, b"Not found:\n  - a\n  - b", {"content-type": "text/plain"}, "Not found:\n  - a\n  - b"),
        (404, {"message": "no such item"}, {}, "answered HTTP 404: no such item"),
        (304, b"", {}, "answered HTTP 304"),
        (300, {"choices": ["a"]}, {}, '{"choices":["a"]}'),
        (201, b"", {"location": "/orders/5"}, '{"status":201,"location":"/orders/5"}'),
        (204, b"", {}, '{"status":204}'),
        (202, {"job": 5}, {}, '{"job":5}'),
        (200, b'"hello"', {"content-type": "text/plain"}, '"hello"'),
        (200, "価格は五円".encode("shift_jis"), {"content-type": "text/plain; charset=shift_jis"}, "価格は五円"),
        (200, b"cb({})", {"content-type": "application/javascript"}, "cb({})"),
        (200, b"  two \n\n", {"content-type": "text/plain"}, "  two \n\n"),
    ],
)
async def test_the_whole_answer_reaches_the_model(server, client, status, answer, headers, received):
    async def respond(request):
        raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        return web.Response(body=raw, status=status, headers={"content-type": "application/json", **headers})

    server.answer = respond
    result = await call(server, client, "/", {})
    assert received in result.content
    assert result.is_error == (status >= 300)
