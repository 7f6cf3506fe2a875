"""The help of command groups and their commands."""

from typing import Any

from typer.core import TyperGroup, TyperOption

MAX_SENTENCE_CHARACTERS = 500

NO_WRAP_MARK = "\b\n"
"""Begins a paragraph whose lines are not wrapped."""

_VALUE_LABELS = {"str": "TEXT", "int": "NUMBER", "Path": "PATH"}


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
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, command.get_short_help_str(MAX_SENTENCE_CHARACTERS))
            for name, command in commands
            if command is not None and not command.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def _label_values(command: Any) -> None:
    """Name the values of options by what they are, instead of by their types in Python."""
    for option in command.params:
        if isinstance(option, TyperOption) and option.metavar is None:
            type_name = option.bare_type().removeprefix("list[").removesuffix("]")
            option.metavar = _VALUE_LABELS.get(type_name)
