"""Reads real values of a database into the index, column by column, within a time and a number."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

from opposable.domain.errors import ToolError
from opposable.sql.database import Database, QueryLimits
from opposable.sql.schema import Column, DatabaseSchema, Table, quote_name, quote_table_path

ColumnKind = Literal["text", "number", "date", "other"]
MAX_VALUE_CHARACTERS = 80
"""Longer texts are prose, not names: nobody writes them into a question."""
_MAX_SAMPLED_ROWS = 100
_PAGE_SIZE = 100_000
_MAX_NON_TEXT_VALUES = 1_000
"""Numbers and dates are kept when a column has at most so many."""
_MAX_SCANNED_ROWS = 1_000_000
"""Columns of numbers and dates are only looked through in tables of at most so many rows."""
_QUERY_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class IndexingProgress:
    """How far the gathering is: columns done of all, and values kept."""

    column: str
    columns_done: int
    total_columns: int
    indexed_values: int


def get_column_kind(column: Column) -> ColumnKind:
    """What a column holds, by its type's name."""
    name = column.type.casefold()
    if any(part in name for part in ("[", "(struct", "struct", "map(", "json", "blob", "bytea", "uuid", "binary")):
        return "other"
    if any(part in name for part in ("date", "time")):
        return "date"
    if any(part in name for part in ("int", "real", "floa", "doub", "dec", "num", "money", "serial", "bool", "bit")):
        return "number"
    return "text"


async def read_samples(database: Database, table: Table, limit: int) -> dict[str, tuple[str, ...]]:
    """A few different short values of every column, from the table's first rows; {} when they cannot be read."""
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
    return {name: _select_distinct(found, limit) for name, found in by_column.items()}


def _select_distinct(values: list[Any], limit: int) -> tuple[str, ...]:
    texts = dict.fromkeys(str(value) for value in values if value is not None and str(value).strip())
    short = [text for text in texts if len(text) <= MAX_VALUE_CHARACTERS]
    return tuple((short or list(texts))[:limit])


def select_indexed_columns(schema: DatabaseSchema) -> list[tuple[Table, Column, ColumnKind]]:
    """The columns whose values are gathered, those of small tables first."""
    found: list[tuple[Table, Column, ColumnKind]] = []
    for table in sorted(schema.tables, key=lambda t: (t.kind == "view", t.row_count is None, t.row_count or 0)):
        for column in table.columns:
            kind = get_column_kind(column)
            key = column.primary_key or column.references is not None
            large = table.row_count is None or table.row_count > _MAX_SCANNED_ROWS
            if kind == "text" or (kind in ("number", "date") and not key and not large):
                found.append((table, column, kind))
    return found


async def iter_value_pages(
    database: Database, table: Table, column: Column, kind: ColumnKind, limit: int, deadline: float
) -> AsyncIterator[tuple[list[str], bool]]:
    """The different values of a column in pieces, and with each whether it was the last one.

    Raises:
        ToolError: the database cannot be asked for them.
    """
    if kind != "text":
        rows = await _fetch_distinct_page(database, table, column, _MAX_NON_TEXT_VALUES + 1, None, deadline)
        yield ([] if len(rows) > _MAX_NON_TEXT_VALUES else rows), True
        return
    last: str | None = None
    while limit > 0:
        rows = await _fetch_distinct_page(database, table, column, min(_PAGE_SIZE, limit), last, deadline)
        limit -= len(rows)
        done = len(rows) < _PAGE_SIZE or limit <= 0
        yield rows, done
        if done:
            return
        last = rows[-1]


async def _fetch_distinct_page(
    database: Database, table: Table, column: Column, limit: int, after: str | None, deadline: float
) -> list[str]:
    """Up to `most` different values; in order, and after `after`, where there are more than a page."""
    name = quote_name(column.name, database.dialect)
    path = quote_table_path(table, database.dialect)
    text = get_column_kind(column) == "text"
    plain = f"CAST({name} AS TEXT)" if database.dialect != "sqlite" else name
    ordered = f'{plain} COLLATE "C"' if database.dialect == "postgres" else plain
    conditions = [f"{name} IS NOT NULL"]
    conditions += [f"length({plain}) BETWEEN 1 AND {MAX_VALUE_CHARACTERS}"] if text else []
    conditions += [f"typeof({name}) <> 'blob'"] if database.dialect == "sqlite" else []
    mark = {"sqlite": ":p1", "duckdb": "$p1", "postgres": "$1"}[database.dialect]
    parameters = None
    if after is not None:
        conditions.append(f"{ordered} > {mark}")
        parameters = {mark[1:]: after}
    paged = f" ORDER BY {ordered}" if text and (table.row_count is None or table.row_count > _PAGE_SIZE) else ""
    if paged and database.dialect == "postgres":
        source = f"SELECT DISTINCT {plain} AS v FROM {path} WHERE {' AND '.join(conditions)}"  # noqa: S608 - names in quotes
        sql = f'SELECT v FROM ({source}) AS found ORDER BY v COLLATE "C" LIMIT {limit}'  # noqa: S608 - made above
    else:
        sql = f"SELECT DISTINCT {plain} FROM {path} WHERE {' AND '.join(conditions)}{paged} LIMIT {limit}"  # noqa: S608 - made above
    seconds = max(0.05, min(_QUERY_TIMEOUT_SECONDS, deadline - time.monotonic()))
    rows = (await database.run(sql, parameters, QueryLimits(limit, MAX_VALUE_CHARACTERS + 1, seconds))).rows
    return [str(row[0]) for row in rows if row[0] is not None]
