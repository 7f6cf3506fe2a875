"""The tools there are: built in, and over a database."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from opposable.domain.errors import BadInput
from opposable.settings import Settings
from opposable.tools.base import Tool
from opposable.tools.build import builtin_tools, sql_tools
from opposable.tools.library import ToolLibrary
from opposable.tools.sql.database import Database, open_database


def ready_tools(settings: Settings, names: Sequence[str] = ()) -> ToolLibrary:
    """The built-in tools, or those of them that are named. Raises: `BadInput` for a name there is not."""
    every = ToolLibrary(builtin_tools([root.resolve() for root in settings.roots]))
    return chosen(every, names) if names else every


def chosen(library: ToolLibrary, names: Sequence[str]) -> ToolLibrary:
    """The tools of those names. Raises: `BadInput` for a name there is not."""
    tools = {tool.tool_id: tool for tool in (found(library, name) for name in names)}
    return ToolLibrary(tools.values())


def found(library: ToolLibrary, name: str) -> Tool:
    """The tool called `name`. Raises: `BadInput`, saying which there are."""
    tool = library.find(name)
    if tool is None:
        near = library.nearest(name)
        meant = f" Did you mean {near[0]}?" if near else ""
        raise BadInput(f"There is no tool named {name!r}.{meant} The tools are: {', '.join(library.names)}.")
    return tool


@asynccontextmanager
async def tools(settings: Settings, database: str | None = None) -> AsyncIterator[ToolLibrary]:
    """The built-in tools, and those over a database if one is given; closed at the end."""
    async with tools_and_data(settings, database) as (library, _):
        yield library


@asynccontextmanager
async def tools_and_data(
    settings: Settings, database: str | None
) -> AsyncIterator[tuple[ToolLibrary, Database | None]]:
    """The tools, and the database they are over if one is given; closed at the end."""
    library = ready_tools(settings)
    if database is None:
        yield library, None
        return
    async with closing(await open_database(database)) as opened:
        for tool in sql_tools(opened):
            library.register(tool)
        yield library, opened


@asynccontextmanager
async def closing(database: Database) -> AsyncIterator[Database]:
    """The database, closed at the end."""
    try:
        yield database
    finally:
        await database.close()
