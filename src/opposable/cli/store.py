"""The command `store init`, which creates the store."""

import typer

from opposable.app.default_store import open_default_store
from opposable.cli.errors import run_async
from opposable.cli.help import HelpGroup
from opposable.cli.options import err, read_settings
from opposable.cli.rendering import style_text

cli = typer.Typer(cls=HelpGroup, no_args_is_help=True)


@cli.callback()
def _group() -> None:
    """Keep `init` a subcommand: Typer would drop the name of an only command."""


@cli.command()
def init() -> None:
    """Create the store in the database of OPPOSABLE_DATABASE_URL.

    On PostgreSQL, the tables are created in the schema `opposable`. Tables of other programs are not touched.

    Example: opposable store init
    """

    async def create() -> None:
        async with open_default_store(read_settings(), create="always"):
            pass

    run_async(create())
    err.print(style_text("The store is ready."))
