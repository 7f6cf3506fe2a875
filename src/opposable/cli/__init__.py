"""The command line `opposable`: its commands and its entry point."""

import pkgutil
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Annotated, Any

import typer

from opposable.cli import errors
from opposable.cli.help import HelpGroup
from opposable.cli.options import err, out

_COMMANDS = {
    "run": ("run:run", "Run one task with the built-in tools."),
    "ask": ("run:ask", "Answer a question about a database."),
    "chat": ("chat:chat", "Chat with a model in the terminal."),
    "serve": ("serve:serve", "Serve agents, tools and models over HTTP."),
    "worker": ("worker:worker", "Execute durable runs and batches from PostgreSQL."),
    "mcp-serve": ("mcp:mcp_serve", "Serve the tools to MCP clients."),
    "doctor": ("doctor:doctor", "Check the installation: model, keys, store, folders, extras."),
    "tools": ("tools:cli", "List, search, show and call tools; manage stored tools."),
    "agents": ("agents:cli", "List, show and check the stored agents; bind tools to them."),
    "runs": ("runs:cli", "List and show the stored runs of agents."),
    "executions": ("executions:cli", "List and show the stored executions of tools."),
    "approvals": ("approvals:cli", "List and decide the calls that wait for approval."),
    "models": ("models:cli", "List models, download the embedded one, test one."),
    "semantics": ("semantics:cli", "Check and draft semantic models."),
    "examples": ("examples:cli", "Manage the confirmed questions of a database."),
    "batch": ("batch:cli", "Run thousands of tasks with worker processes."),
    "failures": ("failures:cli", "Manage the failures that earlier runs stored."),
    "keys": ("keys:cli", "Manage the API keys of the service."),
    "store": ("store:cli", "Manage the store of tools, agents and records."),
    "eval": ("evals:cli", "Run evaluations."),
}
"""The module and name of each command's function or group, and its sentence, in the order of the help."""


class _LazyCommands(Mapping[str, Any]):
    """The commands by name: the module of a command is imported when the command is looked up."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            target, sentence = _COMMANDS[name]
            command = pkgutil.resolve_name(f"{__name__}.{target}")
            parent = typer.Typer(cls=HelpGroup, rich_markup_mode=None)
            if isinstance(command, typer.Typer):
                parent.add_typer(command, name=name, help=sentence)
            else:
                parent.command(name)(command)
            self._loaded |= typer.main.get_group(parent).commands
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _RootGroup(HelpGroup):
    """The program: importing all its commands would take longer than most of them run."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _LazyCommands()

    def list_help_rows(self, ctx: Any) -> list[tuple[str, str]]:
        """Return each command and its sentence, without importing them."""
        return [(name, sentence) for name, (_, sentence) in _COMMANDS.items()]


cli = typer.Typer(
    name="opposable",
    cls=_RootGroup,
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


def main() -> None:
    """Run the command line; every error ends in one sentence and a non-zero exit code."""
    errors.run_and_exit(lambda: int(cli(standalone_mode=False) or 0), err)
