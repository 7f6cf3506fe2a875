"""The tools there are: built in, and over a database."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from opposable.app.optional_tools import create_optional_tools
from opposable.app.stored_tools import open_spec_loader
from opposable.app.tool_factory import create_builtin_tools, create_sql_tools
from opposable.domain.errors import BadInput
from opposable.domain.specs import AgentToolBinding
from opposable.settings import Settings
from opposable.sql.database import Database
from opposable.sql.factory import open_database
from opposable.tools.base import Tool
from opposable.tools.library import ToolLibrary

MAX_LISTED_NAMES = 6
"""Names of tools told with an unknown one."""


def create_builtin_library(settings: Settings) -> ToolLibrary:
    """The built-in tools that need nothing beside Python."""
    return ToolLibrary(create_builtin_tools([root.resolve() for root in settings.roots]))


def select_tools(library: ToolLibrary, names: Sequence[str]) -> ToolLibrary:
    """The tools of those names, each with its rules. Raises: `BadInput` for a name there is not."""
    ids = dict.fromkeys(name if library.get_spec(name) else require_tool(library, name).tool_id for name in names)
    owners = dict.fromkeys(tool_id if library.get_spec(tool_id) else tool_id.rpartition(".")[0] for tool_id in ids)
    return library.with_bindings([AgentToolBinding(tool_id=tool_id) for tool_id in owners])


def require_tool(library: ToolLibrary, name: str) -> Tool:
    """The tool called `name`. Raises: `BadInput`, saying which there are."""
    tool = library.find_tool(name)
    if tool is None:
        near = library.suggest_names(name)
        meant = f" Did you mean {near[0]}?" if near else ""
        names = library.names
        more = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
        raise BadInput(
            f"There is no tool named {name!r}.{meant} The tools are: {', '.join(names[:MAX_LISTED_NAMES])}{more}."
        )
    return tool


@asynccontextmanager
async def open_tools(settings: Settings, database: str | None = None) -> AsyncIterator[ToolLibrary]:
    """Every tool there is, and those over a database if one is given; closed at the end."""
    async with open_tools_and_database(settings, database, include_optional=True) as (library, _):
        yield library


@asynccontextmanager
async def open_tools_and_database(
    settings: Settings,
    database: str | None = None,
    tool_names: Sequence[str] = (),
    *,
    include_optional: bool = False,
    open_extra_tool: Callable[[Database], AbstractAsyncContextManager[Tool]] | None = None,
) -> AsyncIterator[tuple[ToolLibrary, Database | None]]:
    """The tools, and the database they are over if one is given; closed at the end.

    Those that only read and the kept ones are there; those that need an extra only when they are named, or with
    `every`. With `names` only those are. `asking` opens one tool more over the database. Raises: `BadInput` for a name
    there is not.
    """
    library = create_builtin_library(settings)
    async with AsyncExitStack() as stack:
        box, _ = await stack.enter_async_context(open_spec_loader(settings, library))
        opened = None
        if database is not None:
            opened = await stack.enter_async_context(closing_database(await open_database(database)))
            for tool in create_sql_tools(opened):
                library.register(tool)
            if open_extra_tool is not None:
                library.register(await stack.enter_async_context(open_extra_tool(opened)))
        if include_optional or any(
            library.find_tool(name) is None and library.get_spec(name) is None for name in tool_names
        ):
            for tool in create_optional_tools(box, stack):
                library.register(tool)
        yield select_tools(library, tool_names) if tool_names else library, opened


@asynccontextmanager
async def closing_database(database: Database) -> AsyncIterator[Database]:
    """The database, closed at the end."""
    try:
        yield database
    finally:
        await database.close()
