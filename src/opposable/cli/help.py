"""The help of command groups and their commands."""

from typing import Any

from typer.core import TyperArgument, TyperGroup, TyperOption

MAX_SENTENCE_CHARACTERS = 500

NO_WRAP_MARK = "\b\n"
"""Begins a paragraph whose lines are not wrapped."""

_VALUE_LABELS = {"str": "TEXT", "int": "NUMBER", "Path": "PATH"}


class UppercaseArgument(TyperArgument):
    """An argument that help shows as in other programs: `NAME`, or `[NAME]` if it is optional."""

    @property
    def display_name_raw(self) -> str:
        """The name without brackets."""
        return self.metavar or self.name.upper()

    def get_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the argument as the line "Usage" shows it."""
        name = self.display_name_raw if self.required else f"[{self.display_name_raw}]"
        return [name if self.nargs == 1 else f"{name}..."]

    def display_type_rich(self, ctx: Any) -> None:
        """Show no type: the name and the help say what the value is."""


class HelpGroup(TyperGroup):
    """A command group whose help has whole sentences, examples that can be copied, and plain names of values."""

    def __init__(self, *, commands: Any = None, **settings: Any) -> None:
        """Improve the help of `commands`."""
        super().__init__(commands=commands, **settings)
        for command in (self, *self.commands.values()):
            command.help = (command.help or "").replace("\n\nExample: ", f"\n\n{NO_WRAP_MARK}Example: ")
            _label_values(command)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with their first sentences."""
        if rows := self.list_help_rows(ctx):
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def list_help_rows(self, ctx: Any) -> list[tuple[str, str]]:
        """Return each command that help shows, and its first sentence."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        return [
            (name, command.get_short_help_str(MAX_SENTENCE_CHARACTERS))
            for name, command in commands
            if command is not None and not command.hidden
        ]


def _label_values(command: Any) -> None:
    """Name the values of options and arguments by what they are, instead of by their types in Python."""
    for parameter in command.params:
        if isinstance(parameter, TyperArgument):
            parameter.__class__ = UppercaseArgument  # Typer has no setting for it
        elif isinstance(parameter, TyperOption) and parameter.metavar is None:
            type_name = parameter.bare_type().removeprefix("list[").removesuffix("]")
            parameter.metavar = _VALUE_LABELS.get(type_name)
