"""Tables, keys, comments and sizes of a SQLite database."""

import sqlite3
import time
from contextlib import suppress

from opposable.sql.ddl_comments import parse_column_comments
from opposable.sql.schema import Column, DatabaseSchema, Table, fold_name, quote_identifier

_COUNT_SECONDS = 0.3
"""Time to count rows of all tables; the rest are estimated."""


def read_schema(connection: sqlite3.Connection) -> DatabaseSchema:
    """Read all tables and views except internal and shadow tables."""
    rows_of_tables = connection.execute(
        "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'view', 'virtual')"
        " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    ).fetchall()
    create_statements = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall())
    order = {name: index for index, name in enumerate(create_statements)}
    deadline = time.monotonic() + _COUNT_SECONDS
    tables: list[Table] = []
    for name, kind in sorted(rows_of_tables, key=lambda row: order.get(row[0], 0)):
        columns, hidden = _read_columns(connection, name, parse_column_comments(create_statements.get(name, "")))
        rows, exact = (None, True) if kind == "view" else _count_rows(connection, name, deadline)
        kind = "view" if kind == "view" else "table"
        tables.append(Table(name, columns, kind=kind, row_count=rows, is_row_count_exact=exact, hidden_columns=hidden))
    return DatabaseSchema(tuple(tables))


def _read_columns(
    connection: sqlite3.Connection, table: str, comments: dict[str, str]
) -> tuple[tuple[Column, ...], frozenset[str]]:
    """Return the columns of a table and the folded names of the hidden ones of a virtual table."""
    sql = 'SELECT name, type, "notnull", pk, hidden = 1 FROM pragma_table_xinfo(?)'
    try:
        rows = connection.execute(sql, (table,)).fetchall()
    except sqlite3.Error:
        return (), frozenset()  # a view whose tables are gone stays listed; a query of it reports the reason
    keys = _read_foreign_keys(connection, table)
    columns = tuple(
        Column(
            name,
            type_,
            nullable=not required and not key,
            primary_key=bool(key),
            references=keys.get(name.casefold()),
            comment=comments.get(name.casefold()),
        )
        for name, type_, required, key, is_hidden in rows
        if not is_hidden
    )
    return columns, frozenset(fold_name(name) for name, *_, is_hidden in rows if is_hidden)


def _read_foreign_keys(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    with suppress(sqlite3.Error):
        rows = connection.execute('SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)', (table,)).fetchall()
        return {column.casefold(): f"{other}.{target}" if target else other for column, other, target in rows}
    return {}


def _count_rows(connection: sqlite3.Connection, table: str, deadline: float) -> tuple[int | None, bool]:
    """Return the number of rows, and whether it is exact.

    Rows are counted until the deadline, then estimated from the last row id.
    """
    name = quote_identifier(table)
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 1_000)
    with suppress(sqlite3.Error):
        return int(connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]), True  # noqa: S608 - quoted
    connection.set_progress_handler(None, 0)
    with suppress(sqlite3.Error):
        last_rowid = connection.execute(f"SELECT max(rowid) FROM {name}").fetchone()[0]  # noqa: S608 - quoted
        return (int(last_rowid), False) if last_rowid is not None else (0, True)
    return None, True
