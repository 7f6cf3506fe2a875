"""The command line `opposable`: its commands and its entry point."""

from importlib.metadata import version
from typing import Annotated

import typer

from opposable.cli import (
    agents,
    approvals,
    batch,
    chat,
    doctor,
    errors,
    evals,
    examples,
    executions,
    failures,
    keys,
    mcp,
    models,
    run,
    runs,
    semantics,
    serve,
    store,
    tools,
    worker,
)
from opposable.cli.help import HelpGroup
from opposable.cli.options import err, out

cli = typer.Typer(
    name="opposable",
    cls=HelpGroup,
    help="Tool use for any model.\n\nExample: opposable run 'What is the average of 12.5, 18, 7 and 30.5?'",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        out.print(f"opposable {version('opposable')}")
        raise typer.Exit


@cli.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit"),
    ] = False,
) -> None:
    pass


for command in (run.run, run.ask, chat.chat, serve.serve, worker.worker):
    cli.command()(command)
cli.command("mcp-serve")(mcp.mcp_serve)
cli.command()(doctor.doctor)
cli.add_typer(tools.cli, name="tools")
cli.add_typer(agents.cli, name="agents")
cli.add_typer(runs.cli, name="runs")
cli.add_typer(executions.cli, name="executions")
cli.add_typer(approvals.cli, name="approvals")
cli.add_typer(models.cli, name="models")
cli.add_typer(semantics.cli, name="semantics")
cli.add_typer(examples.cli, name="examples")
cli.add_typer(batch.cli, name="batch")
cli.add_typer(failures.cli, name="failures")
cli.add_typer(keys.cli, name="keys")
cli.add_typer(store.cli, name="store")
cli.add_typer(evals.cli, name="eval")


def main() -> None:
    """Run the command line; every error ends in one sentence and a non-zero exit code."""
    errors.run_and_exit(lambda: int(cli(standalone_mode=False) or 0), err)
