"""An MCP server's tools in a library, kept in step with what the server offers."""

from opposable.domain.specs import McpServerSpec
from opposable.tools.library import ToolLibrary
from opposable.tools.mcp.mcp_tool import McpTool
from opposable.tools.mcp.remote_server import McpServer
from opposable.tools.mcp.tool_pinning import PinStore


async def register_server(library: ToolLibrary, spec: McpServerSpec, pins: PinStore | None = None) -> McpServer:
    """Connect to a server and register its tools; from then on the library has those that may be called.

    What came of it is in `registration` of the server, which the caller closes. A server that cannot be reached is
    tried again, and its tools come when it is.
    """

    def step(server_id: str, tools: tuple[McpTool, ...]) -> None:
        if tools:
            library.replace(spec, tools)
        else:
            library.unregister(server_id)

    server = McpServer(spec, pins, on_tools_changed=step)
    await server.open()
    return server
