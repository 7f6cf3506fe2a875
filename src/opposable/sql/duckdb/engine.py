"""DuckDB files, read-only by the engine's own means: a locked configuration, and a look at DuckDB's own parse tree."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from opposable.domain.errors import BadInput, ToolUnavailable
from opposable.sql.database import Limits, Rows, file_version
from opposable.sql.duckdb.options import BOUNDED
from opposable.sql.duckdb.parse_tree_guard import refuse_foreign
from opposable.sql.duckdb.schema_reader import quoted_path, read_schema
from opposable.sql.duckdb.untrusted_views import Foreign, read_foreign
from opposable.sql.errors import QueryTimedOut, engine_error, engine_sentence
from opposable.sql.function_allowlist import Dialect
from opposable.sql.interruptible_threads import interruptible
from opposable.sql.result_rows import rows_of
from opposable.sql.schema import Schema, Table, folded_name, quoted

T = TypeVar("T")

_THREADS = 4
_SAMPLED = 1_000
"""Rows looked at for a column's sample values."""
CONFIG: dict[str, str | bool | int | float | list[str]] = {
    **BOUNDED,
    "enable_external_access": "false",
    "lock_configuration": "true",
}
"""What makes a connection safe: `read_only` alone still reads and writes other files."""


class DuckdbFile:
    """A `Database` over one DuckDB file; each query has a cursor, and so a transaction, of its own."""

    dialect: Dialect = "duckdb"

    def __init__(self, path: Path, connection: Any, schema: Schema, foreign: Foreign) -> None:
        self.name = path.name
        self.identity = str(path.resolve())
        self._path = path
        self._connection = connection
        self._schema = schema
        self._foreign = foreign
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="duckdb")
        self._closed = False

    async def schema(self) -> Schema:
        """Its tables and views."""
        return self._schema

    async def version(self) -> str:
        """The file's size and time."""
        return await asyncio.to_thread(file_version, self._path)

    async def explain(self, sql: str, parameters: dict[str, Any] | None = None, limits: Limits | None = None) -> None:
        """Lets DuckDB bind and plan `sql`."""

        def work(cursor: Any) -> None:
            refuse_foreign(cursor, sql, self._foreign.macros, self._foreign.views)
            cursor.execute(f"EXPLAIN {sql}", parameters or None).fetchall()

        await self._work(work, limits or Limits())

    async def run(self, sql: str, parameters: dict[str, Any] | None = None, limits: Limits | None = None) -> Rows:
        """Runs `sql`; see `Database.run`."""
        bounds = limits or Limits()

        def work(cursor: Any) -> Rows:
            started = time.perf_counter()
            refuse_foreign(cursor, sql, self._foreign.macros, self._foreign.views)
            cursor.execute(sql, parameters or None)
            columns = tuple(str(column[0]) for column in cursor.description or ())
            found = cursor.fetchmany(bounds.rows + 1)
            return rows_of(columns, found, bounds, time.perf_counter() - started)

        return await self._work(work, bounds)

    async def samples(self, table: str, values: int = 3) -> dict[str, list[Any]]:
        """Different values from the first rows of a table."""
        found = self._schema.find_table(table)
        if found is None:
            return {}
        return await self._work(lambda cursor: _samples(cursor, found, values), Limits())

    async def close(self) -> None:
        """Closes the file once its queries have ended."""
        self._closed = True
        await asyncio.to_thread(self._pool.shutdown, True, cancel_futures=True)
        self._connection.close()

    async def _work(self, work: Callable[[Any], T], limits: Limits) -> T:
        import duckdb

        if self._closed:
            raise ToolUnavailable(f"The database {self.name} is closed.")
        cursor = self._connection.cursor()

        def guarded() -> T:
            try:
                return work(cursor)
            finally:
                cursor.close()

        def interrupt() -> None:
            with suppress(duckdb.ConnectionException):  # the work ended meanwhile and closed its cursor
                cursor.interrupt()

        try:
            return await interruptible(self._pool, guarded, interrupt, limits.seconds)
        except (TimeoutError, duckdb.InterruptException):
            raise QueryTimedOut(limits.seconds) from None
        except (duckdb.Error, OverflowError, MemoryError, UnicodeDecodeError) as error:
            raise engine_error(error, self._path) from error


def connect(path: Path) -> Any:
    """A connection that can only read this one file."""
    import duckdb

    return duckdb.connect(str(path), read_only=True, config=CONFIG)


async def open_duckdb(path: Path) -> DuckdbFile:
    """Opens a DuckDB file and reads its schema.

    Raises:
        BadInput: it is locked, broken or cannot be read.
    """
    import duckdb

    def work() -> DuckdbFile:
        connection = connect(path)
        whole = read_schema(connection)
        foreign = read_foreign(connection, whole)
        own = [
            table
            for table in whole.tables
            if (folded_name(table.schema or whole.default), folded_name(table.name)) not in foreign.views
        ]
        return DuckdbFile(path, connection, replace(whole, tables=tuple(own)), foreign)

    try:
        return await asyncio.to_thread(work)
    except duckdb.Error as error:
        told = engine_sentence(error, path)
        if "lock" in told.casefold() or "different configuration" in told:
            raise BadInput(f"{path} is locked: another program has it open for writing; close that first.") from error
        raise BadInput(f"{path} is no DuckDB file this version can read: {told}") from error


def _samples(cursor: Any, table: Table, values: int) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for column in table.columns:
        name = quoted(column.name)
        source = f"SELECT {name} AS v FROM {quoted_path(table)} LIMIT {_SAMPLED}"  # noqa: S608 - names in quotes
        sql = f"SELECT DISTINCT v FROM ({source}) WHERE v IS NOT NULL ORDER BY 1 LIMIT {int(values)}"  # noqa: S608 - made above
        rows = rows_of(("v",), cursor.execute(sql).fetchall(), Limits(rows=values, cell_characters=80), 0.0)
        found[column.name] = [row[0] for row in rows.rows]
    return found
