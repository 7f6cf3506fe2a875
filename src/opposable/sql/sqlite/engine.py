"""SQLite files as read-only databases.

Read-only URI mode, an authorizer, limits and a progress handler protect them.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from opposable.domain.errors import BadInput, ToolUnavailable
from opposable.sql.database import DEFAULT_LIMITS, OpenedDatabase, QueryLimits, QueryResult
from opposable.sql.described_statements import extract_query
from opposable.sql.errors import QueryTimedOut, format_engine_message, translate_engine_error
from opposable.sql.function_allowlist import SQLITE_FUNCTIONS, SQLITE_TABLE_FUNCTIONS, Dialect
from opposable.sql.interruptible_threads import InterruptibleThreads
from opposable.sql.result_rows import build_query_result
from opposable.sql.schema import DatabaseSchema, fold_name
from opposable.sql.sqlite.schema_reader import read_schema

T = TypeVar("T")

_STEPS_PER_CLOCK_CHECK = 1_000
"""Virtual machine steps between two time checks: about 50 µs."""
_MAX_VALUE_BYTES = 1_000_000
"""Size limit of a text or blob: SQLite cannot interrupt a function, and some take quadratic time."""
_MAX_HEAP_BYTES = 512 * 1024 * 1024
"""Heap limit for all SQLite connections of this process together."""
_OPERATOR_FUNCTIONS = frozenset({"->", "->>"})
_ALLOWED_ACTIONS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE})
_WRITING_ACTIONS = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
_SQLITE_LIMITS = {
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LENGTH: _MAX_VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 200_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 500,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 200,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}


class SqliteDatabase(OpenedDatabase):
    """A `Database` over one SQLite file; each query has its own connection."""

    dialect: Dialect = "sqlite"

    def __init__(self, path: Path, schema: DatabaseSchema) -> None:
        super().__init__(path.name, str(path.resolve()), schema)
        self._path = path
        self._shadow_tables = _read_shadow_tables(path)
        self._readable_tables = frozenset(fold_name(t.name) for t in schema.tables) | self._shadow_tables
        self._threads = InterruptibleThreads("sqlite")
        self._idle: list[sqlite3.Connection] = []

    async def explain(
        self, sql: str, parameters: dict[str, Any] | None = None, limits: QueryLimits = DEFAULT_LIMITS
    ) -> None:
        """Compile `sql`."""
        await self._run_in_thread(
            lambda connection: connection.execute(
                f"EXPLAIN QUERY PLAN {extract_query(sql, 'sqlite')}", _write_dates(parameters)
            ).fetchall(),
            limits,
        )

    async def run(
        self, sql: str, parameters: dict[str, Any] | None = None, limits: QueryLimits = DEFAULT_LIMITS
    ) -> QueryResult:
        """Run `sql`; see `Database.run`."""

        def work(connection: sqlite3.Connection) -> QueryResult:
            started = time.perf_counter()
            cursor = connection.execute(sql, _write_dates(parameters))
            try:
                columns = tuple(column[0] for column in cursor.description or ())
                rows = cursor.fetchmany(limits.max_rows + 1)
            finally:
                cursor.close()
            return build_query_result(columns, rows, limits, time.perf_counter() - started)

        return await self._run_in_thread(work, limits)

    async def close(self) -> None:
        """Close every connection once its query has ended."""
        self._closed = True
        await self._threads.close()
        while self._idle:
            self._idle.pop().close()

    async def _run_in_thread(self, work: Callable[[sqlite3.Connection], T], limits: QueryLimits) -> T:
        self._check_is_open()
        running: list[sqlite3.Connection] = []
        end = time.monotonic() + limits.timeout_seconds

        def run_on_connection() -> T:
            connection = self._acquire_connection()
            running.append(connection)
            connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS_PER_CLOCK_CHECK)
            try:
                return work(connection)
            finally:
                running.clear()
                if self._closed:  # it ended after the others were closed
                    connection.close()
                else:
                    self._idle.append(connection)

        def interrupt() -> None:
            for connection in tuple(running):
                connection.interrupt()

        try:
            return await self._threads.run(run_on_connection, interrupt, limits.timeout_seconds + 0.2)
        except TimeoutError:
            raise QueryTimedOut(limits.timeout_seconds) from None
        except sqlite3.Error as error:
            if time.monotonic() >= end:
                raise QueryTimedOut(limits.timeout_seconds) from None
            raise _translate_error(error, self._path) from error
        except (OverflowError, MemoryError) as error:
            raise translate_engine_error(error, self._path) from error

    def _acquire_connection(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._open_connection()

    def _open_connection(self) -> sqlite3.Connection:
        connection = connect(self._path)
        for limit, value in _SQLITE_LIMITS.items():
            connection.setlimit(limit, value)
        connection.set_authorizer(self._authorize)
        return connection

    def _authorize(
        self, action: int, first: str | None, second: str | None, _base: str | None, _within: str | None
    ) -> int:
        """Answer SQLite's authorizer: only reads of the listed tables are allowed."""
        allowed = False
        if action in _ALLOWED_ACTIONS:
            allowed = True
        elif action == sqlite3.SQLITE_READ:
            allowed = self._can_read(fold_name(first or ""), second or "")
        elif action == sqlite3.SQLITE_FUNCTION:
            allowed = fold_name(second or "") in SQLITE_FUNCTIONS | _OPERATOR_FUNCTIONS
        elif action in _WRITING_ACTIONS:
            # A virtual table (full-text search, R-tree) declares its columns and prepares its own statements this way,
            # which the read-only file does not execute.
            is_declared = action == sqlite3.SQLITE_UPDATE and first == "sqlite_master"
            allowed = is_declared or fold_name(first or "") in self._shadow_tables
        elif action == sqlite3.SQLITE_PRAGMA:
            allowed = first in ("data_version", "page_size") and second is None
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    def _can_read(self, table: str, column: str) -> bool:
        if table in self._readable_tables or table in SQLITE_TABLE_FUNCTIONS:
            return True
        if table.startswith("sqlite_"):
            return table == "sqlite_master" and column == "ROWID"
        return column == "" and not table.startswith("pragma_")


def _write_dates(parameters: dict[str, Any] | None) -> dict[str, Any]:
    """Write dates and times as text: Python 3.12 warns of its own conversion."""
    values = parameters or {}
    return {name: str(value) if isinstance(value, date) else value for name, value in values.items()}


def connect(path: Path) -> sqlite3.Connection:
    """Open a read-only connection without the authorizer, to read the schema."""
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=2.0, isolation_level=None, check_same_thread=False)
    connection.text_factory = _decode_text
    for pragma in ("query_only=1", "trusted_schema=0", "cell_size_check=1", "mmap_size=0"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(f"PRAGMA hard_heap_limit={_MAX_HEAP_BYTES}")
    return connection


async def open_sqlite(path: Path) -> SqliteDatabase:
    """Open a SQLite file and read its schema.

    Raises:
        BadInput: The file is locked, damaged or cannot be read.
    """
    try:
        return SqliteDatabase(path, await asyncio.to_thread(_load_schema, path))
    except sqlite3.Error as error:
        message = format_engine_message(error, path)
        if "locked" in message or "busy" in message:
            raise BadInput(f"`{path}` is locked by another program. Close that program first.") from error
        raise BadInput(f"SQLite cannot read `{path}`; the file may be damaged: {message}") from error


def _load_schema(path: Path) -> DatabaseSchema:
    connection = connect(path)
    try:
        return read_schema(connection)
    finally:
        connection.close()


def _read_shadow_tables(path: Path) -> frozenset[str]:
    """Return the tables in which virtual tables store their data."""
    connection = connect(path)
    try:
        rows = connection.execute("SELECT name FROM pragma_table_list WHERE type = 'shadow'").fetchall()
        return frozenset(fold_name(name) for (name,) in rows)
    finally:
        connection.close()


def _decode_text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _translate_error(error: sqlite3.Error, path: Path) -> Exception:
    if "locked" in str(error) or "busy" in str(error) or "unable to open" in str(error):
        return ToolUnavailable(f"The database {path.name} cannot be read now: {format_engine_message(error, path)}")
    return translate_engine_error(error, path)
