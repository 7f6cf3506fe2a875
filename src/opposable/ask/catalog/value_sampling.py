"""Reads sample values and distinct values of database columns."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

from opposable.domain.errors import ToolError
from opposable.sql.database import Database, QueryLimits
from opposable.sql.schema import Column, DatabaseSchema, Table, quote_name, quote_table_path

ColumnKind = Literal["text", "number", "date", "other"]
MAX_VALUE_CHARACTERS = 80
"""Longer texts are prose: questions do not name them."""
_MAX_SAMPLED_ROWS = 100
_PAGE_SIZE = 100_000
_MAX_NON_TEXT_VALUES = 1_000
"""Most distinct values of a number or date column that is indexed."""
_MAX_SCANNED_ROWS = 1_000_000
"""Most rows of a table whose number and date columns are indexed."""
_QUERY_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class IndexingProgress:
    """The progress of indexing: the current column, and what is done so far."""

    column: str
    columns_done: int
    total_columns: int
    indexed_values: int


def get_column_kind(column: Column) -> ColumnKind:
    """Return the kind of value a column has, by the name of its type."""
    name = column.type.casefold()
    if any(part in name for part in ("[", "(struct", "struct", "map(", "json", "blob", "bytea", "uuid", "binary")):
        return "other"
    if any(part in name for part in ("date", "time")):
        return "date"
    if any(part in name for part in ("int", "real", "floa", "doub", "dec", "num", "money", "serial", "bool", "bit")):
        return "number"
    return "text"


async def read_samples(database: Database, table: Table, limit: int) -> dict[str, tuple[str, ...]]:
    """Read a few distinct values of each column from a table's first rows.

    Returns:
        Up to `limit` values by column name; {} if the table cannot be read.
    """
    columns = [column for column in table.columns if get_column_kind(column) != "other"]
    if not columns:
        return {}
    names = ", ".join(quote_name(column.name, database.dialect) for column in columns)
    sql = f"SELECT {names} FROM {quote_table_path(table, database.dialect)} LIMIT {_MAX_SAMPLED_ROWS}"  # noqa: S608 - names in quotes
    try:
        rows = (await database.run(sql, limits=QueryLimits(_MAX_SAMPLED_ROWS, MAX_VALUE_CHARACTERS, 2.0))).rows
        by_column = {column.name: [row[i] for row in rows] for i, column in enumerate(columns)}
    except ToolError:
        try:
            by_column = await database.sample_values(table.full_name, limit)
        except ToolError:
            return {}
    return {name: _select_distinct(values, limit) for name, values in by_column.items()}


def _select_distinct(values: list[Any], limit: int) -> tuple[str, ...]:
    texts = dict.fromkeys(str(value) for value in values if value is not None and str(value).strip())
    short_texts = [text for text in texts if len(text) <= MAX_VALUE_CHARACTERS]
    return tuple((short_texts or list(texts))[:limit])


def select_indexed_columns(schema: DatabaseSchema) -> list[tuple[Table, Column, ColumnKind]]:
    """Return the columns to index, those of small tables first."""
    columns: list[tuple[Table, Column, ColumnKind]] = []
    for table in sorted(schema.tables, key=lambda t: (t.kind == "view", t.row_count is None, t.row_count or 0)):
        is_large = table.row_count is None or table.row_count > _MAX_SCANNED_ROWS
        for column in table.columns:
            kind = get_column_kind(column)
            is_key = column.primary_key or column.references is not None
            if kind == "text" or (kind in ("number", "date") and not is_key and not is_large):
                columns.append((table, column, kind))
    return columns


async def iter_value_pages(
    database: Database, table: Table, column: Column, kind: ColumnKind, limit: int, deadline: float
) -> AsyncIterator[tuple[list[str], bool]]:
    """Yield up to `limit` distinct values of a column in pages.

    Yields:
        The values of a page, and whether it is the last page.

    Raises:
        ToolError: The query failed.
    """
    if kind != "text":
        values = await _fetch_distinct_page(database, table, column, _MAX_NON_TEXT_VALUES + 1, None, deadline)
        yield ([] if len(values) > _MAX_NON_TEXT_VALUES else values), True
        return
    last_value: str | None = None
    remaining = limit
    while remaining > 0:
        page_size = min(_PAGE_SIZE, remaining)
        values = await _fetch_distinct_page(database, table, column, page_size, last_value, deadline)
        remaining -= len(values)
        is_last = len(values) < _PAGE_SIZE or remaining <= 0
        yield values, is_last
        if is_last:
            return
        last_value = values[-1]


async def _fetch_distinct_page(
    database: Database, table: Table, column: Column, limit: int, after: str | None, deadline: float
) -> list[str]:
    """Fetch up to `limit` distinct values.

    The values of a large table are sorted and greater than `after`.
    """
    sql, parameters = _build_distinct_query(database, table, column, limit, after)
    seconds = max(0.05, min(_QUERY_TIMEOUT_SECONDS, deadline - time.monotonic()))
    rows = (await database.run(sql, parameters, QueryLimits(limit, MAX_VALUE_CHARACTERS + 1, seconds))).rows
    return [str(row[0]) for row in rows if row[0] is not None]


def _build_distinct_query(
    database: Database, table: Table, column: Column, limit: int, after: str | None
) -> tuple[str, dict[str, Any] | None]:
    name = quote_name(column.name, database.dialect)
    path = quote_table_path(table, database.dialect)
    is_text = get_column_kind(column) == "text"
    value = f"CAST({name} AS TEXT)" if database.dialect != "sqlite" else name
    sort_key = f'{value} COLLATE "C"' if database.dialect == "postgres" else value
    conditions = [f"{name} IS NOT NULL"]
    conditions += [f"length({value}) BETWEEN 1 AND {MAX_VALUE_CHARACTERS}"] if is_text else []
    conditions += [f"typeof({name}) <> 'blob'"] if database.dialect == "sqlite" else []
    placeholder = {"sqlite": ":p1", "duckdb": "$p1", "postgres": "$1"}[database.dialect]
    parameters = None
    if after is not None:
        conditions.append(f"{sort_key} > {placeholder}")
        parameters = {placeholder[1:]: after}
    where = " AND ".join(conditions)
    is_sorted = is_text and (table.row_count is None or table.row_count > _PAGE_SIZE)
    if is_sorted and database.dialect == "postgres":
        distinct = f"SELECT DISTINCT {value} AS v FROM {path} WHERE {where}"  # noqa: S608 - quoted names
        sql = f'SELECT v FROM ({distinct}) AS found ORDER BY v COLLATE "C" LIMIT {limit}'  # noqa: S608 - built above
        return sql, parameters
    order_by = f" ORDER BY {sort_key}" if is_sorted else ""
    return f"SELECT DISTINCT {value} FROM {path} WHERE {where}{order_by} LIMIT {limit}", parameters  # noqa: S608 - as above
