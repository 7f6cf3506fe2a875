"""The `Database` protocol, and the limits and result of a query."""

from dataclasses import dataclass
from typing import Any, Protocol

from opposable.domain.errors import ToolUnavailable
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import DatabaseSchema


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Bounds of one query: rows returned, characters of a cell, seconds of wall time."""

    max_rows: int = 100
    max_cell_characters: int = 2_000
    timeout_seconds: float = 15.0


DEFAULT_LIMITS = QueryLimits()


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows of a query, as JSON values.

    `truncated` is true where the query has more rows than returned. `truncated_cells` counts cells cut to the limit.
    `seconds` is wall time.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool = False
    truncated_cells: int = 0
    seconds: float = 0.0


class Database(Protocol):
    """A database that the engine itself opens read-only.

    `explain` and `run` raise:
        ToolRefused: The engine's own protection stopped the query.
        QueryTimedOut: The query took too long (a `ToolFailed`).
        ToolFailed: The query failed; the message is the engine's.
        ToolUnavailable: The file or server cannot be read now.
    """

    @property
    def dialect(self) -> Dialect:
        """SQL dialect of the engine."""
        ...

    @property
    def name(self) -> str:
        """Name of the file without its folder, or of the database.

        Safe to show to a model.
        """
        ...

    @property
    def identity(self) -> str:
        """Cache key of this database and its reader, without secrets; not for a model."""
        ...

    async def get_schema(self) -> DatabaseSchema:
        """Return the tables, read once and cached."""
        ...

    async def explain(
        self, sql: str, parameters: dict[str, Any] | None = None, limits: QueryLimits = DEFAULT_LIMITS
    ) -> None:
        """Bind and plan `sql`; the engine computes constants, so the time limit applies."""
        ...

    async def run(
        self, sql: str, parameters: dict[str, Any] | None = None, limits: QueryLimits = DEFAULT_LIMITS
    ) -> QueryResult:
        """Run `sql`; the time limit and cancellation of the caller stop the engine."""
        ...

    async def close(self) -> None:
        """Close the file or the connections."""
        ...


class OpenedDatabase:
    """The part of a `Database` that is the same for all engines. The schema is that of the time of opening."""

    def __init__(self, name: str, identity: str, schema: DatabaseSchema) -> None:
        self.name = name
        self.identity = identity
        self._schema = schema
        self._closed = False

    async def get_schema(self) -> DatabaseSchema:
        """Return the tables and views that may be read."""
        return self._schema

    def _check_is_open(self) -> None:
        if self._closed:
            raise ToolUnavailable(f"The database {self.name} is closed.")
