"""The command `mcp-serve`, which serves the tools to MCP clients."""

import asyncio
import hmac
import os
from typing import Annotated

import typer

from opposable.app.stored_tools import get_agent_bindings
from opposable.app.tools import open_tools_and_database
from opposable.cli.options import DatabaseOption, RootOption, ToolOption, err, read_settings
from opposable.cli.rendering import style_text
from opposable.domain.errors import BadInput
from opposable.tools.library import ToolLibrary

API_KEY_VARIABLE = "OPPOSABLE_SERVE_KEY"


def mcp_serve(
    tool: ToolOption = None,
    root: RootOption = None,
    db: DatabaseOption = None,
    agent: Annotated[str, typer.Option("--agent", help="Serve only the tools of this stored agent")] = "",
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP instead of standard input")] = False,
    host: Annotated[str, typer.Option(help="With --http: address to listen on")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="With --http: port to listen on (0: any free port)")
    ] = 8001,
) -> None:
    """Serve the tools to MCP clients.

    The transport is standard input and output, or HTTP with --http. With --http, clients must send the key in OPPOSABLE_SERVE_KEY if it is set. Without it, only localhost is served.

    Example: opposable mcp-serve --tool calculator --tool time
    """
    if agent and tool:
        raise BadInput("--agent and --tool exclude each other: an agent already has its tools. Leave one out.")

    async def serve() -> None:
        settings = read_settings(root)
        bindings = await get_agent_bindings(settings, agent) if agent else ()
        names = [binding.tool_id for binding in bindings if binding.enabled] if agent else tool or ()
        async with open_tools_and_database(settings, db, names) as (available, _):
            library = available.with_bindings(bindings) if agent else available
            if http:
                await serve_over_http(library)
                return
            from opposable.web.mcp.server import serve_mcp_stdio  # lazy: needs the extra "mcp"

            await serve_mcp_stdio(library)

    async def serve_over_http(library: ToolLibrary) -> None:
        from opposable.web.mcp.http import serve_mcp_http  # lazy: needs the extra "serve"

        key = os.environ.get(API_KEY_VARIABLE, "").strip()

        async def check(candidate: str) -> bool:
            return hmac.compare_digest(candidate.encode(), key.encode())

        await serve_mcp_http(
            library,
            host,
            port,
            check_key=check if key else None,
            on_ready=lambda url: err.print(style_text(f"{len(library.names)} tools are served at {url}")),
        )

    asyncio.run(serve())
