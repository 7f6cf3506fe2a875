"""Database URLs in the shapes people write them."""

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from opposable.domain.errors import BadInput

POSTGRESQL_SCHEMES = ("postgres", "postgresql", "pgsql")
URL_FORMAT_HINT = "Give sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE."


def parse_database_url(text: str) -> URL:
    """The URL with the driver we use: aiosqlite or psycopg, whatever driver was named.

    Raises: `BadInput`, without the URL itself, which may hold a password.
    """
    try:
        url = make_url(text.strip())
    except (ArgumentError, ValueError) as error:
        raise BadInput(f"This is no database URL. {URL_FORMAT_HINT}") from error
    kind = url.drivername.partition("+")[0].lower()
    if kind == "sqlite":
        return _normalize_sqlite_url(url)
    if kind in POSTGRESQL_SCHEMES:
        return url.set(drivername="postgresql+psycopg")
    raise BadInput(f"A database of kind {kind!r} cannot be the store. {URL_FORMAT_HINT}")


def describe_database(url: URL) -> str:
    """The URL for a sentence: without user, password and options."""
    if url.get_backend_name() == "sqlite":
        return f"SQLite file {url.database}"
    port = f":{url.port}" if url.port else ""
    return f"PostgreSQL at {url.host or 'the local socket'}{port}/{url.database or ''}"


def _normalize_sqlite_url(url: URL) -> URL:
    if url.host:
        raise BadInput(
            f"sqlite://{url.host}… needs a third slash before a path: sqlite:///PATH (absolute: sqlite:////PATH)."
        )
    if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
        raise BadInput(
            "The store is a file: sqlite:///PATH. One in memory would be lost, and no two connections share it."
        )
    return URL.create("sqlite+aiosqlite", database=str(Path(url.database).expanduser()))
