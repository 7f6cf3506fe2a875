"""SQLite files, read-only by the engine's own means: URI mode, authorizer, limits, progress handler."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from opposable.domain.errors import BadInput, ToolUnavailable
from opposable.sql.database import Limits, Rows, file_version
from opposable.sql.errors import QueryTimedOut, engine_error, engine_sentence
from opposable.sql.function_allowlist import SQLITE_FUNCTIONS, SQLITE_TABLE_FUNCTIONS, Dialect
from opposable.sql.interruptible_threads import interruptible
from opposable.sql.result_rows import rows_of
from opposable.sql.schema import Schema, Table, folded_name
from opposable.sql.sqlite.schema_reader import quoted_name, read_schema

T = TypeVar("T")

_THREADS = 4
_STEPS = 1_000
"""Virtual machine steps between two looks at the clock: some 50 µs."""
_SAMPLED = 1_000
"""Rows looked at for a column's sample values."""
_VALUE_BYTES = 1_000_000
"""The longest text or blob: SQLite cannot be stopped within one function, and some take the square of this."""
_HEAP_BYTES = 512 * 1024 * 1024
"""SQLite holds all its connections in this process to this together."""
_OPERATORS = frozenset({"->", "->>"})
_ACTIONS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE})
_LIMITS = {
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LENGTH: _VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 200_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 500,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 200,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}


class SqliteFile:
    """A `Database` over one SQLite file; each query has a connection to itself."""

    dialect: Dialect = "sqlite"

    def __init__(self, path: Path, schema: Schema) -> None:
        self.name = path.name
        self.identity = str(path.resolve())
        self._path = path
        self._schema = schema
        self._readable = frozenset(folded_name(t.name) for t in schema.tables) | _shadow_tables(path)
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="sqlite")
        self._idle: list[sqlite3.Connection] = []
        self._closed = False

    async def schema(self) -> Schema:
        """Its tables and views."""
        return self._schema

    async def version(self) -> str:
        """The file's size and time."""
        return await asyncio.to_thread(file_version, self._path)

    async def explain(self, sql: str, parameters: dict[str, Any] | None = None, limits: Limits | None = None) -> None:
        """Lets SQLite compile `sql`."""
        await self._work(
            lambda c: c.execute(f"EXPLAIN QUERY PLAN {sql}", parameters or {}).fetchall(), limits or Limits()
        )

    async def run(self, sql: str, parameters: dict[str, Any] | None = None, limits: Limits | None = None) -> Rows:
        """Runs `sql`; see `Database.run`."""
        bounds = limits or Limits()

        def work(connection: sqlite3.Connection) -> Rows:
            started = time.perf_counter()
            cursor = connection.execute(sql, parameters or {})
            try:
                columns = tuple(column[0] for column in cursor.description or ())
                found = cursor.fetchmany(bounds.rows + 1)
            finally:
                cursor.close()
            return rows_of(columns, found, bounds, time.perf_counter() - started)

        return await self._work(work, bounds)

    async def samples(self, table: str, values: int = 3) -> dict[str, list[Any]]:
        """Different values from the first rows of a table."""
        found = self._schema.find_table(table)
        if found is None:
            return {}
        return await self._work(lambda c: _samples(c, found, values), Limits())

    async def close(self) -> None:
        """Closes every connection once its query has ended."""
        self._closed = True
        await asyncio.to_thread(self._pool.shutdown, True, cancel_futures=True)
        while self._idle:
            self._idle.pop().close()

    async def _work(self, work: Callable[[sqlite3.Connection], T], limits: Limits) -> T:
        if self._closed:
            raise ToolUnavailable(f"The database {self.name} is closed.")
        running: list[sqlite3.Connection] = []
        end = time.monotonic() + limits.seconds

        def guarded() -> T:
            connection = self._take()
            running.append(connection)
            connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
            try:
                return work(connection)
            finally:
                running.clear()
                self._idle.append(connection)

        def interrupt() -> None:
            for connection in tuple(running):
                connection.interrupt()

        try:
            return await interruptible(self._pool, guarded, interrupt, limits.seconds + 0.2)
        except TimeoutError:
            raise QueryTimedOut(limits.seconds) from None
        except sqlite3.Error as error:
            if time.monotonic() >= end:
                raise QueryTimedOut(limits.seconds) from None
            raise _translated(error, self._path) from error
        except (OverflowError, MemoryError) as error:
            raise engine_error(error, self._path) from error

    def _take(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        connection = connect(self._path)
        for limit, value in _LIMITS.items():
            connection.setlimit(limit, value)
        connection.set_authorizer(self._authorize)
        return connection

    def _authorize(self, action: int, one: str | None, two: str | None, _base: str | None, _within: str | None) -> int:
        """SQLite's question before it compiles anything: only reading the known tables is allowed."""
        allowed = False
        if action in _ACTIONS:
            allowed = True
        elif action == sqlite3.SQLITE_READ:
            allowed = self._may_read(folded_name(one or ""), two or "")
        elif action == sqlite3.SQLITE_FUNCTION:
            allowed = folded_name(two or "") in SQLITE_FUNCTIONS | _OPERATORS
        elif action == sqlite3.SQLITE_UPDATE:
            # A virtual table (full-text search, json_each) declares its columns so; writing here fails all the same.
            allowed = one == "sqlite_master"
        elif action == sqlite3.SQLITE_PRAGMA:
            allowed = one == "data_version" and two is None
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    def _may_read(self, table: str, column: str) -> bool:
        if table in self._readable or table in SQLITE_TABLE_FUNCTIONS:
            return True
        if table.startswith("sqlite_"):
            return table == "sqlite_master" and column == "ROWID"
        return column == "" and not table.startswith("pragma_")


def connect(path: Path) -> sqlite3.Connection:
    """A read-only connection without the authorizer, for reading the schema."""
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=2.0, isolation_level=None, check_same_thread=False)
    connection.text_factory = _text
    for pragma in ("query_only=1", "trusted_schema=0", "cell_size_check=1", "mmap_size=0"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(f"PRAGMA hard_heap_limit={_HEAP_BYTES}")
    return connection


async def open_sqlite(path: Path) -> SqliteFile:
    """Opens a SQLite file and reads its schema.

    Raises:
        BadInput: it is locked, broken or cannot be read.
    """
    try:
        return SqliteFile(path, await asyncio.to_thread(_read, path))
    except sqlite3.Error as error:
        told = engine_sentence(error, path)
        if "locked" in told or "busy" in told:
            raise BadInput(f"{path} is locked by another program: close that program first.") from error
        raise BadInput(f"{path} is a damaged SQLite file: {told}") from error


def _read(path: Path) -> Schema:
    connection = connect(path)
    try:
        return read_schema(connection)
    finally:
        connection.close()


def _shadow_tables(path: Path) -> frozenset[str]:
    """The tables that virtual tables keep their data in."""
    connection = connect(path)
    try:
        found = connection.execute("SELECT name FROM pragma_table_list WHERE type = 'shadow'").fetchall()
        return frozenset(folded_name(name) for (name,) in found)
    finally:
        connection.close()


def _samples(connection: sqlite3.Connection, table: Table, values: int) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for column in table.columns:
        name = quoted_name(column.name)
        source = f"SELECT {name} AS v FROM {quoted_name(table.name)} LIMIT {_SAMPLED}"  # noqa: S608 - names in quotes
        sql = f"SELECT DISTINCT v FROM ({source}) WHERE v IS NOT NULL AND length(v) <= 200 LIMIT {int(values)}"  # noqa: S608 - made above
        rows = rows_of(("v",), connection.execute(sql).fetchall(), Limits(rows=values, cell_characters=80), 0.0)
        found[column.name] = [row[0] for row in rows.rows]
    return found


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _translated(error: sqlite3.Error, path: Path) -> Exception:
    if "locked" in str(error) or "busy" in str(error) or "unable to open" in str(error):
        return ToolUnavailable(f"The database {path.name} cannot be read now: {engine_sentence(error, path)}")
    return engine_error(error, path)
