"""A library served over MCP, to real clients over real pipes and sockets."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import aiohttp
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import AudioContent, CallToolResult, ResourceLink, TextContent
from pydantic import BaseModel, Field
from tests.waiting import create_endless_tool
from tests.web.mcp.serving import add, create_library, 问候
from tests.web.serving import serve_app

from opposable.domain.call_context import CallContext
from opposable.domain.content import DictWithMedia, FilePart, ImagePart
from opposable.domain.errors import BadInput
from opposable.domain.specs import AgentToolBinding, FunctionToolSpec, McpServerSpec
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary
from opposable.tools.mcp.registration import register_server
from opposable.tools.mcp.remote_server import McpServer
from opposable.tools.mcp.result_content import McpContent, result_to_value
from opposable.tools.traits import ToolTraits
from opposable.web.mcp.http import create_mcp_app, serve_mcp_http
from opposable.web.mcp.server import LibraryServer, to_mcp_tool
from opposable.web.principal import OWNER, Principal

pytestmark = pytest.mark.anyio
PROGRAM = str(Path(__file__).with_name("serving.py"))


@contextlib.asynccontextmanager
async def serve_mcp(tools: ToolLibrary, **options) -> AsyncIterator[str]:
    """The URL of a library served over HTTP on loopback."""
    async with serve_app(create_mcp_app(tools, **options)) as url:
        yield f"{url}/mcp"


@contextlib.asynccontextmanager
async def connect_client(transport: str, served: ToolLibrary) -> AsyncIterator[Client]:
    """The SDK's client, over either transport or of either time."""
    async with contextlib.AsyncExitStack() as stack:
        if transport == "stdio":
            to = StdioServerParameters(command=sys.executable, args=[PROGRAM])
        else:
            to = await stack.enter_async_context(serve_mcp(served))
        yield await stack.enter_async_context(Client(to, mode="legacy" if transport == "http-legacy" else "auto"))


@pytest.mark.parametrize("way", ["stdio", "http", "http-legacy"])
async def test_tools_are_listed_and_called(way):
    async with connect_client(way, create_library()) as client:
        tools_by_name = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools_by_name["add"].input_schema["required"] == ["a"]
        assert (tools_by_name["add"].description, tools_by_name["tool_d2e119aa"].title) == ("Add two numbers.", "问候")

        done = await client.call_tool("add", {"a": 2, "b": 3})
        assert (done.is_error, done.structured_content, done.content[0].text) == (False, {"sum": 5}, '{"sum":5}')
        hello = await client.call_tool("tool_d2e119aa", {"名字": "世界"})
        assert hello.content[0].text == "你好，世界！"
        image = await client.call_tool("test_image_content", {})
        assert (image.content[0].type, image.content[0].mime_type) == ("image", "image/png")


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("test_error_handling", {}, "test_error_handling failed: ValueError: This tool intentionally returns an error"),
        ("add", {"a": "x"}, "The arguments of add do not fit:\n- a: must be a valid integer"),
        ("no_such", {}, "There is no tool named 'no_such'. The tools are: "),
    ],
)
async def test_a_failure_is_returned_as_an_error_with_its_message(name, arguments, said):
    async with connect_client("http", create_library()) as client:
        done = await client.call_tool(name, arguments)
        assert (done.is_error, done.content[0].text.startswith(said)) == (True, True)


@pytest.mark.parametrize("way", ["stdio", "http", "http-legacy"])
async def test_reports_of_a_tool_are_sent_as_progress_in_order(way):
    steps = []

    async def note(progress, total, message):
        steps.append((progress, message))

    async with connect_client(way, create_library()) as client:
        await client.call_tool("test_tool_with_progress", {}, progress_callback=note)
    assert steps == [(1, "a third"), (2, "two thirds"), (3, "all")]


@pytest.mark.parametrize("way", ["http", "http-legacy"])
async def test_a_cancelled_call_stops_the_tool(way):
    forever, started, stopped = create_endless_tool()
    async with connect_client(way, ToolLibrary([forever])) as client:
        calling = asyncio.create_task(client.call_tool("forever", {}))
        await asyncio.wait_for(started.wait(), 10)
        calling.cancel()
        await asyncio.wait_for(stopped.wait(), 10)


async def test_many_tools_are_listed_page_by_page():
    served = ToolLibrary([FunctionTool(add, tool_id=f"add_{n}") for n in range(250)])
    async with connect_client("http", served) as client:
        names, cursor, pages = [], None, 0
        while pages == 0 or cursor:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor, pages = page.next_cursor, pages + 1
        assert (names, pages) == ([f"add_{n}" for n in range(250)], 3)
        with pytest.raises(MCPError, match="The cursor 'nowhere' is not valid"):
            await client.list_tools(cursor="nowhere")
        with pytest.raises(MCPError, match="The cursor '999"):
            await client.list_tools(cursor="9" * 5000)


@pytest.mark.parametrize("way", ["http", "http-legacy"])
async def test_clients_are_notified_when_the_tools_change(way):
    served = ToolLibrary([add])
    heard = asyncio.Event()

    async def hear(message):
        if type(message).__name__ == "ToolListChangedNotification":
            heard.set()

    async with (
        serve_mcp(served) as url,
        Client(url, mode="legacy" if way == "http-legacy" else "auto", message_handler=hear) as client,
    ):
        assert len((await client.list_tools()).tools) == 1
        async with contextlib.AsyncExitStack() as stack:
            if way == "http":
                await stack.enter_async_context(client.listen(tools_list_changed=True))
            served.register(问候)
            await asyncio.wait_for(heard.wait(), 10)
        assert len((await client.list_tools(cache_mode="refresh")).tools) == 2


async def test_only_the_bound_tools_of_an_agent_are_served():
    served = ToolLibrary([add, 问候])
    view = served.with_bindings([AgentToolBinding(tool_id="add")])
    async with connect_client("http", view) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["add"]
        assert (await client.call_tool("tool_d2e119aa", {"名字": "x"})).is_error


async def test_hints_come_from_the_owners_spec():
    def say(text: str) -> str:
        """Say it."""
        return text

    def notify(text: str) -> str:
        """Send it."""
        return text

    served = ToolLibrary()
    spec = FunctionToolSpec(tool_id="add", display_name="Addition", module_path="x", read_only=True)
    served.register(spec, [FunctionTool(add)])
    served.register(FunctionTool(say, idempotent=True))
    served.register(FunctionTool(notify))
    async with connect_client("http", served) as client:
        tools = (await client.list_tools()).tools
        hints = {tool.name: tool.annotations.model_dump(exclude_none=True) for tool in tools}
        assert tools[0].title == "Addition"
        assert hints == {
            "add": {"read_only_hint": True, "idempotent_hint": True},
            "say": {"read_only_hint": False, "idempotent_hint": True},
            "notify": {"read_only_hint": False, "idempotent_hint": False},
        }


@dataclass
class Order:
    number: int
    note: str = ""


async def test_images_and_files_follow_the_text():
    image = ImagePart("", b"png", "image/png")

    def draw() -> ImagePart:
        """Draw."""
        return image

    def scan() -> list:
        """Scan."""
        return ["two pages", image, FilePart("", b"pdf", "application/pdf", "the scan.pdf")]

    def take_screenshot() -> dict:
        """Take a screenshot."""
        page = DictWithMedia(url="http://example.org")
        page.media = (image,)
        return page

    async with connect_client("http", ToolLibrary([draw, scan, take_screenshot])) as client:
        assert [tool.output_schema for tool in (await client.list_tools()).tools] == [None, None, None]
        _, drawn = (await client.call_tool("draw", {})).content
        assert (drawn.type, drawn.data, drawn.mime_type) == ("image", "cG5n", "image/png")
        text, scanned, file = (await client.call_tool("scan", {})).content
        assert (text.text.splitlines()[0], scanned.type) == ("two pages", "image")
        assert (file.resource.uri, file.resource.blob) == ("attachment:the%20scan.pdf", "cGRm")
        shot = await client.call_tool("take_screenshot", {})
        assert ([block.type for block in shot.content], shot.structured_content) == (
            ["text", "image"],
            {"url": "http://example.org"},
        )


async def test_the_result_of_another_server_is_passed_on_with_all_its_blocks():
    sent = CallToolResult(
        content=[
            TextContent(text='{"count": 2}'),
            AudioContent(data="UklGRg==", mime_type="audio/wav"),
            ResourceLink(name="report", uri="file:///r.pdf"),
        ],
        structured_content={"count": 2},
    )

    def count() -> dict:
        """Count."""
        return result_to_value(sent, set())

    async with connect_client("http", ToolLibrary([count])) as client:
        received = await client.call_tool("count", {})
    assert (received.content, received.structured_content) == (sent.content, sent.structured_content)


async def test_results_with_known_fields_have_an_output_schema():
    def find_order(number: int) -> Order:
        """Find an order."""
        return Order(number, "x" * 30_000)

    def count(text: str) -> dict[str, int]:
        """Count."""
        return {"n": len(text)}

    def misannotated() -> Order:
        """Return no order."""
        return "there is none"

    async with serve_mcp(ToolLibrary([find_order, count, misannotated])) as url:
        library = ToolLibrary()
        server = await register_server(library, McpServerSpec(tool_id="far", url=url))
        try:
            async with Client(url) as client:
                tools = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
                order = await client.call_tool("find_order", {"number": 7})
                no_order = await client.call_tool("misannotated", {})
            served_again = to_mcp_tool(library.find_tool("far.find_order").definition, library)
        finally:
            await server.aclose()
    assert sorted(tools["find_order"]["properties"]) == ["note", "number"]
    assert tools["count"] is None
    assert order.structured_content == {"number": 7, "note": "x" * 30_000}
    assert order.content[0].text == '{"number":7,"note":"' + "x" * 30_000 + '"}'
    assert served_again.output_schema == tools["find_order"]
    assert (no_order.is_error, no_order.content[0].text) == (True, "there is none")


class Flight(BaseModel):
    origin: str = Field(alias="from")
    distance: float = Field(serialization_alias="kilometersFlown")


class Position(NamedTuple):
    x: int
    y: float


@dataclass
class Leg:
    flight: Flight
    start: Position


async def test_structured_content_fits_the_output_schema():
    """The client of the SDK raises if it does not."""
    flights = {"short": Flight(**{"from": "A", "distance": 1.5}), "endless": Flight(**{"from": "A", "distance": "inf"})}

    def fly(name: str) -> Flight:
        """Fly."""
        return flights[name]

    def plan(name: str) -> Leg:
        """Plan."""
        return Leg(flights[name], Position(1, float("nan")))

    async with connect_client("http", ToolLibrary([fly, plan])) as client:
        results = [await client.call_tool(tool, {"name": name}) for tool in ("fly", "plan") for name in flights]
    short, endless = {"from": "A", "kilometersFlown": 1.5}, {"from": "A", "kilometersFlown": "Infinity"}
    assert [result.structured_content for result in results] == [
        short,
        endless,
        {"flight": short, "start": [1, "NaN"]},
        {"flight": endless, "start": [1, "NaN"]},
    ]
    assert [result.content[0].text for result in results[:2]] == [
        '{"from":"A","kilometersFlown":1.5}',
        '{"from":"A","kilometersFlown":"Infinity"}',
    ]


async def test_long_results_are_sent_in_full_and_truncated_by_the_agent():
    text, table = "0123456789" * 20_000, {"rows": list(range(9000))}

    def report() -> str:
        """Report."""
        return text

    def list_rows() -> dict:
        """List the rows."""
        return table

    async with serve_mcp(ToolLibrary([report, list_rows])) as url:
        library = ToolLibrary()
        server = await register_server(library, McpServerSpec(tool_id="far", url=url))
        try:
            rows = await library.call("far.list_rows", {})
            result = await library.call("far.report", {}, CallContext(run_id="r"))
            page = await library.call(
                "read_result", {"handle": result.handle, "offset": 190_000}, CallContext(run_id="r")
            )
        finally:
            await server.aclose()
    assert (rows.data, result.data, result.cut > 0) == (table, text, True)
    assert page.content.endswith("]\n" + "0123456789" * 1000)


async def test_null_is_accepted_for_optional_parameters():
    def set_due(task: str, due: str | None = None) -> str:
        """Set or clear a date."""
        return f"{task} {due}"

    library = ToolLibrary([set_due])
    async with connect_client("http", library) as client:
        schema = (await client.list_tools()).tools[0].input_schema
        cleared = await client.call_tool("set_due", {"task": "t", "due": None})
    assert schema["properties"]["due"] == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert library.definitions[0].parameters["properties"]["due"] == {"type": "string"}
    assert cleared.content[0].text == "t None"


async def test_declarations_pass_from_server_to_client():
    def say(text: str) -> dict[str, object]:
        """Say it."""
        return {"ok": False}

    async with serve_mcp(ToolLibrary([FunctionTool(say, read_only=True), FunctionTool(add, idempotent=True)])) as url:
        library = ToolLibrary()
        spec = McpServerSpec(tool_id="far", url=url, failure_when={"/ok": False})
        server = await register_server(library, spec)
        try:
            assert library.get_traits("far.say") == ToolTraits(True, True, True)
            assert library.get_traits("far.add") == ToolTraits(False, True, True)
            assert (await library.call("far.say", {"text": "x"})).failure == "failed"
            assert (await library.call("far.add", {"a": 1, "b": 2})).failure is None
        finally:
            await server.aclose()


async def test_our_client_and_our_server_understand_one_another():
    """A server's tools offered by our server: images, keys and changes pass through."""
    keys = []

    def once(context: CallContext) -> str:
        """Notes its key."""
        keys.append(context.idempotency_key)
        return "noted"

    inner = ToolLibrary([*create_library().tools, once])
    async with serve_mcp(inner) as url:
        outer = ToolLibrary()
        server = await register_server(outer, McpServerSpec(tool_id="far", url=url))
        try:
            assert server.registration.rejected == {}
            image = await outer.call("far.test_image_content", {})
            assert isinstance(image.data, McpContent)
            assert image.data.blocks[0]["mimeType"] == "image/png"
            await outer.call("far.once", {}, CallContext(idempotency_key="k-1"))
            assert keys == ["k-1"]
            inner.register(FunctionTool(add, tool_id="later"))
            async with asyncio.timeout(10):
                while outer.find_tool("far_later") is None:  # noqa: ASYNC110 - the change comes over the wire
                    await asyncio.sleep(0.02)
            assert (await outer.call("far_later", {"a": 1})).data == {"sum": 2}
            async with connect_client("http", outer) as client:
                far = await client.call_tool("far_test_image_content", {})
                assert far.content[0].type == "image"
        finally:
            await server.aclose()


class TestAuthentication:
    async def test_requests_need_a_key_if_keys_are_checked(self, monkeypatch):
        async def check(key: str) -> Principal | None:
            return OWNER if key == "right-key" else None

        monkeypatch.setenv("MCP_TEST_KEY", "right-key")
        headers = {"Authorization": "Bearer env:MCP_TEST_KEY"}
        async with serve_mcp(create_library(), check_key=check) as url:
            async with McpServer(McpServerSpec(tool_id="ours", url=url, headers=headers)) as server:
                assert server.registration.has_tools
            monkeypatch.setenv("MCP_TEST_KEY", "wrong-key")
            server = McpServer(McpServerSpec(tool_id="ours", url=url, headers=headers))
            registration = await server.open()
            await server.aclose()
        assert registration.rejected == {
            "ours": "it requires other credentials (401); see `headers`; it is tried again"
        }

    @pytest.mark.parametrize(
        ("keys", "headers", "status"),
        [
            (False, {}, 200),
            (False, {"Host": "evil.example"}, 421),
            (False, {"Origin": "http://evil.example"}, 403),
            (False, {"Origin": "https://console.example"}, 200),
            (True, {}, 401),
            (True, {"Authorization": "Basic right-key"}, 401),
            (True, {"Authorization": "Bearer right-key"}, 200),
            (True, {"Authorization": "Bearer right-key", "Host": "tools.example"}, 200),
            (True, {"Authorization": "Bearer right-key", "Origin": "http://evil.example"}, 403),
            (True, {"Authorization": "Bearer right-key", "Origin": "https://console.example"}, 200),
        ],
    )
    async def test_requests_are_accepted_by_key_host_and_origin(self, keys, headers, status):
        async def check(key: str) -> Principal | None:
            return OWNER if key == "right-key" else None

        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        sent = {"Accept": "application/json, text/event-stream", **headers}
        origins = ["https://console.example"]
        async with (
            serve_mcp(create_library(), check_key=check if keys else None, origins=origins) as url,
            aiohttp.ClientSession() as session,
            session.post(url, json=body, headers=sent) as response,
        ):
            assert (response.status, "www-authenticate" in response.headers) == (status, status == 401)

    @pytest.mark.parametrize("mode", ["auto", "legacy"])
    async def test_tools_get_the_owner_of_the_key(self, mode):
        def get_owner(context: CallContext) -> str:
            return context.owner

        async def check(key: str) -> Principal | None:
            return Principal(key_id=f"id of {key}")

        owners = []
        async with serve_mcp(ToolLibrary([get_owner]), check_key=check) as url:
            for key in ("one", "two"):
                headers = {"authorization": f"Bearer {key}"}
                async with (
                    httpx2.AsyncClient(headers=headers, trust_env=False, timeout=30) as http_client,
                    Client(streamable_http_client(url, http_client=http_client), mode=mode) as client,
                ):
                    owners.append((await client.call_tool("get_owner", {})).content[0].text)
        assert owners == ["id of one", "id of two"]

    async def test_without_keys_only_localhost_is_served(self):
        with pytest.raises(BadInput, match="needs keys, because other hosts can connect"):
            await serve_mcp_http(create_library(), "0.0.0.0", 0)


async def test_a_library_can_be_run_on_any_transport_of_the_sdk():
    made = LibraryServer(create_library(), name="odd tools", instructions="Use them.")
    async with Client(made.server) as client:
        assert (client.server_info.name, client.instructions) == ("odd tools", "Use them.")
        assert (await client.call_tool("add", {"a": 1})).structured_content == {"sum": 2}
