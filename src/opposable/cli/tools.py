"""The commands on tools."""

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from opposable import app
from opposable.app import stored_tools as library
from opposable.cli import stored_tools as tool_keeping
from opposable.cli.options import (
    DatabaseOption,
    JsonOption,
    RootOption,
    err,
    out,
    read_arguments,
    read_settings,
    read_text,
)
from opposable.cli.rendering import as_json, plain, result_as_json, styled, table

cli = typer.Typer(help="The tools there are: list, search, look at one, call one; add your own.", no_args_is_help=True)


@cli.command("list")
def tools_list(root: RootOption = None, db: DatabaseOption = None, json: JsonOption = False) -> None:
    """List the tools, a line each; with --db those over a database too.

    Example: opposable tools list --db examples/data/chinook.sqlite
    """

    async def work() -> None:
        async with app.tools(read_settings(root), db) as library:
            rows = [(tool.tool_id, tool.definition.name, tool.definition.description) for tool in library.tools]
        if json:
            print(as_json({"tools": [{"tool_id": r[0], "name": r[1], "description": r[2]} for r in rows]}))
            return
        out.print(table(("tool", "what it does"), [(r[0], r[2].partition(". ")[0]) for r in rows], most=1000))

    asyncio.run(work())


@cli.command("show")
def tools_show(
    name: Annotated[str, typer.Argument(help="The tool's name.")], db: DatabaseOption = None, json: JsonOption = False
) -> None:
    """Show what a model is told of a tool: its name, description and parameters.

    Example: opposable tools show calculator
    """

    async def work() -> None:
        async with app.tools(read_settings(), db) as library:
            definition = app.found(library, name).definition
        told = {"name": definition.name, "description": definition.description, "parameters": definition.parameters}
        print(as_json(told)) if json else out.print_json(as_json(told))

    asyncio.run(work())


@cli.command("call")
def tools_call(
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
        given = read_arguments(read_text(arguments))
        async with app.tools(read_settings(root), db) as library:
            tool = app.found(library, name)
            result = await library.call(tool.definition.name, given)
        if json:
            print(as_json(result_as_json(result)))
        elif result.failure is None:
            print(plain(result.content))
        else:
            err.print(styled((result.failure, "red"), f": {result.content}"), soft_wrap=True)
        if result.failure is not None:
            raise typer.Exit(1)

    asyncio.run(work())


@cli.command("search")
def tools_search(
    need: Annotated[str, typer.Argument(help="What is to be done, in words, English or Chinese.")],
    most: Annotated[int, typer.Option("--most", min=1, max=100, help="At most so many tools.")] = 10,
    db: DatabaseOption = None,
    json: JsonOption = False,
) -> None:
    """Find the tools that fit a need, best first.

    Example: opposable tools search "compute an average"
    """

    async def work() -> None:
        async with app.tools(read_settings(), db) as every:
            found = every.search(need, most)
        if json:
            rows = [
                {"name": f.name, "tool_id": f.tool_id, "description": f.description, "score": f.score} for f in found
            ]
            print(as_json({"tools": rows}))
        elif found:
            out.print(table(("tool", "what it does"), [(f.name, f.description.partition(". ")[0]) for f in found]))
        else:
            err.print(styled("No tool fits; describe the need in other words."))

    asyncio.run(work())


@cli.command("health")
def tools_health(
    name: Annotated[str, typer.Argument(help="The id of a tool; all kept tools without it.")] = "",
    json: JsonOption = False,
) -> None:
    """Say how the kept tools are: whether each can be used now, and how its calls of the last day went.

    The exit code is 1 when one cannot be used.

    Example: opposable tools health
    """
    rows = asyncio.run(library.health(read_settings(), name))
    if json:
        print(as_json({"tools": [asdict(row) for row in rows]}))
    else:
        told = [
            (r.tool_id, "ok" if r.ok else "off" if not r.enabled else "down", r.calls, r.failures, r.reason)
            for r in rows
        ]
        out.print(table(("tool", "state", "calls", "failed", "reason"), told, most=1000))
    if any(row.enabled and not row.ok for row in rows):
        raise typer.Exit(1)


tool_keeping.register(cli)
