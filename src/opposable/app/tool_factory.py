"""Factories of tools: the built-in tools, the SQL tools."""

from collections.abc import Sequence
from pathlib import Path

from opposable.app.search_keywords import add_search_keywords
from opposable.builtin_tools.calculator.calculator import calculator
from opposable.builtin_tools.clock import time
from opposable.builtin_tools.echo import echo
from opposable.builtin_tools.file_search import FileSearch
from opposable.builtin_tools.logs.log_transform import LogTransform
from opposable.settings import Settings
from opposable.sql.database import Database
from opposable.sql.tools import PARAMETER_ALIASES, TOOL_ALIASES, SchemaTools, SqlTools
from opposable.tools.base import Tool
from opposable.tools.function import FunctionTool, tools_from_object
from opposable.tools.library import ToolLibrary

DEFAULT_ALLOWED_FUNCTIONS = (
    "opposable.builtin_tools.calculator.calculator:calculator",
    "opposable.builtin_tools.clock:time",
    "opposable.builtin_tools.echo:echo",
)
"""The functions a spec may name by default; they have no access to files or the network."""


def create_builtin_tools(roots: Sequence[Path]) -> list[Tool]:
    """Create the built-in tools without optional dependencies.

    File tools read only inside `roots`.
    """
    files, logs = FileSearch(list(roots)), LogTransform(list(roots))
    functions = (echo, calculator, time, files.file_search, files.read_file, logs.log_transform)
    return [*add_search_keywords(FunctionTool(function, read_only=True) for function in functions)]


def create_builtin_library(settings: Settings) -> ToolLibrary:
    """Create a library of the built-in tools without optional dependencies."""
    return ToolLibrary(create_builtin_tools([root.resolve() for root in settings.roots]))


def create_sql_tools(database: Database) -> list[Tool]:
    """Create the read-only tools that describe and query a database. What it contains may be texts of other people."""
    reading = ("validate", "validate_columns", "auto_fix_columns", "refine", "execute")
    tools = [
        *tools_from_object(
            SchemaTools(database), "schema", read_only=("list_tables", "list_columns"), untrusted_output=True
        ),
        *tools_from_object(SqlTools(database), "sql", read_only=reading, untrusted_output=True),
    ]
    for tool in tools:
        tool.aliases = tuple(name for name, tool_id in TOOL_ALIASES.items() if tool_id == tool.tool_id)
        tool.parameter_aliases = PARAMETER_ALIASES
    return [*add_search_keywords(tools)]
