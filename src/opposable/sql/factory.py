"""Factory of databases, from a URL or a file path."""

import logging
import os
import re
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from opposable.domain.errors import BadInput
from opposable.sql.clickhouse.engine import open_clickhouse
from opposable.sql.database import Database
from opposable.sql.duckdb.engine import open_duckdb
from opposable.sql.mysql.engine import open_mysql
from opposable.sql.postgres.engine import open_postgres
from opposable.sql.sqlite.engine import open_sqlite

DATABASE_URL_FORMS = (
    "duckdb:///path/to/file, sqlite:///path/to/file, the path of a DuckDB or SQLite file, clickhouse:///path/to/directory,"
    " postgresql://user:password@host/database, or mysql://user:password@host/database"
)


async def open_database(url: str) -> Database:
    """Open a file or a directory of DuckDB, SQLite or ClickHouse, or a PostgreSQL or MySQL database, read-only.

    Raises:
        BadInput: The file is missing, empty, locked, damaged or not a database, or the server cannot be reached.
    """
    _silence_sqlglot_warnings()
    if re.match(r"\s*postgres(ql)?(\+\w+)?://", url, re.IGNORECASE):
        return await open_postgres(url)
    if re.match(r"\s*(mysql|mariadb)(\+\w+)?://", url, re.IGNORECASE):
        return await open_mysql(url)
    kind, path = _parse_location(url)
    if kind == "clickhouse":
        return await open_clickhouse(path)
    engine = detect_file_kind(path)
    if kind and engine != kind:
        raise BadInput(f"`{path}` is a {_ENGINE_NAMES[engine]} file. Use {engine}:///{path} or the path alone.")
    match engine:
        case "duckdb":
            return await open_duckdb(path)
        case "sqlite":
            return await open_sqlite(path)


_ENGINE_NAMES = {"duckdb": "DuckDB", "sqlite": "SQLite"}


def _parse_location(url: str) -> tuple[str, Path]:
    """Return the engine that a URL names ("" for a plain path) and the file or directory."""
    text = url.strip()
    if not text:
        raise BadInput(f"No database is given. Use {DATABASE_URL_FORMS}.")
    scheme = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]+):", text)
    if scheme is None or os.path.exists(text):  # noqa: PTH110 - it is False for a path that is too long
        return "", expand_home(text)
    kind = scheme.group(1).lower().partition("+")[0]
    if kind not in ("duckdb", "sqlite", "clickhouse"):
        raise BadInput(f"`{kind}:` databases are not supported. Use {DATABASE_URL_FORMS}.")
    rest = text[scheme.end() :].removeprefix("//")
    if rest in ("", "/", ":memory:", "/:memory:"):
        raise BadInput(f"`{url}` does not name a file. Use {DATABASE_URL_FORMS}.")
    return kind, _find_existing_path(rest)


def expand_home(path: str) -> Path:
    """Return the path with a leading `~` resolved, unless its user is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def _find_existing_path(url_path: str) -> Path:
    """Return the file that the path of a URL means.

    The path may be relative as in `sqlite:///file.db`, absolute, or percent-encoded.
    """
    relative = url_path.removeprefix("/")
    absolute = "/" + relative.lstrip("/")
    candidates = [expand_home(relative), Path(absolute), Path(unquote(relative)), Path(unquote(absolute))]
    return next((path for path in candidates if os.path.exists(path)), candidates[1 if "/" in relative else 0])  # noqa: PTH110 - as above


def _silence_sqlglot_warnings() -> None:
    """Silence the warnings of sqlglot, which print SQL to standard error."""
    log = logging.getLogger("sqlglot")
    if log.level == logging.NOTSET:
        log.setLevel(logging.ERROR)


def detect_file_kind(path: Path) -> Literal["duckdb", "sqlite"]:
    """Return the engine that wrote a file, by its first bytes.

    Raises:
        BadInput: The file is missing, empty or of another kind.
    """
    try:
        if path.is_dir():
            raise BadInput(f"`{path}` is a directory. Pass the database file inside it.")
        if path.exists() and not path.is_file():  # opening a pipe would wait for a writer
            raise BadInput(f"`{path}` is not a regular file. Pass a database file.")
        with path.open("rb") as file:
            head = file.read(16)
    except FileNotFoundError:
        raise BadInput(f"File `{path}` does not exist. Use {DATABASE_URL_FORMS}.") from None
    except OSError as error:
        raise BadInput(f"Cannot read `{path}`: {error.strerror or 'it is not a regular file'}.") from error
    except ValueError as error:
        raise BadInput(f"`{path}` is not a valid path. Use {DATABASE_URL_FORMS}.") from error
    if not head:
        raise BadInput(f"`{path}` is empty. Pass a DuckDB or SQLite file with tables.")
    if head.startswith(b"SQLite format 3\0"):
        return "sqlite"
    if head[8:12] == b"DUCK":
        return "duckdb"
    raise BadInput(
        f"`{path}` is not a DuckDB or SQLite database (unknown file format). Pass a database file, or load the data into "
        "a table of a new DuckDB file."
    )
