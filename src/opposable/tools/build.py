"""Tools by what they are made from: the built-in ones, and those over a database."""

from collections.abc import Sequence
from pathlib import Path

from opposable.tools.base import Tool
from opposable.tools.builtin.calculator import calculator
from opposable.tools.builtin.clock import time
from opposable.tools.builtin.echo import echo
from opposable.tools.builtin.file_search import FileSearch
from opposable.tools.builtin.log_transform import LogTransform
from opposable.tools.function import FunctionTool, actions
from opposable.tools.sql.database import Database
from opposable.tools.sql.tools import SchemaTools, SqlTools


def builtin_tools(roots: Sequence[Path]) -> list[Tool]:
    """The tools that need nothing beside Python; the file tools read inside `roots` only."""
    files = FileSearch(list(roots))
    return [
        FunctionTool(echo),
        FunctionTool(calculator),
        FunctionTool(time),
        FunctionTool(files.file_search),
        FunctionTool(files.read_file),
        FunctionTool(LogTransform(list(roots)).log_transform),
    ]


def sql_tools(database: Database) -> list[Tool]:
    """The tools to look at a database and to ask it, read-only."""
    return [*actions(SchemaTools(database), "schema"), *actions(SqlTools(database), "sql")]
