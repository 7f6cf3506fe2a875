"""PostgreSQL databases, opened read-only.

A read-only role, a read-only transaction and a named cursor protect them.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from opposable.domain.errors import BadInput, ToolRefused, ToolUnavailable
from opposable.sql.database import DEFAULT_LIMITS, OpenedDatabase, QueryLimits, QueryResult
from opposable.sql.errors import QueryTimedOut, translate_engine_error
from opposable.sql.function_allowlist import Dialect
from opposable.sql.messages import database_unreachable
from opposable.sql.postgres.cell_truncation import (
    TruncationKind,
    decode_cell,
    get_truncation_kind,
    wrap_with_truncation,
)
from opposable.sql.postgres.privileges import ReadAccess, read_access
from opposable.sql.postgres.schema_reader import read_schema
from opposable.sql.postgres.temporal_loaders import register_temporal_loaders
from opposable.sql.postgres.untrusted_code import UntrustedCode, find_untrusted_code
from opposable.sql.result_rows import build_query_result
from opposable.sql.schema import DatabaseSchema, to_one_line
from opposable.sql.statement_guard import Query, is_with_name, parse_safe_query, refuse_unlisted_tables

T = TypeVar("T")

_MAX_CONNECTIONS = 4
_CONNECT_SECONDS = 10
_OPEN_SECONDS = 60.0
_ROLLBACK_SECONDS = 2.0
"""Time to end a transaction before its connection is closed."""
_MAX_FETCHED_BYTES = 32 * 1024 * 1024
"""Size limit of one result, as a rough count of characters."""
_FIRST_FETCH_ROWS = 50
"""Rows of the first fetch, before the row size is known."""
URL_FORM = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
_INVALID_URL = f"The database URL is not valid. Use {URL_FORM}, with special characters percent-encoded."


class PostgresDatabase(OpenedDatabase):
    """A `Database` over one PostgreSQL database.

    Each query has its own connection and transaction. `access` holds the role and privileges that it is read with.
    """

    dialect: Dialect = "postgres"

    def __init__(self, url: str, name: str, identity: str, access: ReadAccess, schema: DatabaseSchema) -> None:
        super().__init__(name, identity, schema)
        self.access = access
        self._url = url
        self._idle: list[Any] = []
        self._semaphore = asyncio.Semaphore(_MAX_CONNECTIONS)

    async def explain(
        self, sql: str, parameters: dict[str, Any] | None = None, limits: QueryLimits = DEFAULT_LIMITS
    ) -> None:
        """Bind and plan `sql`."""
        query = parse_safe_query(sql, "postgres", self._schema)
        refuse_unlisted_tables(query, self._schema)
        values = _order_parameters(parameters)

        async def work(connection: Any) -> None:
            await _execute(connection, f"EXPLAIN {query.inner_sql}", values)

        await self._run_in_transaction(work, limits)

    async def run(
        self, sql: str, parameters: dict[str, Any] | None = None, limits: QueryLimits = DEFAULT_LIMITS
    ) -> QueryResult:
        """Run `sql`; see `Database.run`."""
        query = parse_safe_query(sql, "postgres", self._schema)
        refuse_unlisted_tables(query, self._schema)
        if query.inner_sql != query.sql:
            _refuse_views(query, self._schema)
        values = _order_parameters(parameters)
        return await self._run_in_transaction(lambda connection: _run_query(connection, query, values, limits), limits)

    async def close(self) -> None:
        """Close every connection once its query has ended."""
        self._closed = True
        for _ in range(_MAX_CONNECTIONS):
            await self._semaphore.acquire()
        while self._idle:
            await self._idle.pop().close()
        for _ in range(_MAX_CONNECTIONS):
            self._semaphore.release()

    async def _run_in_transaction(self, work: Callable[[Any], Awaitable[T]], limits: QueryLimits) -> T:
        import psycopg

        self._check_is_open()
        begin_sql = self.access.build_begin_sql(limits.timeout_seconds)
        async with self._semaphore:
            connection = await self._acquire_connection()
            try:
                async with asyncio.timeout(limits.timeout_seconds + 0.2):
                    try:
                        await connection.execute(begin_sql)
                    except psycopg.OperationalError:
                        if not connection.closed:
                            raise
                        connection = await self._reconnect()
                        await connection.execute(begin_sql)
                    return await work(connection)
            except (TimeoutError, psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable):
                raise QueryTimedOut(limits.timeout_seconds) from None
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if connection.closed:
                    raise ToolUnavailable(database_unreachable(self.name)) from error
                raise _translate_error(error) from error
            except (psycopg.Error, OverflowError, ValueError) as error:
                raise _translate_error(error) from error
            finally:
                await asyncio.shield(self._release_connection(connection))

    async def _acquire_connection(self) -> Any:
        import psycopg

        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
        try:
            return await connect(self._url)
        except psycopg.Error as error:
            raise ToolUnavailable(database_unreachable(self.name)) from error

    async def _reconnect(self) -> Any:
        """Return a new connection after the server closed an idle one, as when it restarts."""
        while self._idle:
            await self._idle.pop().close()
        return await self._acquire_connection()

    async def _release_connection(self, connection: Any) -> None:
        """Roll back the transaction; close the connection where that fails."""
        import psycopg

        with contextlib.suppress(psycopg.Error, TimeoutError):
            async with asyncio.timeout(_ROLLBACK_SECONDS):
                await connection.execute("ROLLBACK")
                self._idle.append(connection)
                return
        await connection.close()


async def connect(url: str) -> Any:
    """Open a connection with explicit transactions only."""
    from psycopg import AsyncConnection

    connection = await AsyncConnection.connect(
        url,
        autocommit=True,
        connect_timeout=_CONNECT_SECONDS,
        application_name="opposable",
        client_encoding="utf8",
    )
    connection.prepare_threshold = None
    register_temporal_loaders(connection)
    return connection


async def open_postgres(url: str) -> PostgresDatabase:
    """Open a PostgreSQL database with the fewest privileges available.

    Raises:
        BadInput: The URL, the password or the database is wrong, or a superuser cannot assume a read-only role.
    """
    try:
        import psycopg
    except ImportError as error:
        raise BadInput('PostgreSQL needs the extra "postgres": pip install "opposable[sql,postgres]".') from error
    plain_url = re.sub(r"^[a-zA-Z]+(\+\w+)?:", "postgresql:", url.strip())
    try:
        connection = await connect(plain_url)
    except psycopg.Error as error:
        message = _format_connect_error(error, plain_url)
        raise BadInput(message) from (None if message == _INVALID_URL else error)
    try:
        access = await read_access(connection)
        if access.is_superuser and not access.assumed_role:
            raise BadInput("This superuser cannot assume a read-only role. Use a role that has only SELECT.")
        untrusted = await find_untrusted_code(connection) if access.can_access_files else UntrustedCode()
        access = replace(
            access, search_path=tuple(name for name in access.search_path if name not in untrusted.schemas)
        )
        await connection.execute(access.build_begin_sql(_OPEN_SECONDS))
        schema = await read_schema(connection, access.default_schema, untrusted.relations)
        info = connection.info
        identity = f"postgresql://{info.user}@{info.host}:{info.port}/{info.dbname}"
        return PostgresDatabase(plain_url, info.dbname, identity, access, schema)
    except psycopg.Error as error:
        raise BadInput(f"The database's tables cannot be listed: {to_one_line(str(error))}.") from error
    finally:
        await connection.close()


def _refuse_views(query: Query, schema: DatabaseSchema) -> None:
    """Refuse the plan of a view: it names tables that may not be readable, and counts their rows."""
    from sqlglot import exp

    for table in query.tree.find_all(exp.Table):
        listed = schema.find_table_by_identifier(table.name, table.db)
        if listed is not None and listed.kind == "view" and not is_with_name(table):
            raise ToolRefused(
                f"EXPLAIN is not allowed for views: the plan would show the tables of {listed.full_name}."
            )


async def _run_query(connection: Any, query: Query, values: list[Any] | None, limits: QueryLimits) -> QueryResult:
    from psycopg import AsyncRawServerCursor

    started = time.perf_counter()
    if query.inner_sql != query.sql:  # a server-side cursor takes no EXPLAIN
        cursor = await _execute(connection, query.sql, values)
        columns = tuple(column.name for column in cursor.description or ())
        return build_query_result(columns, await cursor.fetchall(), limits, time.perf_counter() - started)
    async with AsyncRawServerCursor(connection, "opposable", scrollable=False) as cursor:
        await cursor.execute(query.sql, values)
        columns = tuple(column.name for column in cursor.description or ())
        kinds = [get_truncation_kind(column) for column in cursor.description or ()]
        if all(kind == "plain" for kind in kinds):
            rows, is_complete = await _fetch_rows(cursor, limits)
            return _to_query_result(columns, kinds, rows, is_complete, limits, started)
    async with AsyncRawServerCursor(connection, "opposable", scrollable=False) as cursor:
        await cursor.execute(wrap_with_truncation(query.sql, kinds, limits.max_cell_characters), values)
        rows, is_complete = await _fetch_rows(cursor, limits)
        return _to_query_result(columns, kinds, rows, is_complete, limits, started)


async def _execute(connection: Any, sql: str, values: list[Any] | None) -> Any:
    """Execute SQL by the extended protocol, which a binary result requires: it accepts a single statement."""
    from psycopg import AsyncRawCursor

    return await AsyncRawCursor(connection).execute(sql, values, binary=True)


async def _fetch_rows(cursor: Any, limits: QueryLimits) -> tuple[list[Any], bool]:
    """Fetch up to one row more than the limit.

    Return the rows, and whether the size limit allowed all of them.
    """
    rows: list[Any] = []
    size = 0
    batch_rows = _FIRST_FETCH_ROWS
    while len(rows) <= limits.max_rows:
        batch = await cursor.fetchmany(min(batch_rows, limits.max_rows + 1 - len(rows)))
        rows += batch
        size += sum(len(value) if isinstance(value, str) else 8 for row in batch for value in row)
        if len(batch) < batch_rows:
            return rows, True
        if size > _MAX_FETCHED_BYTES:
            return rows, False
        batch_rows = max(1, min(10_000, (_MAX_FETCHED_BYTES - size) * len(rows) // max(size, 1)))
    return rows, True


def _to_query_result(
    columns: tuple[str, ...],
    kinds: list[TruncationKind],
    fetched_rows: list[Any],
    is_complete: bool,
    limits: QueryLimits,
    started: float,
) -> QueryResult:
    characters = limits.max_cell_characters
    rows = [
        tuple(decode_cell(value, kind, characters) for value, kind in zip(row, kinds, strict=True))
        for row in fetched_rows
    ]
    result = build_query_result(columns, rows, limits, time.perf_counter() - started)
    return result if is_complete else replace(result, truncated=True)


def _order_parameters(parameters: dict[str, Any] | None) -> list[Any] | None:
    """Return the values of `$1`, `$2`, … in their order."""
    return [parameters[key] for key in sorted(parameters, key=int)] if parameters else None


def _translate_error(error: Exception) -> Exception:
    """Return a tool error with the server's message and hint."""
    import psycopg

    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        hint = f" ({error.diag.message_hint})" if error.diag.message_hint else ""
        return translate_engine_error(ValueError(f"{error.diag.message_primary}{hint}"), None)
    return translate_engine_error(error, None)


def _format_connect_error(error: Exception, url: str) -> str:
    """Return why a connection failed, without the password."""
    try:
        parts = urlsplit(url)
        host, password = parts.hostname or "", parts.password or ""
    except ValueError:
        return _INVALID_URL
    if parts.netloc.count("@") > 1:  # the driver takes the end of the password as the host, and names it
        return _INVALID_URL
    reason = to_one_line(str(error), 300) or type(error).__name__
    if "invalid" in reason and ("URI" in reason or "percent" in reason or "connection option" in reason):
        return _INVALID_URL
    reason = reason.replace(password, "…") if password else reason
    end = "" if reason.endswith((".", "?")) else "."
    return f"Cannot connect to the PostgreSQL server{f' at {host}' if host else ''}: {reason}{end}"
