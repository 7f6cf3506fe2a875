"""The help of command groups: each command with its whole first sentence."""

from typing import Any

from typer.core import TyperGroup

MAX_SENTENCE_CHARACTERS = 500


class HelpGroup(TyperGroup):
    """A command group whose help wraps the sentences of its commands instead of cutting them."""

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
