"""Reads sample values of the columns of a table."""

import re
from collections.abc import Collection, Sequence
from typing import Literal

from opposable.domain.errors import ToolError
from opposable.domain.text_normalization import normalize_text
from opposable.sql.database import Database, QueryLimits
from opposable.sql.schema import Column, Table, quote_name, quote_table_path

ColumnKind = Literal["text", "number", "date", "other"]
_KIND_PATTERNS: tuple[tuple[ColumnKind, str], ...] = (
    ("text", r"^(?:nullable\()?enum"),
    ("other", r"\[|array\(|tuple\(|struct|map\(|json|blob|bytea|uuid|binary"),
    ("date", "date|time"),
    ("number", "int|real|floa|doub|dec|num|money|serial|bool|bit"),
)
_MAX_CHARACTERS = 80
"""Longer texts are prose."""
_MAX_ROWS = 1_000
_TIMEOUT_SECONDS = 2.0
_MAX_CHOICE_VALUES, _MAX_LIST_VALUES = 4, 40
"""The limits of distinct values of a column that is a choice, and of one that is a list."""
_MAX_SAMPLES = 3
_MAX_CODE_CHARACTERS = 20
"""The limit of characters of a value that shows the format of a code or a date."""


def get_column_kind(column: Column) -> ColumnKind:
    """Return the kind of value a column has, by the name of its type."""
    name = column.type.casefold()
    return next((kind for kind, pattern in _KIND_PATTERNS if re.search(pattern, name)), "text")


def is_private_column(table: Table, column: str, private_columns: Collection[str]) -> bool:
    """Return whether a column is among `private_columns`: as `column` or `table.column`, in any case, or by `*`."""
    names = {f"{name}{column}".casefold() for name in ("", f"{table.name}.", f"{table.full_name}.")}
    return not names.isdisjoint(name.casefold() for name in private_columns) or "*" in private_columns


async def read_samples(
    database: Database, table: Table, private_columns: Collection[str] = ()
) -> dict[str, tuple[str, ...]]:
    """Read the values that add to a column's name: three of a few, two of a list, one of an unusual format.

    Returns:
        The values by column name, from the first rows; {} if the table cannot be read in two seconds.
    """
    columns = [
        column
        for column in table.columns
        if get_column_kind(column) != "other" and not is_private_column(table, column.name, private_columns)
    ]
    if not columns:
        return {}
    names = ", ".join(quote_name(column.name, database.dialect) for column in columns)
    sql = f"SELECT {names} FROM {quote_table_path(table, database.dialect)} LIMIT {_MAX_ROWS}"  # noqa: S608 - names in quotes
    try:
        rows = (await database.run(sql, limits=QueryLimits(_MAX_ROWS, _MAX_CHARACTERS + 1, _TIMEOUT_SECONDS))).rows
    except ToolError:
        return {}
    samples: dict[str, tuple[str, ...]] = {}
    for position, column in enumerate(columns):
        texts = dict.fromkeys(str(row[position]) for row in rows if row[position] is not None)
        values = [text for text in texts if text.strip() and len(text) <= _MAX_CHARACTERS]
        samples[column.name] = tuple(_select_samples(table, column, values))
    return samples


def _select_samples(table: Table, column: Column, values: Sequence[str]) -> Sequence[str]:
    distinct_count = len({normalize_text(value) for value in values} - {""})
    if 0 < distinct_count <= _MAX_CHOICE_VALUES:
        return values[:_MAX_SAMPLES]
    if get_column_kind(column) == "number":
        return ()
    is_mostly_unique = table.row_count is not None and distinct_count * 2 > table.row_count
    if distinct_count <= _MAX_LIST_VALUES and not is_mostly_unique:
        return values[:2]
    return values[: int(_has_unusual_format(values))]


def _has_unusual_format(values: Sequence[str]) -> bool:
    """Return whether the first value shows the format of a date or a code."""
    first = values[0] if values else ""
    digit_count = sum(char.isdigit() for char in first)
    return len(first) <= _MAX_CODE_CHARACTERS and digit_count * 3 > len(first)
