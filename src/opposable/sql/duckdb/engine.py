"""DuckDB files as read-only databases.

A locked configuration and a check of DuckDB's own parse tree protect them.
"""

import asyncio
import ctypes
import datetime
import re
import time
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from opposable.domain.errors import BadInput
from opposable.sql.database import DEFAULT_LIMITS, OpenedDatabase, QueryLimits, QueryResult
from opposable.sql.described_statements import extract_query
from opposable.sql.duckdb.options import RESTRICTED_OPTIONS
from opposable.sql.duckdb.parse_tree_guard import StoredCode, check_parse_tree
from opposable.sql.duckdb.schema_reader import read_schema
from opposable.sql.duckdb.stored_code import read_stored_code
from opposable.sql.errors import QueryTimedOut, format_engine_message, translate_engine_error
from opposable.sql.function_allowlist import Dialect
from opposable.sql.interruptible_threads import InterruptibleThreads
from opposable.sql.result_rows import build_query_result
from opposable.sql.schema import DatabaseSchema, fold_name

T = TypeVar("T")

_QUOTED = re.compile("'[^']*'|\"[^\"]*\"")
"""The names of fields and the values of enumerations in a type."""
_TEXT_TYPES = re.compile(r"\b(?:INTERVAL|TIMESTAMP(?:TZ)?_NS|TIME_NS)\b")
"""Types that Python cannot represent, also within others: it has no intervals of months and years, no nanoseconds."""
_DATE_TYPES = re.compile(r"\b(?:DATE|TIMESTAMP)")
_DAY_END = re.compile(r"(?<=\d) (?=\d)")
"""The space between the day and the time of a text, and not that in 0044-03-15 (BC)."""
_INFINITE_DATES = frozenset(bound for kind in (datetime.date, datetime.datetime) for bound in (kind.max, kind.min))
"""What DuckDB's driver makes of infinite dates. Text shows whether they are, or are these dates themselves."""
CONNECTION_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    **RESTRICTED_OPTIONS,
    "enable_external_access": "false",
    "lock_configuration": "true",
}
"""Configuration of a connection; `read_only` alone would still read and write other files."""


class DuckdbDatabase(OpenedDatabase):
    """A `Database` over one DuckDB file.

    Each query has its own cursor, and so its own transaction.
    """

    dialect: Dialect = "duckdb"

    def __init__(self, path: Path, connection: Any, schema: DatabaseSchema, code: StoredCode) -> None:
        super().__init__(path.name, str(path.resolve()), schema)
        self._path = path
        self._connection = connection
        self._code = code
        self._threads = InterruptibleThreads("duckdb")

    async def explain(
        self, sql: str, parameters: dict[str, Any] | None = None, limits: QueryLimits = DEFAULT_LIMITS
    ) -> None:
        """Bind and plan `sql`."""

        def work(cursor: Any) -> None:
            query = extract_query(sql, "duckdb")
            check_parse_tree(cursor, query, self._code)
            cursor.execute(f"EXPLAIN {query}", parameters or None).fetchall()

        await self._run_in_thread(work, limits)

    async def run(
        self, sql: str, parameters: dict[str, Any] | None = None, limits: QueryLimits = DEFAULT_LIMITS
    ) -> QueryResult:
        """Run `sql`; see `Database.run`."""

        def work(cursor: Any) -> QueryResult:
            started = time.perf_counter()
            check_parse_tree(cursor, extract_query(sql, "duckdb"), self._code)
            cursor.execute(sql, parameters or None)
            columns = tuple(str(column[0]) for column in cursor.description or ())
            kinds = [column[1] for column in cursor.description or ()]
            types = list(map(str, kinds))
            as_text = {at for at, kind in enumerate(types) if _TEXT_TYPES.search(_QUOTED.sub("", kind))}
            if as_text:
                cursor.execute(_write_as_text(sql, types, as_text), parameters or None)
            rows = cursor.fetchmany(limits.max_rows + 1)
            dated = {at for at, kind in enumerate(types) if _DATE_TYPES.search(_QUOTED.sub("", kind))} - as_text
            infinite = {at for at in dated if any(_is_infinite(row[at]) for row in rows)}
            if infinite:
                cursor.execute(_write_as_text(sql, types, as_text | infinite), parameters or None)
                texts = cursor.fetchmany(limits.max_rows + 1)
                if any("infinity" in str(row[at]) for row in texts for at in infinite):
                    rows = [
                        [_DAY_END.sub("T", cell) if at in infinite and cell else cell for at, cell in enumerate(row)]
                        for row in texts
                    ]
            longest = limits.max_cell_characters // 2
            rows = [
                tuple(
                    value if at in as_text | infinite else _shorten_float(value, kinds[at], longest)
                    for at, value in enumerate(row)
                )
                for row in rows
            ]
            return build_query_result(columns, rows, limits, time.perf_counter() - started)

        return await self._run_in_thread(work, limits)

    async def close(self) -> None:
        """Close the file once its queries have ended."""
        import duckdb

        self._closed = True
        await self._threads.close()
        connection, self._connection = self._connection, None
        with suppress(duckdb.Error):  # a query that cannot be interrupted uses it: it closes when no longer referenced
            if connection is not None:
                connection.close()

    async def _run_in_thread(self, work: Callable[[Any], T], limits: QueryLimits) -> T:
        import duckdb

        self._check_is_open()
        cursor = self._connection.cursor()

        def run_and_close() -> T:
            try:
                return work(cursor)
            finally:
                cursor.close()

        def interrupt() -> None:
            with suppress(duckdb.ConnectionException):  # the query has ended and closed its cursor
                cursor.interrupt()

        try:
            return await self._threads.run(run_and_close, interrupt, limits.timeout_seconds)
        except (TimeoutError, duckdb.InterruptException):
            raise QueryTimedOut(limits.timeout_seconds) from None
        except (duckdb.Error, OverflowError, MemoryError, UnicodeDecodeError) as error:
            raise translate_engine_error(error, self._path) from error


def connect(path: Path) -> Any:
    """Open a connection that can only read this file."""
    import duckdb

    return duckdb.connect(str(path), read_only=True, config=CONNECTION_CONFIG)


def _shorten_float(value: Any, kind: Any, longest: int) -> Any:
    """Return a number of 32 bits with its own digits, as in 1.1, and not those of the number of 64 bits next to it.

    So are those in lists and structs. A list of more than `longest` items is unchanged: its text is longer than a cell
    may be.
    """
    if value is None or "FLOAT" not in str(kind):
        return value
    if kind.id in ("list", "array"):
        item_kind = kind.children[0][1]
        return value if len(value) > longest else [_shorten_float(item, item_kind, longest) for item in value]
    if kind.id == "struct":
        return {name: _shorten_float(value[name], field_kind, longest) for name, field_kind in kind.children}
    if kind.id != "float":
        return value
    candidates = (float(f"{value:.{digits}g}") for digits in range(6, 10))
    return next((number for number in candidates if ctypes.c_float(number).value == value), value)


def _is_infinite(value: Any) -> bool:
    """Whether a value, or a value within it, may be an infinite date."""
    if isinstance(value, dict):
        return any(map(_is_infinite, (*value, *value.values())))
    if isinstance(value, list | tuple):
        return any(map(_is_infinite, value))
    return isinstance(value, datetime.date) and value in _INFINITE_DATES


def _write_as_text(sql: str, types: Sequence[str], columns: Container[int]) -> str:
    """Wrap `sql`, whose columns have these types, to return those at the positions `columns` as text."""
    names = [f"c{i}" for i in range(1, len(types) + 1)]
    cells = [f"CAST({name} AS VARCHAR)" if at in columns else name for at, name in enumerate(names)]
    return f"SELECT {', '.join(cells)} FROM ({sql.rstrip().rstrip(';')}\n) AS q({', '.join(names)})"  # noqa: S608 - the query itself, in parentheses


async def open_duckdb(path: Path) -> DuckdbDatabase:
    """Open a DuckDB file and read its schema.

    Raises:
        BadInput: The file is locked, damaged or of an unknown version.
    """
    import duckdb

    try:
        return await asyncio.to_thread(_open, path)
    except duckdb.Error as error:
        message = format_engine_message(error, path)
        if "different configuration" in message:
            raise BadInput(
                f"`{path}` is open in this process with other settings. Close that connection first."
            ) from error
        if "lock" in message.casefold():
            raise BadInput(f"`{path}` is locked: another program has it open for writing. Close it first.") from error
        raise BadInput(f"This version of DuckDB cannot read `{path}`: {message}") from error


def _open(path: Path) -> DuckdbDatabase:
    connection = connect(path)
    try:
        schema = read_schema(connection)
        code = read_stored_code(connection, schema)
        tables = tuple(
            table
            for table in schema.tables
            if (fold_name(table.schema or schema.default_schema), fold_name(table.name)) not in code.untrusted_views
        )
        macros = frozenset(name.casefold() for name in code.trusted_macros)
        return DuckdbDatabase(path, connection, replace(schema, tables=tables, allowed_functions=macros), code)
    except BaseException:
        connection.close()
        raise
