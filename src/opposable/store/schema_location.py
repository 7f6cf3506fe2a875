"""Where the tables of a store are in its database."""

from collections import defaultdict
from pathlib import Path

from sqlalchemy import URL, text

from opposable.domain.errors import BadInput, StoreMissing
from opposable.store.creation import StoreCreation
from opposable.store.database import StoreDatabase
from opposable.store.database_urls import describe_database

STORE_SCHEMA = "opposable"
"""The PostgreSQL schema in which a store is created."""

_MARKER_TABLES = {"alembic_version", "agent_versions", "tool_executions"}
"""Tables of every version of the store, which together identify it."""

_SQLITE_TABLES = (
    "SELECT 'main', name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
)

_POSTGRESQL_TABLES = """
SELECT nspname, relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'p') AND nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'
AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')
"""


def require_file(url: URL, create: StoreCreation) -> None:
    """Check that the file of a SQLite store exists, before a connection creates it.

    Raises:
        StoreMissing: There is no such file, and `create` is `never`.
    """
    if create == "never" and url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        raise StoreMissing(_describe_missing(url))


async def locate_schema(database: StoreDatabase, create: StoreCreation) -> str:
    """Return the schema of the store, which may have yet to be created; "" for the connection's default schema.

    Earlier versions created the tables in the default schema of PostgreSQL (`public`).

    Raises:
        StoreMissing: The database holds no store, and `create` does not allow to create one.
        BadInput: `create` is `always`, and the SQLite file holds tables of another program.
        StoreUnavailable: The database does not answer.
    """
    tables = await _list_tables(database)
    if database.is_sqlite:
        default_schema = "main"
    else:
        async with database.begin_read() as connection:
            default_schema = await connection.scalar(text("SELECT current_schema()"))
        if tables[STORE_SCHEMA] >= _MARKER_TABLES:
            return STORE_SCHEMA
    if tables[default_schema] >= _MARKER_TABLES:
        return ""
    _require_creation(database, sum(map(len, tables.values())), create)
    return "" if database.is_sqlite else STORE_SCHEMA


async def _list_tables(database: StoreDatabase) -> defaultdict[str, set[str]]:
    """Return the names of all tables by schema, without those of the system and of extensions."""
    tables: defaultdict[str, set[str]] = defaultdict(set)
    async with database.begin_read() as connection:
        for schema, name in await connection.execute(
            text(_SQLITE_TABLES if database.is_sqlite else _POSTGRESQL_TABLES)
        ):
            tables[schema].add(name)
    return tables


def _require_creation(database: StoreDatabase, table_count: int, create: StoreCreation) -> None:
    if create == "never":
        raise StoreMissing(_describe_missing(database.url))
    if not table_count:
        return
    problem = f"{describe_database(database.url)} holds {table_count} tables of other programs, and no store"
    if database.is_sqlite:
        raise BadInput(f"{problem}. Set OPPOSABLE_DATABASE_URL to another file.")
    if create == "if_empty":
        raise StoreMissing(
            f"{problem}. Set OPPOSABLE_DATABASE_URL to another database, "
            f"or create the schema `{STORE_SCHEMA}` in this one: opposable store init"
        )


def _describe_missing(url: URL) -> str:
    return f"{describe_database(url)} holds no store. Create one: opposable store init"
