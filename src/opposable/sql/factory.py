"""Open a database from a URL or a file path."""

import logging
import re
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from opposable.domain.errors import BadInput
from opposable.sql.database import Database

DATABASE_URL_FORMS = "duckdb:///path/to/file, sqlite:///path/to/file, the path of a DuckDB or SQLite file, or postgresql://user:password@host/database"


async def open_database(url: str) -> Database:
    """Opens a DuckDB or SQLite file, or a PostgreSQL database, for reading; a plain path is told by its first bytes.

    Raises:
        BadInput: the file is missing, empty, a directory, locked, broken, or no database; the server cannot be asked.
    """
    _silence_sqlglot_warnings()
    if re.match(r"\s*postgres(ql)?(\+\w+)?://", url, re.IGNORECASE):
        from opposable.sql.postgres.engine import open_postgres

        return await open_postgres(url)
    kind, path = _parse_location(url)
    found = detect_file_kind(path)
    if kind and found != kind:
        raise BadInput(f"{path} is a {_ENGINE_NAMES[found]} file: give {found}:///{path} or just its path.")
    match found:
        case "duckdb":
            from opposable.sql.duckdb.engine import open_duckdb

            return await open_duckdb(path)
        case "sqlite":
            from opposable.sql.sqlite.engine import open_sqlite

            return await open_sqlite(path)


_ENGINE_NAMES = {"duckdb": "DuckDB", "sqlite": "SQLite"}


def _parse_location(url: str) -> tuple[Literal["duckdb", "sqlite", ""], Path]:
    """The kind a URL names ("" for a plain path) and the file it means."""
    text = url.strip()
    if not text:
        raise BadInput(f"No database given: give {DATABASE_URL_FORMS}.")
    scheme = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]+):", text)
    if scheme is None or Path(text).exists():
        return "", _expand_home(text)
    kind = scheme.group(1).lower().partition("+")[0]
    if kind not in ("duckdb", "sqlite"):
        raise BadInput(f"{kind}: databases cannot be opened: give {DATABASE_URL_FORMS}.")
    rest = text[scheme.end() :].removeprefix("//")
    if rest in ("", "/", ":memory:", "/:memory:"):
        raise BadInput(f"{url} names no file: give {DATABASE_URL_FORMS}.")
    return "duckdb" if kind == "duckdb" else "sqlite", _find_existing_path(rest)


def _expand_home(path: str) -> Path:
    """The path with a `~` at its start resolved; one of an unknown user is a file that is not there."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def _find_existing_path(url_path: str) -> Path:
    """The file behind the slashes of a URL: relative as in `sqlite:///file.db`, else absolute, else percent-decoded."""
    without = url_path.removeprefix("/")
    whole = "/" + without.lstrip("/")
    candidates = [_expand_home(without), Path(whole), Path(unquote(without)), Path(unquote(whole))]
    return next((path for path in candidates if path.exists()), candidates[1 if "/" in without else 0])


def _silence_sqlglot_warnings() -> None:
    """Its warnings hold the SQL as a model wrote it, and would stand raw on standard error."""
    log = logging.getLogger("sqlglot")
    if log.level == logging.NOTSET:
        log.setLevel(logging.ERROR)


def detect_file_kind(path: Path) -> Literal["duckdb", "sqlite"]:
    """Which engine wrote the file, by its first bytes.

    Raises:
        BadInput: neither did, or there is nothing to read.
    """
    try:
        if path.is_dir():
            raise BadInput(f"{path} is a directory: give the database file in it.")
        with path.open("rb") as file:
            head = file.read(16)
    except FileNotFoundError:
        raise BadInput(f"There is no file {path}: give {DATABASE_URL_FORMS}.") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or 'it is no regular file'}.") from error
    except ValueError as error:
        raise BadInput(f"{path!s} is no path: give {DATABASE_URL_FORMS}.") from error
    if not head:
        raise BadInput(f"{path} is empty: give a DuckDB or SQLite file that holds tables.")
    if head.startswith(b"SQLite format 3\0"):
        return "sqlite"
    if head[8:12] == b"DUCK":
        return "duckdb"
    raise BadInput(f"{path} is no DuckDB or SQLite database: its first bytes are those of another kind of file.")
