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
    "run": "run:run",
    "ask": "run:ask",
    "chat": "chat:chat",
    "serve": "serve:serve",
    "worker": "worker:worker",
    "mcp-serve": "mcp:mcp_serve",
    "doctor": "doctor:doctor",
    "tools": "tools:cli",
    "agents": "agents:cli",
    "runs": "runs:cli",
    "executions": "executions:cli",
    "approvals": "approvals:cli",
    "models": "models:cli",
    "semantics": "semantics:cli",
    "examples": "examples:cli",
    "batch": "batch:cli",
    "failures": "failures:cli",
    "keys": "keys:cli",
    "store": "store:cli",
    "eval": "evals:cli",
}
"""Each command and the function or group it is, as module and name, in the order of the help."""


class _LazyCommands(Mapping[str, Any]):
    """The commands by name: the module of a command is imported when the command is looked up."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            command = pkgutil.resolve_name(f"{__name__}.{_COMMANDS[name]}")
            parent = typer.Typer(cls=HelpGroup, rich_markup_mode=None)
            if isinstance(command, typer.Typer):
                parent.add_typer(command, name=name)
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
