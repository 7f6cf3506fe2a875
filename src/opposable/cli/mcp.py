"""The command `mcp-serve`, which serves the tools to MCP clients."""

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from opposable.app.default_store import open_existing_store
from opposable.app.execution_log import RecordCall, open_execution_log
from opposable.app.stored_tools import get_agent_bindings
from opposable.app.tools import open_tools_and_database
from opposable.cli.errors import run_async
from opposable.cli.function_files import review_changed_files
from opposable.cli.options import DatabaseOption, RootOption, ToolOption, err, read_settings
from opposable.cli.rendering import style_text
from opposable.domain.errors import BadInput
from opposable.tools.library import ToolLibrary

if TYPE_CHECKING:
    from opposable.store.store import Store

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

    The transport is standard input and output, or HTTP with --http. With --http, clients must send the key in OPPOSABLE_SERVE_KEY if it is set, or an API key of the store with the scope tools:write if it has any. Without either, only localhost is served. Calls are recorded if a store exists.

    Example: opposable mcp-serve --tool calculator --tool time
    """
    if agent and tool:
        raise BadInput("--agent and --tool exclude each other: an agent already has its tools. Leave one out.")
    if not http and None in (sys.stdin, sys.stdout):
        raise BadInput("Standard input or output is closed. An MCP client starts this command and speaks to it.")
    review_changed_files()

    async def serve() -> None:
        settings = read_settings(root)
        bindings = await get_agent_bindings(settings, agent) if agent else ()
        names = [binding.tool_id for binding in bindings if binding.enabled] if agent else tool or ()
        async with (
            open_tools_and_database(settings, db, names) as (available, _),
            open_existing_store(settings, uses_valkey=http) as store,
        ):
            library = available.with_bindings(bindings) if agent else available
            async with open_execution_log(store, library) as record_call:
                if http:
                    await serve_over_http(library, store, record_call)
                    return
                from opposable.web.mcp.server import serve_mcp_stdio  # lazy: needs the extra "mcp"

                if sys.stdin.isatty():
                    err.print(style_text("An MCP client starts this command and speaks to it. Ctrl-C stops it."))
                await serve_mcp_stdio(library, record_call=record_call)

    async def serve_over_http(library: ToolLibrary, store: "Store | None", record_call: RecordCall) -> None:
        from opposable.web.mcp.http import serve_mcp_http  # lazy: needs the extra "serve"
        from opposable.web.mcp.stored_keys import open_key_check  # lazy: needs the extra "serve"

        async with open_key_check(os.environ.get(API_KEY_VARIABLE, "").strip(), store) as check_key:
            await serve_mcp_http(
                library,
                host,
                port,
                check_key=check_key,
                record_call=record_call,
                on_ready=lambda url: err.print(style_text(f"{len(library.names)} tools are served at {url}")),
            )

    run_async(serve())
