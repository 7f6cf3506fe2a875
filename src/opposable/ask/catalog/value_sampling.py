"""Reads real values of a database into the index, column by column, within a time and a number."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

from opposable.domain.errors import ToolError
from opposable.sql.database import Database, Limits
from opposable.sql.schema import Column, Schema, Table, quoted, quoted_path

Kind = Literal["text", "number", "date", "other"]
MAX_CHARACTERS = 80
"""Longer texts are prose, not names: nobody writes them into a question."""
_SAMPLED_ROWS = 100
_PAGE = 100_000
_FEW = 1_000
"""Numbers and dates are kept when a column has at most so many."""
_SCANNED = 1_000_000
"""Columns of numbers and dates are only looked through in tables of at most so many rows."""
_QUERY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the gathering is: columns done of all, and values kept."""

    column: str
    columns_done: int
    columns: int
    values: int


def kind_of(column: Column) -> Kind:
    """What a column holds, by its type's name."""
    name = column.type.casefold()
    if any(part in name for part in ("[", "(struct", "struct", "map(", "json", "blob", "bytea", "uuid", "binary")):
        return "other"
    if any(part in name for part in ("date", "time")):
        return "date"
    if any(part in name for part in ("int", "real", "floa", "doub", "dec", "num", "money", "serial", "bool", "bit")):
        return "number"
    return "text"


async def read_samples(database: Database, table: Table, values: int) -> dict[str, tuple[str, ...]]:
    """A few different short values of every column, from the table's first rows; {} when they cannot be read."""
    columns = [column for column in table.columns if kind_of(column) != "other"]
    if not columns:
        return {}
    names = ", ".join(quoted(column.name, database.dialect) for column in columns)
    sql = f"SELECT {names} FROM {quoted_path(table, database.dialect)} LIMIT {_SAMPLED_ROWS}"  # noqa: S608 - names in quotes
    try:
        rows = (await database.run(sql, limits=Limits(_SAMPLED_ROWS, MAX_CHARACTERS, 2.0))).rows
        by_column = {column.name: [row[i] for row in rows] for i, column in enumerate(columns)}
    except ToolError:
        try:
            by_column = await database.samples(table.full_name, values)
        except ToolError:
            return {}
    return {name: _distinct(found, values) for name, found in by_column.items()}


def _distinct(values: list[Any], most: int) -> tuple[str, ...]:
    texts = dict.fromkeys(str(value) for value in values if value is not None and str(value).strip())
    short = [text for text in texts if len(text) <= MAX_CHARACTERS]
    return tuple((short or list(texts))[:most])


def wanted_columns(schema: Schema) -> list[tuple[Table, Column, Kind]]:
    """The columns whose values are gathered, those of small tables first."""
    found: list[tuple[Table, Column, Kind]] = []
    for table in sorted(schema.tables, key=lambda t: (t.kind == "view", t.rows is None, t.rows or 0)):
        for column in table.columns:
            kind = kind_of(column)
            key = column.primary_key or column.references is not None
            large = table.rows is None or table.rows > _SCANNED
            if kind == "text" or (kind in ("number", "date") and not key and not large):
                found.append((table, column, kind))
    return found


async def pages(
    database: Database, table: Table, column: Column, kind: Kind, most: int, end: float
) -> AsyncIterator[tuple[list[str], bool]]:
    """The different values of a column in pieces, and with each whether it was the last one.

    Raises:
        ToolError: the database cannot be asked for them.
    """
    if kind != "text":
        rows = await _distinct_page(database, table, column, _FEW + 1, None, end)
        yield ([] if len(rows) > _FEW else rows), True
        return
    last: str | None = None
    while most > 0:
        rows = await _distinct_page(database, table, column, min(_PAGE, most), last, end)
        most -= len(rows)
        done = len(rows) < _PAGE or most <= 0
        yield rows, done
        if done:
            return
        last = rows[-1]


async def _distinct_page(
    database: Database, table: Table, column: Column, most: int, after: str | None, end: float
) -> list[str]:
    """Up to `most` different values; in order, and after `after`, where there are more than a page."""
    name = quoted(column.name, database.dialect)
    path = quoted_path(table, database.dialect)
    text = kind_of(column) == "text"
    plain = f"CAST({name} AS TEXT)" if database.dialect != "sqlite" else name
    ordered = f'{plain} COLLATE "C"' if database.dialect == "postgres" else plain
    conditions = [f"{name} IS NOT NULL"]
    conditions += [f"length({plain}) BETWEEN 1 AND {MAX_CHARACTERS}"] if text else []
    conditions += [f"typeof({name}) <> 'blob'"] if database.dialect == "sqlite" else []
    mark = {"sqlite": ":p1", "duckdb": "$p1", "postgres": "$1"}[database.dialect]
    parameters = None
    if after is not None:
        conditions.append(f"{ordered} > {mark}")
        parameters = {mark[1:]: after}
    paged = f" ORDER BY {ordered}" if text and (table.rows is None or table.rows > _PAGE) else ""
    if paged and database.dialect == "postgres":
        source = f"SELECT DISTINCT {plain} AS v FROM {path} WHERE {' AND '.join(conditions)}"  # noqa: S608 - names in quotes
        sql = f'SELECT v FROM ({source}) AS found ORDER BY v COLLATE "C" LIMIT {most}'  # noqa: S608 - made above
    else:
        sql = f"SELECT DISTINCT {plain} FROM {path} WHERE {' AND '.join(conditions)}{paged} LIMIT {most}"  # noqa: S608 - made above
    seconds = max(0.05, min(_QUERY_SECONDS, end - time.monotonic()))
    rows = (await database.run(sql, parameters, Limits(most, MAX_CHARACTERS + 1, seconds))).rows
    return [str(row[0]) for row in rows if row[0] is not None]
