"""The commands for tools: list, show, call, search, health."""

from dataclasses import asdict
from typing import Annotated

import typer

from opposable.app.stored_tools import check_tool_health
from opposable.app.tools import open_tools, require_tool
from opposable.cli import stored_tools
from opposable.cli.errors import run_async
from opposable.cli.function_files import review_changed_files
from opposable.cli.help import HelpGroup
from opposable.cli.options import (
    DatabaseOption,
    JsonOption,
    RootOption,
    err,
    out,
    parse_json_arguments,
    read_settings,
    read_text,
    redirect_tool_output,
)
from opposable.cli.rendering import render_table, style_text, to_json, write_text
from opposable.domain.json_forms import result_to_json
from opposable.tools.result_text import value_to_text

cli = typer.Typer(cls=HelpGroup, no_args_is_help=True)


@cli.command("list")
def list_tools(root: RootOption = None, db: DatabaseOption = None, json: JsonOption = False) -> None:
    """List the tools, one per line; with --db, also those over the database.

    A file or pipe gets lines of the id, a tab and the description.

    Example: opposable tools list --db examples/data/chinook.sqlite
    """
    review_changed_files()

    async def print_tools() -> None:
        async with open_tools(read_settings(root), db) as library:
            rows = [(tool.tool_id, tool.definition.name, tool.definition.description) for tool in library.tools]
        if json:
            print(to_json({"tools": [{"tool_id": row[0], "name": row[1], "description": row[2]} for row in rows]}))
            return
        cells = [(tool_id, " ".join(description.partition(". ")[0].split())) for tool_id, _, description in rows]
        if out.is_terminal:
            out.print(render_table(("tool", "description"), cells, limit=1000))
        else:
            write_text(out, "".join(f"{tool_id}\t{description}\n" for tool_id, description in cells))

    run_async(print_tools())


@cli.command("show")
def show_tool(
    name: Annotated[str, typer.Argument(help="Tool name")], db: DatabaseOption = None, json: JsonOption = False
) -> None:
    """Show the definition of a tool that models get: name, description, parameters.

    Example: opposable tools show calculator
    """
    review_changed_files()

    async def print_definition() -> None:
        async with open_tools(read_settings(), db, name) as library:
            definition = require_tool(library, name).definition
        fields = {"name": definition.name, "description": definition.description, "parameters": definition.parameters}
        print(to_json(fields)) if json else out.print_json(to_json(fields))

    run_async(print_definition())


@cli.command("call")
def call_tool(
    name: Annotated[str, typer.Argument(help="Tool name")],
    arguments: Annotated[str, typer.Argument(help="Arguments as a JSON object (- reads standard input)")] = "{}",
    root: RootOption = None,
    db: DatabaseOption = None,
    json: JsonOption = False,
) -> None:
    """Call a tool. The exit code is 1 if the tool fails.

    Example: opposable tools call calculator '{"expression": "17 * 23"}'
    """
    review_changed_files()

    async def call() -> None:
        parsed_arguments = parse_json_arguments(read_text(arguments))
        with redirect_tool_output():
            async with open_tools(read_settings(root), db, name) as library:
                tool = require_tool(library, name)
                result = await library.call(tool.definition.name, parsed_arguments)
        if json:
            print(to_json(result_to_json(result, include_data=True)))
        elif result.failure is None:
            write_text(out, f"{value_to_text(result.data)}\n")  # `content` is cut to what a model gets
        else:
            err.print(style_text((result.failure, "red"), f": {result.content}"))
        if result.failure is not None:
            raise typer.Exit(1)

    run_async(call())


@cli.command("search")
def search_tools(
    need: Annotated[str, typer.Argument(help="What the tool should do, in any language")],
    limit: Annotated[int, typer.Option("--number", "-n", min=1, max=100, help="Maximum number of tools")] = 10,
    db: DatabaseOption = None,
    json: JsonOption = False,
) -> None:
    """Search for tools that fit a need, best first.

    With the extra `search` it finds tools by meaning and across languages, without it by words.

    Example: opposable tools search "compute an average"
    """
    review_changed_files()

    async def search() -> None:
        async with open_tools(read_settings(), db) as available:
            matches = await available.search_by_meaning(need, limit)
            names = available.names
        if json:
            forms = [
                {"name": match.name, "tool_id": match.tool_id, "description": match.description, "score": match.score}
                for match in matches
            ]
            print(to_json({"tools": forms}))
        elif matches:
            rows = [
                (".".join(filter(None, (match.tool_id, match.action))), match.description.partition(". ")[0])
                for match in matches
            ]
            out.print(render_table(("tool", "description"), rows))
        else:
            err.print(style_text(f"No tool matches. Describe the need in other words. All tools: {', '.join(names)}"))

    run_async(search())


@cli.command("health")
def check_tools(
    name: Annotated[str, typer.Argument(help="Tool id (default: all stored tools)")] = "",
    json: JsonOption = False,
) -> None:
    """Check the stored tools, and count their calls of the last 24 hours.

    The exit code is 1 if an enabled tool cannot be used.

    Example: opposable tools health
    """
    rows = run_async(check_tool_health(read_settings(), name))
    if json:
        print(to_json({"tools": [asdict(row) for row in rows]}))
    else:
        cells = [
            (row.tool_id, "ok" if row.ok else "off" if not row.enabled else "down", row.calls, row.failures, row.reason)
            for row in rows
        ]
        out.print(render_table(("tool", "state", "calls", "failed", "reason"), cells, limit=1000))
    if any(row.enabled and not row.ok for row in rows):
        raise typer.Exit(1)


cli.registered_commands += stored_tools.cli.registered_commands
