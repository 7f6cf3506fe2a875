"""Tool libraries of built-in tools, stored tools and tools over a database."""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from opposable.app.data_sources import open_data_source
from opposable.app.optional_tools import create_optional_tools
from opposable.app.stored_tools import open_spec_loader
from opposable.app.tool_factory import create_builtin_library, create_sql_tools
from opposable.domain.errors import BadInput
from opposable.domain.specs import AgentToolBinding
from opposable.settings import Settings
from opposable.sql.database import Database
from opposable.tools.base import Tool
from opposable.tools.library import ToolLibrary
from opposable.tools.registry import RegisteredTool

MAX_LISTED_NAMES = 6
"""Names listed in the message about an unknown tool."""


def select_tools(library: ToolLibrary, names: Sequence[str]) -> ToolLibrary:
    """Return a library of the named tools. `data_analyzer` names all tools `data_analyzer.…`.

    Raises:
        BadInput: No tool has one of the names.
    """
    ids = dict.fromkeys(tool_id for name in names for tool_id in _find_ids(library, name))
    return library.with_bindings([AgentToolBinding(tool_id=tool_id) for tool_id in ids])


def _find_ids(library: ToolLibrary, name: str) -> list[str]:
    if library.get_spec(name):
        return [name]
    if find_tool_by_id(library, name) is None:
        ids = [tool.entry.tool_id for known in library.names if (tool := library.find_registered_tool(known))]
        if actions := [tool_id for tool_id in ids if tool_id.startswith(f"{name}.")]:
            return actions
    return [require_tool(library, name).entry.tool_id]


def find_tool_by_id(library: ToolLibrary, name: str) -> RegisteredTool | None:
    """Return the tool with that id, else with that name: the name of one tool may be the id of another."""
    with_id = (tool for tool in library.get_registered_tools(name) if not tool.action)
    return next(with_id, None) or library.find_registered_tool(name)


def require_tool(library: ToolLibrary, name: str) -> RegisteredTool:
    """Return the tool with that id, else with that name.

    Raises:
        BadInput: No tool has this name; the message lists names, or says that the tool needs a database.
    """
    tool = find_tool_by_id(library, name)
    if tool is None:
        _check_database_tool(library, name)
        suggestions = library.suggest_names(name)
        hint = f" Did you mean {suggestions[0]}?" if suggestions else ""
        names = library.names
        more = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
        raise BadInput(
            f"There is no tool named {name!r}.{hint} The tools are: {', '.join(names[:MAX_LISTED_NAMES])}{more}."
        )
    return tool


def _check_database_tool(library: ToolLibrary, name: str) -> None:
    """Raise `BadInput` if the missing tool is one over a database, which was not passed."""
    if name == "ask_data":
        raise BadInput("ask_data needs a database, and a chat. Use: opposable chat --db DATABASE")
    if re.match(r"(sql|schema)([._]|$)", name) and library.find_registered_tool("sql.execute") is None:
        raise BadInput(f"{name} needs a database. Pass --db DATABASE (to chat, mcp-serve or a command of tools).")


@asynccontextmanager
async def open_tools(
    settings: Settings, database: str | None = None, required_name: str = ""
) -> AsyncIterator[ToolLibrary]:
    """Open every available tool, and those over a database if given.

    Closed at the end. Raises: `BadInput` if `required_name` is a stored tool that cannot be used.
    """
    opening = open_tools_and_database(settings, database, include_optional=True, required_name=required_name)
    async with opening as (library, _):
        yield library


@asynccontextmanager
async def open_tools_and_database(
    settings: Settings,
    database: str | None = None,
    tool_names: Sequence[str] = (),
    *,
    include_optional: bool = False,
    required_name: str = "",
    open_extra_tool: Callable[[Database], AbstractAsyncContextManager[Tool]] | None = None,
) -> AsyncIterator[tuple[ToolLibrary, Database | None]]:
    """Open the tools, and the database they are over if given.

    Both are closed at the end.

    Read-only and stored tools are always available.

    Args:
        settings: The settings.
        database: The URL or path of a database, or the path of data files.
        tool_names: The only tools to return; all if empty.
        include_optional: Whether to open tools with optional dependencies even if they are not named.
        required_name: A tool that must be usable, of all that are returned.
        open_extra_tool: Opens one more tool over the database.

    Raises:
        BadInput: No tool has one of the names, a named stored tool cannot be used, or the database does not exist.
    """
    library = create_builtin_library(settings)
    async with AsyncExitStack() as stack:
        loader, unusable_tools = await stack.enter_async_context(open_spec_loader(settings, library))
        for name in (*tool_names, required_name):
            for tool_id in (name, name.partition(".")[0]):
                if tool_id in unusable_tools:
                    raise BadInput(f"The stored tool {tool_id!r} cannot be used: {unusable_tools[tool_id]}")
        opened_database = None
        if database is not None:
            opened_database = await stack.enter_async_context(open_data_source(database))
            for tool in create_sql_tools(opened_database):
                library.register(tool)
            if open_extra_tool is not None:
                library.register(await stack.enter_async_context(open_extra_tool(opened_database)))
        if include_optional or any(
            library.find_tool(name) is None and library.get_spec(name) is None for name in tool_names
        ):
            for tool in create_optional_tools(loader, stack):
                # A stored tool may have the name. If it cannot be used, this one would not have its roots and policies.
                if tool.definition.name not in library.names and tool.tool_id.partition(".")[0] not in unusable_tools:
                    library.register(tool)
        yield select_tools(library, tool_names) if tool_names else library, opened_database
