"""APIs are called on allowed hosts only, and their responses are returned."""

import pytest
from aiohttp import web
from tests.safety.network.web_server import StubResolver, run_web_server

from opposable.builtin_tools.api_caller import ApiCaller
from opposable.domain.errors import BadInput
from opposable.safety.network.guarded_client import GuardedClient
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server():
    async with run_web_server() as server:
        yield server


@pytest.fixture
async def library(server):
    client = GuardedClient([server.host, f"api.example:{server.port}"], resolver=StubResolver(["127.0.0.1"]))
    hosts = [server.host, "api.example", "public.example"]
    yield ToolLibrary([FunctionTool(ApiCaller(client, hosts).api_caller)])
    await client.aclose()


async def test_json_is_sent_and_received(server, library):
    async def answer(request):
        return web.json_response({"城市": "北京"}, status=201, headers={"ETag": "x", "Set-Cookie": "a=b"})

    server.answer = answer
    result = await library.call(
        "api_caller",
        {
            "url": f"{server.url}/v1/items?a=1",
            "method": "POST",
            "query": {"q": "x y&中", "ids": [1, 2**70], "none": None},
            "headers": {"X-Trace": "t"},
            "body": {"name": "李", "id": 2**70},
        },
    )
    headers = {"content-type": "application/json; charset=utf-8", "etag": "x"}
    assert result.data == {"status": 201, "headers": headers, "body": {"城市": "北京"}}
    [seen] = server.seen
    assert (seen.method, seen.path) == ("POST", "/v1/items?a=1&q=x+y%26%E4%B8%AD&ids=1&ids=1180591620717411303424")
    assert (seen.body.decode(), seen.headers["content-type"], seen.headers["x-trace"]) == (
        '{"name": "李", "id": 1180591620717411303424}',
        "application/json",
        "t",
    )


@pytest.mark.parametrize(
    ("content_type", "body", "raw"),
    [
        ("text/csv", "a,b", b"a,b"),
        ("application/json", '{"a":1}', b'{"a":1}'),
        ("application/merge-patch+json", {"a": None}, b'{"a":null}'),
        (
            "application/x-www-form-urlencoded; charset=utf-8",
            {"grant_type": "client_credentials", "scope": "a b&c", "id": [1, True], "none": None},
            b"grant_type=client_credentials&scope=a+b%26c&id=1&id=true",
        ),
    ],
)
async def test_body_is_encoded_for_the_content_type_of_the_call(server, library, content_type, body, raw):
    arguments = {"url": server.url, "method": "POST", "headers": {"Content-Type": content_type}, "body": body}
    assert (await library.call("api_caller", arguments)).failure is None
    [seen] = server.seen
    assert (seen.headers["content-type"], seen.body) == (content_type, raw)


@pytest.mark.parametrize("status", [301, 404, 500])
async def test_every_status_is_returned(server, library, status):
    async def answer(request):
        return web.Response(text="message", status=status, headers={"location": "http://10.0.0.1/"})

    server.answer = answer
    result = await library.call("api_caller", {"url": server.url})
    assert (result.failure, result.data["status"], result.data["body"]) == (None, status, "message")


@pytest.mark.parametrize(
    ("arguments", "failure", "message"),
    [
        ({"url": "https://other.example/"}, "refused", "not among the hosts"),
        ({"url": "http://api.example:{p}/"}, "refused", "not among the hosts"),
        ({"url": "http://api.example.evil.example/"}, "refused", "not among the hosts"),
        ({"url": "http://public.example/"}, "refused", "leads to 127.0.0.1"),
        ({"url": "http://127.0.0.1:1/"}, "refused", "loopback"),
        ({"url": "http://api.example@127.0.0.1:{p}/"}, "refused", "user name"),
        ({"url": "{u}", "headers": {"Host": "x"}}, "invalid_arguments", "no header that can be set"),
        ({"url": "{u}", "headers": {"X": "a\r\nb"}}, "invalid_arguments", "one line"),
        ({"url": "{u}", "headers": {"X: y\r\nZ": "a"}}, "invalid_arguments", "no header that can be set"),
        ({"url": "{u}", "body": {}}, "invalid_arguments", "a GET has none"),
        ({"url": "{u}", "method": "TRACE"}, "invalid_arguments", "method"),
    ],
)
async def test_forbidden_call_is_refused(server, library, arguments, failure, message):
    url = arguments["url"].replace("{p}", str(server.port)).replace("{u}", server.url)
    result = await library.call("api_caller", {**arguments, "url": url})
    assert (result.failure, message in result.content) == (failure, True), result.content
    assert server.seen == []


async def test_methods_can_be_restricted(server):
    client = GuardedClient([server.host])
    library = ToolLibrary([FunctionTool(ApiCaller(client, [server.host], ["GET"]).api_caller)])
    result = await library.call("api_caller", {"url": server.url, "method": "DELETE"})
    assert (result.failure, result.content) == ("refused", "DELETE is not allowed here; the methods are GET.")
    assert (await library.call("api_caller", {"url": server.url})).data["body"] == {"ok": True}
    await client.aclose()


async def test_response_above_the_limit_is_a_failure(server, library):
    async def answer(request):
        return web.Response(body=b"x" * 2_000_001)

    server.answer = answer
    result = await library.call("api_caller", {"url": server.url})
    assert (result.failure, result.content) == (
        "failed",
        "The answer is larger than 2,000,000 bytes; ask for less at a time.",
    )


def test_hosts_are_required():
    with pytest.raises(BadInput, match="at least one host"):
        ApiCaller(GuardedClient(), [])
