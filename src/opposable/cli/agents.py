"""The command `agents check`, which warns about stored agents."""

import asyncio
from typing import Annotated

import typer

from opposable.cli.help import HelpGroup
from opposable.cli.options import JsonOption, out, read_settings
from opposable.cli.rendering import style_text, to_json

cli = typer.Typer(cls=HelpGroup, help="Check the stored agents.", no_args_is_help=True)


@cli.callback()
def _group() -> None:
    """Keep `check` a subcommand: Typer would drop the name of an only command."""


@cli.command("check")
def check(
    agent_ids: Annotated[
        list[str] | None, typer.Argument(help="Ids of agents (default: all)", metavar="[AGENT]...", show_default=False)
    ] = None,
    json: JsonOption = False,
) -> None:
    """Warn about agents that can act on untrusted text, or lack a tool.

    The exit code is 1 if there is a warning.

    Example: opposable agents check
    """
    from opposable.app.agent_check import check_agents  # lazy: the store needs the extra "service"

    warnings = asyncio.run(check_agents(read_settings(), agent_ids or ()))
    if json:
        print(to_json({"agents": [{"agent_id": name, "warnings": found} for name, found in warnings.items()]}))
    elif not warnings:
        out.print(style_text("No agent is stored yet."))
    else:
        for name, found in warnings.items():
            out.print(style_text((name, "bold"), "  ", (("no warnings", "green") if not found else ("", ""))))
            for warning in found:
                out.print(style_text(("  warning  ", "yellow"), warning))
    if any(warnings.values()):
        raise typer.Exit(1)
