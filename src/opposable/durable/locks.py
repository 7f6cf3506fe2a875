"""Advisory locks of PostgreSQL, which are released with the connection that holds them."""

from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from opposable.store.database_urls import parse_database_url

LOCK_CLASS = 0x6F7070
"""First number of the advisory locks; the second is a hash of the lock's name."""

Connection = psycopg.AsyncConnection[tuple[Any, ...]]


async def connect(url: str) -> Connection:
    """Open a connection for locks. With its keepalives, a loss is noticed within some ten seconds.

    Raises:
        psycopg.Error: The database does not answer.
    """
    conninfo = parse_database_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    timeouts = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "connect_timeout": 10}
    return await psycopg.AsyncConnection.connect(make_conninfo(conninfo, **timeouts), autocommit=True)


async def take_lock(connection: Connection, name: str) -> bool:
    """Take a lock without waiting. Return False if another connection holds it."""
    cursor = await connection.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", (LOCK_CLASS, name))
    row = await cursor.fetchone()
    return row is not None and bool(row[0])


async def release_lock(connection: Connection, name: str) -> None:
    """Release a lock of this connection."""
    await connection.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", (LOCK_CLASS, name))
