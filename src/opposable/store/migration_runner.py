"""Schema migrations, run by one process at a time when a store is opened."""

import asyncio
import itertools
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateIndex, CreateTable

from opposable.domain.backoff import get_backoff_seconds
from opposable.domain.errors import StoreTooNew, StoreUnavailable
from opposable.store.creation import StoreCreation
from opposable.store.database import CONNECT_TIMEOUT_SECONDS, StoreDatabase, describe_driver_error
from opposable.store.database_urls import describe_database
from opposable.store.schema_location import STORE_SCHEMA, locate_schema
from opposable.store.tables import metadata

if TYPE_CHECKING:  # alembic takes 8 MB of memory, so it waits until a schema is not up to date
    from alembic.config import Config

MIGRATIONS_DIRECTORY = Path(__file__).parent / "migrations"

ADVISORY_LOCK_ID = 0x6F70706F
"""Number of the PostgreSQL advisory lock that serializes migrations."""


async def migrate_schema(database: StoreDatabase, create: StoreCreation = "if_empty") -> None:
    """Create the tables, or upgrade them to the version of this release. See `locate_schema` for where they are created.

    Raises:
        StoreMissing: The database holds no store, and `create` does not allow to create one.
        StoreTooNew: A newer release wrote the schema.
        StoreUnavailable: The database does not answer.
    """
    schema = await locate_schema(database, create)
    if schema:
        await database.use_schema(schema)
    if database.is_sqlite:
        await _enable_write_ahead_log(database)
    async with database.begin_read() as connection:
        if await connection.run_sync(_read_revision, describe_database(database.url)) == list_revisions()[-1]:
            return
    async with database.begin_write() as connection:  # on SQLite, `begin_write` waits for other writers
        if not database.is_sqlite:
            await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": ADVISORY_LOCK_ID})
            if schema == STORE_SCHEMA:
                await connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {STORE_SCHEMA}"))
        await connection.run_sync(_upgrade_schema, describe_database(database.url))


async def _enable_write_ahead_log(database: StoreDatabase) -> None:
    """Turn on the write-ahead log. Retry while the file is locked: SQLite does not wait for this lock."""
    deadline = time.monotonic() + CONNECT_TIMEOUT_SECONDS
    for attempt in itertools.count(1):
        try:
            async with database.engine.connect() as connection:
                raw = await connection.get_raw_connection()
                await raw.driver_connection.execute_fetchall("PRAGMA journal_mode = WAL")  # type: ignore[union-attr]
                return
        except (sqlite3.DatabaseError, DBAPIError) as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"The store ({describe_database(database.url)}) cannot be used: {describe_driver_error(error)}"
                ) from error
        await asyncio.sleep(get_backoff_seconds(attempt, first_seconds=0.05, max_seconds=0.5))


def list_revisions() -> list[str]:
    """Return the revisions that this release knows, oldest first. The files of the migrations are named after them."""
    return sorted(path.name[1:5] for path in (MIGRATIONS_DIRECTORY / "versions").glob("r[0-9]*.py"))


def _build_alembic_config(connection: Connection | None = None) -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_DIRECTORY).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _read_revision(connection: Connection, database_description: str) -> str | None:
    """Return the revision of the schema, None without one.

    Raises:
        StoreTooNew: A newer release wrote the schema.
    """
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    known_revisions = list_revisions()
    if revision is not None and revision not in known_revisions:
        raise StoreTooNew(
            f"The store ({database_description}) has schema {revision}, which a newer version of Opposable wrote. "
            f"This version knows schemas up to {known_revisions[-1]}. Update Opposable, or use another database."
        )
    return revision


def _upgrade_schema(connection: Connection, database_description: str) -> None:
    revision = _read_revision(connection, database_description)
    if revision is None:
        _create_tables(connection)
    elif revision != list_revisions()[-1]:  # else another process upgraded it in the meantime
        from alembic import command  # lazy: only for a store of an earlier version

        command.upgrade(_build_alembic_config(connection), "head")


def _create_tables(connection: Connection) -> None:
    """Create the current tables.

    The order of the indexes is fixed: of two that serve a query equally, SQLite uses the one that was created last.
    `ix_failures_pinned` must come after `ix_failures_teaching`.
    """
    for table in metadata.sorted_tables:
        connection.execute(CreateTable(table))
        for index in sorted(table.indexes, key=lambda index: str(index.name), reverse=True):
            connection.execute(CreateIndex(index))
    columns = "version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)"
    connection.execute(text(f"CREATE TABLE IF NOT EXISTS alembic_version ({columns})"))
    connection.execute(text("INSERT INTO alembic_version VALUES (:revision)"), {"revision": list_revisions()[-1]})
