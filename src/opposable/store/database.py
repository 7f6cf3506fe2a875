"""One database: connections for reading and for writing, and its errors in our words."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Table, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from opposable.domain.errors import BadInput, StoreError, StoreUnavailable
from opposable.store.column_types import from_json, to_json
from opposable.store.database_urls import describe_database

CONNECT_TIMEOUT_SECONDS = 10
"""Seconds to wait for a connection, or on SQLite for another writer."""

INLINE_READ_TIMEOUT_SECONDS = 0.5
"""Seconds for which a look may wait for a lock, which readers hardly ever have to: the whole loop waits with it."""

InsertOnConflict = postgresql.Insert | sqlite.Insert


class StoreDatabase:
    """An engine and its two ways in. On SQLite writers of one process queue up here, so that none starves."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self.engine = _create_sqlite_engine(url) if self.is_sqlite else _create_postgresql_engine(url)
        self._inline_engine = _create_inline_engine(url) if self.is_sqlite else self.engine
        self._write_engine = self.engine.execution_options(writing=True)
        self._write_lock = asyncio.Lock()

    @asynccontextmanager
    async def begin_read(self) -> AsyncIterator[AsyncConnection]:
        """A connection that sees one state of the database. Raises: `StoreError`, `BadInput`."""
        with self._translate_errors():
            async with self.engine.connect() as connection:
                yield connection

    @asynccontextmanager
    async def begin_inline_read(self) -> AsyncIterator[AsyncConnection]:
        """As `reading`, for a few rows found by an index.

        On SQLite that is done at once, in the loop: to hand each step to a thread and back costs ten times as much.
        """
        if not self.is_sqlite:
            async with self.begin_read() as connection:
                yield connection
            return
        with self._translate_errors():
            connection = await self._inline_engine.connect().start()
            try:
                yield connection
            finally:  # not `async with`, which closes in a task of its own: here is nothing to wait for
                await connection.close()

    @asynccontextmanager
    async def begin_write(self) -> AsyncIterator[AsyncConnection]:
        """A connection in a transaction, committed when left without an error. Raises: as `reading`."""
        with self._translate_errors():
            if not self.is_sqlite:
                async with self.engine.begin() as connection:
                    yield connection
                return
            async with self._write_lock, self._write_engine.begin() as connection:
                yield connection

    def build_insert(self, table: Table) -> InsertOnConflict:
        """An INSERT that knows ON CONFLICT."""
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

    async def ping(self) -> None:
        """Ask the database for a sign of life. Raises: `StoreUnavailable`."""
        async with self.begin_read() as connection:
            await connection.execute(text("SELECT 1"))

    async def close(self) -> None:
        """Close all connections."""
        await self.engine.dispose()
        await self._inline_engine.dispose()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (OperationalError, InterfaceError, PoolTimeout, OSError) as error:
            raise StoreUnavailable(
                f"The store ({describe_database(self.url)}) does not answer: {get_first_error_line(error)}"
            ) from error
        except DataError as error:
            raise BadInput(f"The store cannot keep this value: {get_first_error_line(error)}") from error
        except IntegrityError:
            raise  # a repository knows what it means
        except DBAPIError as error:
            if error.connection_invalidated:
                raise StoreUnavailable(
                    f"The store ({describe_database(self.url)}) broke off: {get_first_error_line(error)}"
                ) from error
            if error.statement is None:  # nothing was asked yet: an option of the URL is unknown
                raise BadInput(
                    f"The URL of the store ({describe_database(self.url)}) is wrong: {get_first_error_line(error)}"
                ) from error
            raise StoreError(
                f"The store ({describe_database(self.url)}) refused: {get_first_error_line(error)}"
            ) from error


def get_first_error_line(error: Exception) -> str:
    """What the driver said, without the statement and its values."""
    said = str(error.orig if isinstance(error, DBAPIError) else error).strip()
    return said.splitlines()[0] if said else type(error).__name__


def _create_postgresql_engine(url: URL) -> AsyncEngine:
    return create_async_engine(
        url,
        pool_pre_ping=True,  # a restarted server costs no request
        pool_size=10,
        max_overflow=10,
        pool_timeout=CONNECT_TIMEOUT_SECONDS,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_SECONDS, "application_name": "opposable"},
        json_serializer=to_json,
        json_deserializer=from_json,
        hide_parameters=True,  # values may be anyone's words: they stay out of errors
    )


def _create_sqlite_engine(url: URL) -> AsyncEngine:
    file = Path(url.database or "").absolute()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)  # what people said is for the owner's eyes; one that is there keeps its rights
    except OSError as error:
        raise BadInput(f"The store cannot be at {url.database}: {error.strerror}.") from error
    engine = create_async_engine(
        url,
        pool_size=5,
        max_overflow=5,
        pool_timeout=CONNECT_TIMEOUT_SECONDS,
        connect_args={"timeout": CONNECT_TIMEOUT_SECONDS},
        json_serializer=to_json,
        json_deserializer=from_json,
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "connect", _set_pragmas)
    event.listen(engine.sync_engine, "begin", _begin_transaction)
    return engine


def _create_inline_engine(url: URL) -> AsyncEngine:
    """An engine for short looks at a file that `_sqlite_engine` has prepared."""
    from opposable.store.inline_sqlite import connect

    engine: AsyncEngine = create_async_engine(
        url,
        async_creator=lambda: connect(engine.dialect.create_connect_args(url), INLINE_READ_TIMEOUT_SECONDS),
        pool_size=1,
        max_overflow=5,
        pool_timeout=CONNECT_TIMEOUT_SECONDS,
        json_serializer=to_json,
        json_deserializer=from_json,
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "begin", _begin_transaction)
    return engine


def _set_pragmas(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # BEGIN is said by us, below
    cursor = connection.cursor()
    for pragma in ("foreign_keys = ON", "synchronous = NORMAL", "temp_store = MEMORY"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_transaction(connection: Connection) -> None:
    # a transaction that reads first and writes later cannot wait for another writer: writers say so at once
    writing = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
