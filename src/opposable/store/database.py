"""Database connections for the store, with driver errors translated to `StoreError`."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiosqlite
from sqlalchemy import URL, Connection, Engine, Row, Select, Table, UpdateBase, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, DisconnectionError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from opposable.domain.errors import BadInput, StoreError, StoreUnavailable
from opposable.store.column_types import from_json, to_json
from opposable.store.database_urls import describe_database

CONNECT_TIMEOUT_SECONDS = 10
"""Seconds to wait for a connection, or on SQLite for another writer."""

INLINE_READ_TIMEOUT_SECONDS = 0.5
"""Seconds an inline read waits for a lock on SQLite. The event loop is blocked meanwhile."""

_ENGINE_OPTIONS: dict[str, Any] = {
    "pool_timeout": CONNECT_TIMEOUT_SECONDS,
    "json_serializer": to_json,
    "json_deserializer": from_json,
    "hide_parameters": True,  # error messages must not contain user data
}
_SQLITE_ADVICE = {
    sqlite3.SQLITE_READONLY: "Make the file and its folder writable, or set OPPOSABLE_HOME to another folder.",
    sqlite3.SQLITE_CANTOPEN: "Make sure that it is a file, not a folder, and that its folder is writable.",
    sqlite3.SQLITE_FULL: "Free space on its disk.",
    sqlite3.SQLITE_CORRUPT: "Restore it from a backup, or move it away to begin with an empty store.",
    sqlite3.SQLITE_NOTADB: "Restore it from a backup, or move it away to begin with an empty store.",
}
InsertOnConflict = postgresql.Insert | sqlite.Insert


class StoreDatabase:
    """A SQLite or PostgreSQL database with connections for reads and writes.

    On SQLite, the writers of one process wait for a lock of this class. SQLite's own lock is not fair.
    """

    def __init__(self, url: URL) -> None:
        self.url = url
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self.engine = _create_sqlite_engine(url) if self.is_sqlite else _create_postgresql_engine(url)
        self._inline_engine = _create_inline_engine(url) if self.is_sqlite else None
        self._write_engine = self.engine.execution_options(writing=True)
        self._write_lock = asyncio.Lock()

    @asynccontextmanager
    async def begin_read(self) -> AsyncIterator[AsyncConnection]:
        """Open a connection that sees one snapshot of the database.

        Raises:
            StoreError: The database is unavailable or rejected the statement.
            BadInput: A value cannot be stored, or the URL has an unknown option.
        """
        with self._translate_errors():
            async with self._check_out(self.engine.connect()) as connection:
                yield connection

    async def fetch_inline(self, *queries: Select[Any]) -> list[Sequence[Row[Any]]]:
        """Return the rows of short indexed queries, read from one snapshot.

        On SQLite the queries run in the event loop's own thread. Handing each step to a worker thread
        costs ten times as much as the query itself.

        Raises:
            StoreError, BadInput: As `begin_read`.
        """
        if self._inline_engine is None:
            async with self.begin_read() as connection:
                return [(await connection.execute(query)).all() for query in queries]
        with self._translate_errors(), self._inline_engine.connect() as inline_connection:
            return [inline_connection.execute(query).all() for query in queries]

    async def fetch(self, query: Select[Any]) -> Sequence[Any]:
        """Return the rows of a query, whose columns are attributes.

        Raises:
            StoreError, BadInput: As `begin_read`.
        """
        async with self.begin_read() as connection:
            rows: Sequence[Any] = (await connection.execute(query)).all()
            return rows

    @asynccontextmanager
    async def begin_write(self) -> AsyncIterator[AsyncConnection]:
        """Open a connection in a transaction that commits unless the block raises.

        Raises:
            StoreError, BadInput: As `begin_read`.
            IntegrityError: A constraint failed. The repository translates it.
        """
        with self._translate_errors():
            if not self.is_sqlite:
                async with self._check_out(self.engine.begin()) as connection:
                    yield connection
                return
            async with self._write_lock, self._write_engine.begin() as connection:
                yield connection

    async def execute(self, statement: UpdateBase) -> int:
        """Run a statement in a transaction of its own. Return the number of rows that it changed.

        Raises:
            StoreError, BadInput, IntegrityError: As `begin_write`.
        """
        async with self.begin_write() as connection:
            return (await connection.execute(statement)).rowcount

    async def use_schema(self, schema: str) -> None:
        """Use this PostgreSQL schema for all further connections."""
        await self.engine.dispose()
        self.engine = _create_postgresql_engine(self.url)
        event.listen(self.engine.sync_engine, "connect", partial(_set_search_path, schema))

    def build_insert(self, table: Table) -> InsertOnConflict:
        """Return an INSERT statement that supports ON CONFLICT."""
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

    async def ping(self) -> None:
        """Check that the database answers.

        Raises:
            StoreUnavailable: It does not.
        """
        async with self.begin_read() as connection:
            await connection.execute(text("SELECT 1"))

    async def close(self) -> None:
        """Close all connections."""
        await _complete(self.engine.dispose())
        if self._inline_engine is not None:
            self._inline_engine.dispose()

    @asynccontextmanager
    async def _check_out(
        self, connecting: AbstractAsyncContextManager[AsyncConnection]
    ) -> AsyncIterator[AsyncConnection]:
        """Enter a connection. A server that hangs accepts connections, and does not answer the ping of an open one."""
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(None if self.is_sqlite else CONNECT_TIMEOUT_SECONDS):
                    connection = await stack.enter_async_context(connecting)
            except TimeoutError:
                raise TimeoutError(f"no answer within {CONNECT_TIMEOUT_SECONDS} s") from None
            yield connection

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (OperationalError, InterfaceError, PoolTimeout, OSError) as error:
            problem = "cannot be used" if self.is_sqlite else "does not answer"
            raise StoreUnavailable(f"{self._describe()} {problem}: {describe_driver_error(error)}") from error
        except DataError as error:
            raise BadInput(f"The store cannot save this value: {describe_driver_error(error)}") from error
        except IntegrityError:
            raise  # the repository knows which constraint failed
        except DBAPIError as error:
            if error.connection_invalidated:
                raise StoreUnavailable(
                    f"{self._describe()} closed the connection: {describe_driver_error(error)}"
                ) from error
            if self.is_sqlite and (error.statement is None or _find_sqlite_advice(error)):
                raise StoreUnavailable(f"{self._describe()} cannot be used: {describe_driver_error(error)}") from error
            if error.statement is None:  # no statement ran yet: the URL has an unknown option
                raise BadInput(
                    f"The URL of the store ({describe_database(self.url)}) is not valid: {describe_driver_error(error)}"
                ) from error
            raise StoreError(f"{self._describe()} rejected a statement: {describe_driver_error(error)}") from error

    def _describe(self) -> str:
        return f"The store ({describe_database(self.url)})"


class Repository:
    """Base of the repositories of one database."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database


def describe_driver_error(error: Exception) -> str:
    """Return the driver's message without the statement and its values, and what to do about it if that is known."""
    message = str(error.orig if isinstance(error, DBAPIError) else error).strip()
    first_line = message.splitlines()[0] if message else type(error).__name__
    return ". ".join(filter(None, (first_line, _find_sqlite_advice(error))))


def _find_sqlite_advice(error: Exception) -> str:
    """Return what the owner of a SQLite file can do about an error, or ""."""
    code: int = getattr(getattr(error, "orig", error), "sqlite_errorcode", 0)
    return _SQLITE_ADVICE.get(code & 0xFF, "")


def _create_postgresql_engine(url: URL) -> AsyncEngine:
    return create_async_engine(
        url,
        pool_pre_ping=True,  # a restarted server costs no request
        pool_size=10,
        max_overflow=10,
        connect_args={
            "connect_timeout": CONNECT_TIMEOUT_SECONDS,
            "application_name": "opposable",
            # a server that vanished without closing its connections is noticed: libpq's own limits are hours
            "keepalives_idle": CONNECT_TIMEOUT_SECONDS,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 1000 * CONNECT_TIMEOUT_SECONDS,
        },
        **_ENGINE_OPTIONS,
    )


def _create_sqlite_engine(url: URL) -> AsyncEngine:
    file = Path(url.database or "").absolute()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)  # only the owner may read user data; an existing file keeps its mode
    except OSError as error:
        problem = f"The store cannot create `{url.database}`: {error.strerror}"
        raise BadInput(f"{problem}. Set OPPOSABLE_HOME or OPPOSABLE_DATABASE_URL to another path.") from error
    engine = create_async_engine(
        url,
        pool_size=5,
        max_overflow=5,
        connect_args={"timeout": CONNECT_TIMEOUT_SECONDS, "async_creator_fn": _open_sqlite_connection},
        **_ENGINE_OPTIONS,
    )
    event.listen(engine.sync_engine, "connect", _set_pragmas)
    event.listen(engine.sync_engine, "begin", _begin_transaction)
    _reopen_replaced_file(engine.sync_engine, file)
    return engine


class _SqliteConnection(aiosqlite.Connection):
    """A connection that can be closed and stopped at the same time, as cancellations of both kinds do."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connect, iter_chunk_size=64)
        self._thread.daemon = True  # or a connection that is never closed delays the end of the process

    def stop(self) -> asyncio.Future[Any] | None:
        """Stop the thread. A second request would never be answered."""
        return super().stop() if self._running else None

    def wait(self) -> None:
        """Wait for the end of the stopped thread: it reports to the event loop, which must not be closed before."""
        self._thread.join()


async def _open_sqlite_connection(*args: Any, **options: Any) -> _SqliteConnection:
    connection = _SqliteConnection(partial(sqlite3.connect, *args, **options))
    try:
        await _complete(connection)
    except BaseException:
        await connection.close()
        connection.wait()
        raise
    return connection


async def _complete(operation: Awaitable[Any]) -> None:
    """Wait for an operation, also if this is cancelled."""
    task = asyncio.ensure_future(operation)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def _create_inline_engine(url: URL) -> Engine:
    """Create a read-only synchronous engine for a file that `_create_sqlite_engine` has prepared."""
    engine = create_engine(
        url.set(drivername="sqlite+pysqlite"),
        pool_size=1,
        max_overflow=5,
        connect_args={"timeout": INLINE_READ_TIMEOUT_SECONDS},
        **_ENGINE_OPTIONS,
    )
    event.listen(engine, "connect", _set_read_only)
    event.listen(engine, "begin", _begin_transaction)
    _reopen_replaced_file(engine, Path(url.database or "").absolute())
    return engine


def _reopen_replaced_file(engine: Engine, file: Path) -> None:
    """Let no connection use a file that was deleted or replaced: what it writes there is lost."""

    def get_file_id() -> tuple[int, int]:
        try:
            status = file.stat()
        except FileNotFoundError:  # SQLite would create an empty file
            problem = "the file was deleted. Restore it, or restart this program to begin with an empty store"
            raise sqlite3.OperationalError(problem) from None
        return status.st_dev, status.st_ino

    def require_file(*_: object) -> None:
        get_file_id()

    def remember_file(connection: Any, record: Any) -> None:
        record.info["file_id"] = get_file_id()

    def check_file(connection: Any, record: Any, proxy: Any) -> None:
        if record.info["file_id"] != get_file_id():
            raise DisconnectionError("The file was replaced.")

    event.listen(engine, "do_connect", require_file)
    event.listen(engine, "connect", remember_file)
    event.listen(engine, "checkout", check_file)


def _set_search_path(schema: str, connection: Any, record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute(f'SET search_path TO "{schema}"')
    cursor.close()
    connection.commit()  # or the pool's rollback resets the path


def _set_pragmas(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # `_begin_transaction` issues BEGIN
    cursor = connection.cursor()
    for pragma in ("foreign_keys = ON", "synchronous = NORMAL", "temp_store = MEMORY"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _set_read_only(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # `_begin_transaction` issues BEGIN
    connection.execute("PRAGMA query_only = ON").close()


def _begin_transaction(connection: Connection) -> None:
    # SQLite cannot upgrade a read transaction while another writer is active: writers lock at once
    is_writing = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing else "BEGIN")
