"""The `Database` protocol: one database opened read-only, and the limits of a query."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import DatabaseSchema


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """The most one query may take: rows handed back, characters of a cell, seconds of wall time."""

    max_rows: int = 100
    max_cell_characters: int = 2_000
    timeout_seconds: float = 15.0


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What a query brought, as JSON values.

    `truncated` is true when there were more rows; `cut_cells` counts cells cut to the limit; `seconds` is wall time.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool = False
    truncated_cells: int = 0
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

    async def get_schema(self) -> DatabaseSchema:
        """Its tables, read once and kept."""
        ...

    async def get_data_version(self) -> str:
        """A text that is another one once the data was changed."""
        ...

    async def explain(
        self, sql: str, parameters: dict[str, Any] | None = None, limits: QueryLimits | None = None
    ) -> None:
        """Lets the engine bind and plan `sql`; constants are computed, so `limits.seconds` holds here too."""
        ...

    async def run(
        self, sql: str, parameters: dict[str, Any] | None = None, limits: QueryLimits | None = None
    ) -> QueryResult:
        """Runs `sql` and brings at most `limits.rows` rows; when time is up or the caller cancels, the engine stops."""
        ...

    async def sample_values(self, table: str, limit: int = 3) -> dict[str, list[Any]]:
        """A few different values of every column of the table with this full name."""
        ...

    async def close(self) -> None:
        """Lets go of the file or the server."""
        ...


def get_file_version(path: Path) -> str:
    """The size and time of a database file and of the log beside it."""
    files = [path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}.wal")]
    stats = [file.stat() for file in files if file.exists()]
    return ";".join(f"{stat.st_size}:{stat.st_mtime_ns}" for stat in stats if stat.st_size)
