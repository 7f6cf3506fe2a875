"""The commands on tools."""

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from opposable.app import stored_tools as library
from opposable.app.tools import open_tools, require_tool
from opposable.cli import stored_tools as tool_keeping
from opposable.cli.options import (
    DatabaseOption,
    JsonOption,
    RootOption,
    err,
    out,
    parse_json_arguments,
    read_settings,
    read_text,
)
from opposable.cli.rendering import escape_control_characters, render_table, result_to_json, style_text, to_json

cli = typer.Typer(help="The tools there are: list, search, look at one, call one; add your own.", no_args_is_help=True)


@cli.command("list")
def list_tools(root: RootOption = None, db: DatabaseOption = None, json: JsonOption = False) -> None:
    """List the tools, a line each; with --db those over a database too.

    Example: opposable tools list --db examples/data/chinook.sqlite
    """

    async def work() -> None:
        async with open_tools(read_settings(root), db) as library:
            rows = [(tool.tool_id, tool.definition.name, tool.definition.description) for tool in library.tools]
        if json:
            print(to_json({"tools": [{"tool_id": r[0], "name": r[1], "description": r[2]} for r in rows]}))
            return
        out.print(render_table(("tool", "what it does"), [(r[0], r[2].partition(". ")[0]) for r in rows], limit=1000))

    asyncio.run(work())


@cli.command("show")
def show_tool(
    name: Annotated[str, typer.Argument(help="The tool's name.")], db: DatabaseOption = None, json: JsonOption = False
) -> None:
    """Show what a model is told of a tool: its name, description and parameters.

    Example: opposable tools show calculator
    """

    async def work() -> None:
        async with open_tools(read_settings(), db) as library:
            definition = require_tool(library, name).definition
        told = {"name": definition.name, "description": definition.description, "parameters": definition.parameters}
        print(to_json(told)) if json else out.print_json(to_json(told))

    asyncio.run(work())


@cli.command("call")
def call_tool(
    name: Annotated[str, typer.Argument(help="The tool's name.")],
    arguments: Annotated[
        str, typer.Argument(help="The arguments as a JSON object; - reads it from standard input.")
    ] = "{}",
    root: RootOption = None,
    db: DatabaseOption = None,
    json: JsonOption = False,
) -> None:
    """Call a tool yourself. The exit code is 1 when the tool fails.

    Example: opposable tools call calculator '{"expression": "17 * 23"}'
    """

    async def work() -> None:
        given = parse_json_arguments(read_text(arguments))
        async with open_tools(read_settings(root), db) as library:
            tool = require_tool(library, name)
            result = await library.call(tool.definition.name, given)
        if json:
            print(to_json(result_to_json(result)))
        elif result.failure is None:
            print(escape_control_characters(result.content))
        else:
            err.print(style_text((result.failure, "red"), f": {result.content}"), soft_wrap=True)
        if result.failure is not None:
            raise typer.Exit(1)

    asyncio.run(work())


@cli.command("search")
def search_tools(
    need: Annotated[str, typer.Argument(help="What is to be done, in words, English or Chinese.")],
    limit: Annotated[int, typer.Option("--most", min=1, max=100, help="At most so many tools.")] = 10,
    db: DatabaseOption = None,
    json: JsonOption = False,
) -> None:
    """Find the tools that fit a need, best first.

    Example: opposable tools search "compute an average"
    """

    async def work() -> None:
        async with open_tools(read_settings(), db) as every:
            found = every.search(need, limit)
        if json:
            rows = [
                {"name": f.name, "tool_id": f.tool_id, "description": f.description, "score": f.score} for f in found
            ]
            print(to_json({"tools": rows}))
        elif found:
            out.print(
                render_table(("tool", "what it does"), [(f.name, f.description.partition(". ")[0]) for f in found])
            )
        else:
            err.print(style_text("No tool fits; describe the need in other words."))

    asyncio.run(work())


@cli.command("health")
def check_tools(
    name: Annotated[str, typer.Argument(help="The id of a tool; all kept tools without it.")] = "",
    json: JsonOption = False,
) -> None:
    """Say how the kept tools are: whether each can be used now, and how its calls of the last day went.

    The exit code is 1 when one cannot be used.

    Example: opposable tools health
    """
    rows = asyncio.run(library.check_tool_health(read_settings(), name))
    if json:
        print(to_json({"tools": [asdict(row) for row in rows]}))
    else:
        told = [
            (r.tool_id, "ok" if r.ok else "off" if not r.enabled else "down", r.calls, r.failures, r.reason)
            for r in rows
        ]
        out.print(render_table(("tool", "state", "calls", "failed", "reason"), told, limit=1000))
    if any(row.enabled and not row.ok for row in rows):
        raise typer.Exit(1)


tool_keeping.register_commands(cli)
