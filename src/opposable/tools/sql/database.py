"""What a database is to this room: a protocol, its limits, and how one is opened from a URL or a path."""

import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import unquote

from opposable.domain.errors import BadInput
from opposable.tools.sql.functions import Dialect
from opposable.tools.sql.schema import Schema

FORMS = "duckdb:///path/to/file, sqlite:///path/to/file, the path of a DuckDB or SQLite file, or postgresql://user:password@host/database"


@dataclass(frozen=True, slots=True)
class Limits:
    """The most one query may take: rows handed back, characters of a cell, seconds of wall time."""

    rows: int = 100
    cell_characters: int = 2_000
    seconds: float = 15.0


@dataclass(frozen=True, slots=True)
class Rows:
    """What a query brought, as JSON values.

    `truncated` is true when there were more rows; `cut_cells` counts cells cut to the limit; `seconds` is wall time.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool = False
    cut_cells: int = 0
    seconds: float = 0.0


class Database(Protocol):
    """One database, open for reading only whatever SQL it is given.

    Raises (from `explain` and `run`): `ToolRefused` when the engine's own sandbox forbids it, `ToolFailed` with the
    engine's sentence when it fails, its kind `QueryTimedOut` (a `TimeoutError` too) when it takes too long,
    `ToolUnavailable` when the file or server cannot be read now.
    """

    @property
    def dialect(self) -> Dialect:
        """Which SQL it speaks."""
        ...

    @property
    def name(self) -> str:
        """The file's name without its folder, or the database's: all that a model may learn of where it is."""
        ...

    @property
    def identity(self) -> str:
        """Which database this is, and who reads it, without secrets: a key for what is kept of it, not for a model."""
        ...

    async def schema(self) -> Schema:
        """Its tables, read once and kept."""
        ...

    async def version(self) -> str:
        """A text that is another one once the data was changed."""
        ...

    async def explain(self, sql: str, parameters: dict[str, Any] | None = None, limits: Limits | None = None) -> None:
        """Lets the engine bind and plan `sql`; constants are computed, so `limits.seconds` holds here too."""
        ...

    async def run(self, sql: str, parameters: dict[str, Any] | None = None, limits: Limits | None = None) -> Rows:
        """Runs `sql` and brings at most `limits.rows` rows; when time is up or the caller cancels, the engine stops."""
        ...

    async def samples(self, table: str, values: int = 3) -> dict[str, list[Any]]:
        """A few different values of every column of the table with this full name."""
        ...

    async def close(self) -> None:
        """Lets go of the file or the server."""
        ...


async def open_database(url: str) -> Database:
    """Opens a DuckDB or SQLite file, or a PostgreSQL database, for reading; a plain path is told by its first bytes.

    Raises:
        BadInput: the file is missing, empty, a directory, locked, broken, or no database; the server cannot be asked.
    """
    _hush_sqlglot()
    if re.match(r"\s*postgres(ql)?(\+\w+)?://", url, re.IGNORECASE):
        from opposable.tools.sql.postgres_server import open_postgres

        return await open_postgres(url)
    kind, path = _located(url)
    found = file_kind(path)
    if kind and found != kind:
        raise BadInput(f"{path} is a {_TITLES[found]} file: give {found}:///{path} or just its path.")
    match found:
        case "duckdb":
            from opposable.tools.sql.duckdb_file import open_duckdb

            return await open_duckdb(path)
        case "sqlite":
            from opposable.tools.sql.sqlite_file import open_sqlite

            return await open_sqlite(path)


_TITLES = {"duckdb": "DuckDB", "sqlite": "SQLite"}


def _located(url: str) -> tuple[Literal["duckdb", "sqlite", ""], Path]:
    """The kind a URL names ("" for a plain path) and the file it means."""
    text = url.strip()
    if not text:
        raise BadInput(f"No database given: give {FORMS}.")
    scheme = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]+):", text)
    if scheme is None or Path(text).exists():
        return "", _home(text)
    kind = scheme.group(1).lower().partition("+")[0]
    if kind not in ("duckdb", "sqlite"):
        raise BadInput(f"{kind}: databases cannot be opened: give {FORMS}.")
    rest = text[scheme.end() :].removeprefix("//")
    if rest in ("", "/", ":memory:", "/:memory:"):
        raise BadInput(f"{url} names no file: give {FORMS}.")
    return "duckdb" if kind == "duckdb" else "sqlite", _existing(rest)


def _home(path: str) -> Path:
    """The path with a `~` at its start resolved; one of an unknown user is a file that is not there."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def _existing(rest: str) -> Path:
    """The file behind the slashes of a URL: relative as in `sqlite:///file.db`, else absolute, else percent-decoded."""
    without = rest.removeprefix("/")
    whole = "/" + without.lstrip("/")
    candidates = [_home(without), Path(whole), Path(unquote(without)), Path(unquote(whole))]
    return next((path for path in candidates if path.exists()), candidates[1 if "/" in without else 0])


def _hush_sqlglot() -> None:
    """Its warnings hold the SQL as a model wrote it, and would stand raw on standard error."""
    log = logging.getLogger("sqlglot")
    if log.level == logging.NOTSET:
        log.setLevel(logging.ERROR)


def file_version(path: Path) -> str:
    """The size and time of a database file and of the log beside it."""
    files = [path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}.wal")]
    stats = [file.stat() for file in files if file.exists()]
    return ";".join(f"{stat.st_size}:{stat.st_mtime_ns}" for stat in stats if stat.st_size)


def file_kind(path: Path) -> Literal["duckdb", "sqlite"]:
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
        raise BadInput(f"There is no file {path}: give {FORMS}.") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or 'it is no regular file'}.") from error
    except ValueError as error:
        raise BadInput(f"{path!s} is no path: give {FORMS}.") from error
    if not head:
        raise BadInput(f"{path} is empty: give a DuckDB or SQLite file that holds tables.")
    if head.startswith(b"SQLite format 3\0"):
        return "sqlite"
    if head[8:12] == b"DUCK":
        return "duckdb"
    raise BadInput(f"{path} is no DuckDB or SQLite database: its first bytes are those of another kind of file.")
