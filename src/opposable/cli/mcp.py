"""The command that offers the tools to MCP clients."""

import asyncio
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
    agent: Annotated[str, typer.Option("--agent", help="Offer the tools bound to this kept agent, no others.")] = "",
    http: Annotated[bool, typer.Option("--http", help="Serve over streamable HTTP instead of standard input.")] = False,
    host: Annotated[str, typer.Option(help="With --http: the address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --http: the port; 0 takes a free one.")] = 8001,
) -> None:
    """Offer the tools to MCP clients: over standard input and output, or with --http over streamable HTTP.

    Clients of --http must bear the key in OPPOSABLE_SERVE_KEY where it is set; without it only this machine is served.

    Example: opposable mcp-serve --tool calculator --tool time
    """
    if agent and tool:
        raise BadInput("Give --agent or --tool, not both: an agent's bindings say which tools it has.")

    async def work() -> None:
        settings = read_settings(root)
        bindings = await get_agent_bindings(settings, agent) if agent else ()
        names = [binding.tool_id for binding in bindings if binding.enabled] if agent else tool or ()
        async with open_tools_and_database(settings, db, names) as (every, _):
            library = every.with_bindings(bindings) if agent else every
            if http:
                await _over_http(library)
                return
            from opposable.web.mcp.server import serve_mcp_stdio

            await serve_mcp_stdio(library)

    async def _over_http(library: ToolLibrary) -> None:
        from opposable.web.mcp.http import serve_mcp_http

        key = os.environ.get(API_KEY_VARIABLE, "").strip()

        async def check(given: str) -> bool:
            import hmac

            return hmac.compare_digest(given.encode(), key.encode())

        await serve_mcp_http(
            library,
            host,
            port,
            check_key=check if key else None,
            on_ready=lambda url: err.print(style_text(f"{len(library.names)} tools are served at {url}")),
        )

    asyncio.run(work())
