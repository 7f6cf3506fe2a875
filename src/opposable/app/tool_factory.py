"""Tools by what they are made from: a spec, a database, or nothing but Python."""

from collections.abc import Sequence
from pathlib import Path

from opposable.builtin_tools.calculator.calculator import calculator
from opposable.builtin_tools.clock import time
from opposable.builtin_tools.echo import echo
from opposable.builtin_tools.file_search import FileSearch
from opposable.builtin_tools.logs.log_transform import LogTransform
from opposable.domain.errors import BadInput
from opposable.domain.specs import AnyToolSpec, FunctionToolSpec
from opposable.sql.database import Database
from opposable.sql.tools import SchemaTools, SqlTools
from opposable.tools.base import Tool
from opposable.tools.function import FunctionTool, tools_from_object
from opposable.tools.function_loader import load_tools

DEFAULT_ALLOWED_FUNCTIONS = (
    "opposable.builtin_tools.calculator.calculator:calculator",
    "opposable.builtin_tools.clock:time",
    "opposable.builtin_tools.echo:echo",
)
"""What a spec may name where the owner says nothing: specs may come from outside, and these three touch nothing."""


def create_tools(spec: AnyToolSpec, *, allowed: Sequence[str] = DEFAULT_ALLOWED_FUNCTIONS) -> list[Tool]:
    """The tools a spec describes. `allowed` lists the modules and names that function specs may name.

    Raises: `BadInput`, saying what of the spec cannot be used.
    """
    match spec:
        case FunctionToolSpec():
            return load_tools(spec, allowed)
        case _:
            raise BadInput(f"{spec.tool_id}: no tool can be made here from a spec of type {spec.tool_type}.")


def create_builtin_tools(roots: Sequence[Path]) -> list[Tool]:
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


def create_sql_tools(database: Database) -> list[Tool]:
    """The tools to look at a database and to ask it, read-only."""
    return [*tools_from_object(SchemaTools(database), "schema"), *tools_from_object(SqlTools(database), "sql")]
