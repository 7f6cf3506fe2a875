"""A tool is tried before it is stored."""

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.web.api.asking import open_service_client

pytestmark = pytest.mark.anyio


async def test_an_http_tool_is_called_once_and_not_stored(tmp_path):
    async def stock(request: web.Request) -> web.Response:
        return web.json_response({"item": request.match_info["item"], "pieces": 4})

    app = web.Application()
    app.router.add_get("/items/{item}", stock)
    async with TestServer(app) as server, open_service_client(tmp_path, private_hosts=("127.0.0.1",)) as ask:
        spec = {
            "tool_type": "http",
            "tool_id": "stock",
            "endpoint": {"url_template": f"http://127.0.0.1:{server.port}/items/{{item}}"},
            "parameters": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
        }
        answer = await ask.request_json("POST", "/api/tools/try", {"tool": spec, "arguments": {"item": "A-17"}})
        assert (answer["success"], answer["content"]) == (True, '{"item":"A-17","pieces":4}')
        assert answer["parameters"]["required"] == ["item"]
        failed = await ask.request_json("POST", "/api/tools/try", {"tool": spec})
        assert failed["failure"] == "invalid_arguments"
        await ask.request_json("GET", "/api/tools/stock", status=404)


async def test_only_allowed_http_tools_are_tried(tmp_path):
    async with open_service_client(tmp_path) as ask:
        function = {"tool_type": "function", "tool_id": "f", "module_path": "os", "function_name": "getcwd"}
        error = await ask.request_json("POST", "/api/tools/try", {"tool": function}, status=400)
        assert "Only HTTP tools can be tried" in error["error"]["message"]
        secret = {"url_template": "https://example.com", "headers": {"X": "env:HOME"}}
        spec = {"tool_type": "http", "tool_id": "h", "endpoint": secret}
        await ask.request_json("POST", "/api/tools/try", {"tool": spec}, status=403)


@pytest.mark.parametrize("fields", [{"enabled": False}, {"dependencies": ["calculator"]}])
async def test_a_disabled_tool_and_one_with_dependencies_are_tried(tmp_path, fields):
    async with open_service_client(tmp_path) as ask:
        spec = {"tool_type": "http", "tool_id": "sum", "endpoint": {"url_template": "internal://calculator"}}
        body = {"tool": spec | fields, "arguments": {"expression": "2*21"}}
        answer = await ask.request_json("POST", "/api/tools/try", body)
        assert (answer["success"], "expression" in answer["parameters"]["properties"]) == (True, True)
