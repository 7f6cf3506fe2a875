"""A tool library as an MCP server."""

import asyncio
import base64
import contextlib
import itertools
import os
import re
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from mcp import MCPError
from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.connection import Connection
from mcp.server.models import InitializationOptions
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.types import (
    INVALID_PARAMS,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as ServedTool
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from opposable.app.execution_log import RecordCall
from opposable.domain.call_context import CallContext
from opposable.domain.content import DictWithMedia, FilePart, ImagePart
from opposable.domain.json_text import parse_json
from opposable.domain.specs import HttpToolSpec
from opposable.domain.tools import ToolDefinition, ToolResult, new_call_id
from opposable.service.background import run_in_background
from opposable.tools.base import Tool
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary
from opposable.tools.mcp.mcp_tool import IDEMPOTENCY_META_KEY, McpTool
from opposable.tools.mcp.result_content import McpContent
from opposable.tools.result_text import value_to_text
from opposable.web.cancelled_calls import create_cancelled_result
from opposable.web.principal import OWNER, PRINCIPAL_SCOPE_KEY

PAGE_SIZE = 100
"""Tools on one page of the list; a client requests the next page with a cursor."""
TOOL_POLL_SECONDS = 0.5
"""Seconds between checks for changes of the library."""
SERVER_NAME = "opposable"


class _Server(Server[Any]):
    """The server of the SDK, which also announces tool changes to clients of protocols with sessions, if it has these."""

    has_sessions = True

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=self.has_sessions)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class LibraryServer:
    """An MCP server for a library.

    Enter `notify_of_changes` while the server runs.

    Args:
        library: The tools to serve.
        name: The name of the server.
        instructions: The instructions that clients give to their models.
        record_call: Called with the name, arguments and result of each call.
        has_sessions: Whether clients of earlier protocols have sessions, in which they are notified of changes.

    Attributes:
        server: The server of the SDK.
    """

    def __init__(
        self,
        library: ToolLibrary,
        *,
        name: str = SERVER_NAME,
        instructions: str = "",
        record_call: RecordCall | None = None,
        has_sessions: bool = True,
    ) -> None:
        self._library = library
        self._record_call = record_call
        self._bus = InMemorySubscriptionBus()
        self._clients: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._listed_definitions: tuple[ToolDefinition, ...] = ()
        self._listed_tools: list[ServedTool] = []
        self.server = _Server(
            name,
            version=version("opposable"),
            instructions=instructions or None,
            get_tool_input_schema=self._get_input_schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        self.server.has_sessions = has_sessions

    def notify_of_changes(self) -> AbstractAsyncContextManager[None]:
        """Notify clients of changed tools while the block runs."""
        return run_in_background(self._poll_tools(), "tool changes")

    async def _poll_tools(self) -> None:
        known = self._library.definitions
        while True:
            await asyncio.sleep(TOOL_POLL_SECONDS)
            current = self._library.definitions
            if current is known or current == known:
                continue
            known = current
            await self._bus.publish(ToolsListChanged())
            for client in list(self._clients):
                with contextlib.suppress(Exception):  # the client has disconnected
                    await client.send_tool_list_changed()

    async def _list_tools(
        self, context: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._clients.add(context.session._connection)  # noqa: SLF001 - sessions end with their request
        definitions = self._library.definitions
        if definitions is not self._listed_definitions:
            self._listed_tools = [to_mcp_tool(definition, self._library) for definition in definitions]
            self._listed_definitions = definitions
        start = _parse_cursor(params.cursor if params is not None else None, len(self._listed_tools))
        end = start + PAGE_SIZE
        next_cursor = str(end) if end < len(self._listed_tools) else None
        return ListToolsResult(tools=self._listed_tools[start:end], next_cursor=next_cursor)

    def _get_input_schema(self, name: str) -> dict[str, Any] | None:
        tool = self._library.find_tool(name)
        return None if tool is None else _get_parameters(tool)

    async def _call_tool(
        self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult:
        meta: Mapping[str, Any] = context.meta or {}
        principal = context.request.scope.get(PRINCIPAL_SCOPE_KEY, OWNER) if context.request is not None else OWNER
        idempotency_key = str(meta.get(IDEMPOTENCY_META_KEY, ""))
        call = CallContext(call_id=new_call_id(), owner=principal.key_id, idempotency_key=idempotency_key)
        name, arguments, started_at = params.name, params.arguments or {}, time.perf_counter()
        result: ToolResult | None = None
        try:
            async with _forward_progress(context) as report:
                result = await self._library.call(name, arguments, replace(call, report=report))
        finally:
            if self._record_call is not None:
                self._record_call(name, arguments, result or create_cancelled_result(call, name, started_at))
        return to_mcp_result(result, self._library.find_tool(name))


@contextlib.asynccontextmanager
async def _forward_progress(context: ServerRequestContext[Any, Any]) -> AsyncIterator[Callable[[str], None]]:
    """Send the reports of a tool as progress, in order and before its result."""
    reports: asyncio.Queue[str | None] = asyncio.Queue()

    async def send() -> None:
        count = 0
        while (text := await reports.get()) is not None:
            count += 1
            await context.session.report_progress(count, message=text)

    send_task = asyncio.create_task(send())
    try:
        yield reports.put_nowait
        reports.put_nowait(None)
        await asyncio.wait({send_task})
    finally:
        send_task.cancel()


def _parse_cursor(cursor: str | None, tool_count: int) -> int:
    if cursor is None:
        return 0
    if not re.fullmatch(r"[0-9]{1,9}", cursor) or int(cursor) > tool_count:
        raise MCPError(INVALID_PARAMS, f"The cursor {cursor!r} is not valid. Start again without a cursor.")
    return int(cursor)


def to_mcp_tool(definition: ToolDefinition, library: ToolLibrary) -> ServedTool:
    """Return a tool in the form of the protocol.

    Its hints come from what its spec declares, and from its own MCP server.
    """
    registered_tool = library.find_registered_tool(definition.name)
    assert registered_tool is not None
    tool = _unwrap_tool(registered_tool.effective_tool)
    spec = registered_tool.entry.spec
    hints = dict(tool.hints) if isinstance(tool, McpTool) else {}
    traits = registered_tool.traits
    hints |= {"read_only_hint": traits.read_only, "idempotent_hint": traits.idempotent}
    if traits.untrusted_output or isinstance(spec, HttpToolSpec):
        hints.setdefault("open_world_hint", True)
    title = tool.title if isinstance(tool, McpTool) else spec.display_name
    if not title and definition.name != tool.tool_id.replace(".", "_"):
        title = tool.tool_id  # the safe name of a tool in another script is not readable
    return ServedTool(
        name=definition.name,
        title=title or None,
        description=definition.description,
        input_schema={**_get_parameters(registered_tool.effective_tool), "type": "object"},
        output_schema=get_output_schema(tool),
        annotations=ToolAnnotations(**hints),
    )


def _get_parameters(tool: Tool) -> dict[str, Any]:
    """Return the JSON Schema of all arguments that a tool accepts, since clients refuse others: null, too."""
    function_tool = _unwrap_tool(tool)
    return function_tool.complete_parameters if isinstance(function_tool, FunctionTool) else tool.definition.parameters


def get_output_schema(tool: Tool) -> dict[str, Any] | None:
    """Return the JSON Schema of a tool's results if they are objects of a known form, else None."""
    tool = _unwrap_tool(tool)
    return tool.output_schema if isinstance(tool, FunctionTool | McpTool) else None


def _unwrap_tool(tool: Any) -> Any:
    """Return the tool that bindings wrap."""
    while hasattr(tool, "tool"):
        tool = tool.tool
    return tool


def to_mcp_result(result: ToolResult, tool: Tool | None = None) -> CallToolResult:
    """Return a result in the form of the protocol, in full: the client has a limit of its own, and reads on from there.

    An object also becomes structured content. Images and files follow the text.
    A result that is not an object despite an output schema of `tool` is an error: clients reject it otherwise.
    """
    text = value_to_text(result.data) if result.cut and result.failure is None else result.content
    content: list[ContentBlock] = [TextContent(text=text)]
    content += [_media_to_block(part) for part in result.media if part.data]
    if result.failure is not None:
        return CallToolResult(content=content, is_error=True)
    blocks = result.data.blocks if isinstance(result.data, McpContent | DictWithMedia) else ()
    if isinstance(result.data, McpContent):
        return CallToolResult.model_validate({"content": list(blocks)})
    function_tool = _unwrap_tool(tool)
    data = function_tool.to_output(result.data) if isinstance(function_tool, FunctionTool) else result.data
    if isinstance(data, dict):
        value = parse_json(value_to_text(dict(data)))  # without what only the text has
        return CallToolResult.model_validate({"content": blocks or content, "structured_content": value})
    return CallToolResult(content=content, is_error=tool is not None and get_output_schema(tool) is not None)


def _media_to_block(part: ImagePart | FilePart) -> ContentBlock:
    data = base64.b64encode(part.data).decode()
    if isinstance(part, ImagePart):
        return ImageContent(data=data, mime_type=part.media_type)
    uri = f"attachment:{quote(part.name or 'file')}"
    return EmbeddedResource(resource=BlobResourceContents(uri=uri, blob=data, mime_type=part.media_type))


async def serve_mcp_stdio(
    library: ToolLibrary, *, name: str = SERVER_NAME, instructions: str = "", record_call: RecordCall | None = None
) -> None:
    """Serve over stdin and stdout until the client disconnects.

    Other output of the process goes to stderr. `record_call` is called with the name, arguments and result of each
    call.
    """
    library_server = LibraryServer(library, name=name, instructions=instructions, record_call=record_call)
    lines: Any = _read_standard_input()  # iterated only
    async with stdio_server(lines) as (read_stream, write_stream), library_server.notify_of_changes():
        options = library_server.server.create_initialization_options()
        await library_server.server.run(read_stream, write_stream, options)


async def _read_standard_input() -> AsyncIterator[str]:
    """Yield the lines of standard input, which is the null device then. A cancellation ends this at once.

    The reader of the SDK waits for a next line before it ends.
    """
    loop, queue, is_taken = asyncio.get_running_loop(), asyncio.Queue[bytes](), threading.Semaphore()
    private, null = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)

    def read() -> None:
        with os.fdopen(private, "rb", closefd=False) as stream, contextlib.suppress(RuntimeError):  # the loop is closed
            for line in itertools.chain(stream, [b""]):
                is_taken.acquire()
                loop.call_soon_threadsafe(queue.put_nowait, line)

    threading.Thread(target=read, daemon=True).start()
    try:
        while line := await queue.get():
            yield line.decode("utf-8", "replace")
            is_taken.release()
    finally:
        os.dup2(private, 0)
