"""The tools there are: built in, and over a database."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from opposable.app.optional_tools import further_tools
from opposable.app.stored_tools import toolbox
from opposable.app.tool_factory import builtin_tools, sql_tools
from opposable.domain.errors import BadInput
from opposable.domain.specs import AgentToolBinding
from opposable.settings import Settings
from opposable.sql.database import Database
from opposable.sql.factory import open_database
from opposable.tools.base import Tool
from opposable.tools.library import ToolLibrary

MOST_NAMED = 6
"""Names of tools told with an unknown one."""


def ready_tools(settings: Settings) -> ToolLibrary:
    """The built-in tools that need nothing beside Python."""
    return ToolLibrary(builtin_tools([root.resolve() for root in settings.roots]))


def chosen(library: ToolLibrary, names: Sequence[str]) -> ToolLibrary:
    """The tools of those names, each with its rules. Raises: `BadInput` for a name there is not."""
    ids = dict.fromkeys(name if library.get(name) else found(library, name).tool_id for name in names)
    owners = dict.fromkeys(tool_id if library.get(tool_id) else tool_id.rpartition(".")[0] for tool_id in ids)
    return library.bound([AgentToolBinding(tool_id=tool_id) for tool_id in owners])


def found(library: ToolLibrary, name: str) -> Tool:
    """The tool called `name`. Raises: `BadInput`, saying which there are."""
    tool = library.find(name)
    if tool is None:
        near = library.nearest(name)
        meant = f" Did you mean {near[0]}?" if near else ""
        names = library.names
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        raise BadInput(f"There is no tool named {name!r}.{meant} The tools are: {', '.join(names[:MOST_NAMED])}{more}.")
    return tool


@asynccontextmanager
async def tools(settings: Settings, database: str | None = None) -> AsyncIterator[ToolLibrary]:
    """Every tool there is, and those over a database if one is given; closed at the end."""
    async with tools_and_data(settings, database, every=True) as (library, _):
        yield library


@asynccontextmanager
async def tools_and_data(
    settings: Settings,
    database: str | None = None,
    names: Sequence[str] = (),
    *,
    every: bool = False,
    asking: Callable[[Database], AbstractAsyncContextManager[Tool]] | None = None,
) -> AsyncIterator[tuple[ToolLibrary, Database | None]]:
    """The tools, and the database they are over if one is given; closed at the end.

    Those that only read and the kept ones are there; those that need an extra only when they are named, or with
    `every`. With `names` only those are. `asking` opens one tool more over the database. Raises: `BadInput` for a name
    there is not.
    """
    library = ready_tools(settings)
    async with AsyncExitStack() as stack:
        box, _ = await stack.enter_async_context(toolbox(settings, library))
        opened = None
        if database is not None:
            opened = await stack.enter_async_context(closing(await open_database(database)))
            for tool in sql_tools(opened):
                library.register(tool)
            if asking is not None:
                library.register(await stack.enter_async_context(asking(opened)))
        if every or any(library.find(name) is None and library.get(name) is None for name in names):
            for tool in further_tools(box, stack):
                library.register(tool)
        yield chosen(library, names) if names else library, opened


@asynccontextmanager
async def closing(database: Database) -> AsyncIterator[Database]:
    """The database, closed at the end."""
    try:
        yield database
    finally:
        await database.close()
