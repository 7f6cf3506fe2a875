"""Parsing of database URLs."""

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from opposable.domain.errors import BadInput

POSTGRESQL_SCHEMES = ("postgres", "postgresql", "pgsql")
URL_FORMAT_HINT = "Pass sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE."


def parse_database_url(text: str) -> URL:
    """Parse a database URL and set the driver: aiosqlite or psycopg.

    Raises:
        BadInput: The URL cannot be used. The message omits it, because it may hold a password.
    """
    try:
        url = make_url(text.strip())
    except (ArgumentError, ValueError) as error:
        raise BadInput(f"The database URL of the store is not valid. {URL_FORMAT_HINT}") from error
    backend = url.drivername.partition("+")[0].lower()
    if backend == "sqlite":
        return _normalize_sqlite_url(url)
    if "@" in (url.host or ""):
        raise BadInput("The password in the database URL of the store has an @. Write it as %40.")
    if backend in POSTGRESQL_SCHEMES:
        return url.set(drivername="postgresql+psycopg")
    raise BadInput(f"The store does not support {backend!r} databases. {URL_FORMAT_HINT}")


def describe_database(url: URL) -> str:
    """Return the URL for messages: without user, password and options."""
    if url.get_backend_name() == "sqlite":
        return f"SQLite file {url.database}"
    port = f":{url.port}" if url.port else ""
    return f"PostgreSQL at {url.host or 'the local socket'}{port}/{url.database or ''}"


def _normalize_sqlite_url(url: URL) -> URL:
    if url.host:
        raise BadInput(
            f"sqlite://{url.host}… needs a third slash before the path. Pass sqlite:///PATH (absolute: sqlite:////PATH)."
        )
    if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
        raise BadInput(
            "The store must be a file, because connections do not share an in-memory database. Pass sqlite:///PATH."
        )
    try:
        return URL.create("sqlite+aiosqlite", database=str(Path(url.database).expanduser()))
    except RuntimeError as error:
        raise BadInput(f"The user of the path {url.database} does not exist. {URL_FORMAT_HINT}") from error
