"""Registers an MCP server's tools in a library and follows their changes."""

from opposable.domain.specs import McpServerSpec
from opposable.tools.library import ToolLibrary
from opposable.tools.mcp.mcp_tool import McpTool
from opposable.tools.mcp.remote_server import McpServer
from opposable.tools.mcp.tool_pinning import PinStore


async def register_server(library: ToolLibrary, spec: McpServerSpec, pins: PinStore | None = None) -> McpServer:
    """Connect to a server and register the tools that may be called, now and after each change.

    A server that cannot be reached is retried in the background; its tools are registered once it answers.

    Returns:
        The server. Its `registration` is the report. The caller must close it.
    """

    def update_library(server_id: str, tools: tuple[McpTool, ...]) -> None:
        if tools:
            library.replace(spec, tools)
        else:
            library.unregister(server_id)

    server = McpServer(spec, pins, on_tools_changed=update_library)
    await server.open()
    return server
