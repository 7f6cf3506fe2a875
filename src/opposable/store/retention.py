"""What is forgotten: calls and runs beyond an age or a number, a batch at a time."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Column, Table, delete, select

from opposable.domain.errors import BadInput
from opposable.domain.records import get_utc_now
from opposable.store.database import StoreDatabase
from opposable.store.tables import run_events, runs, tool_executions

DELETE_BATCH_ROWS = 1000
"""Rows forgotten in one transaction: writers come in between."""


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """What is kept: at most so old, at most so many (the newest); None for no limit."""

    max_age: timedelta | None = None
    max_count: int | None = None


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """How many calls and runs were forgotten."""

    executions: int
    runs: int


class Retention:
    """Forgets what is too old or too much. A run that still goes on is kept whatever its age."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database

    async def enforce(self, limits: RetentionLimits) -> RetentionResult:
        """Forget what is beyond `keep`. Cheap when there is nothing to forget: a few look-ups in an index.

        Raises: `BadInput` for a negative age or number.
        """
        if (limits.max_count is not None and limits.max_count < 0) or (
            limits.max_age is not None and limits.max_age < timedelta()
        ):
            raise BadInput("What is kept cannot be of negative age or number.")
        return RetentionResult(
            await self._delete_beyond_limits(tool_executions, tool_executions.c.at, limits),
            await self._delete_beyond_limits(runs, runs.c.started_at, limits),
        )

    async def _delete_beyond_limits(self, table: Table, time_column: Column[Any], limits: RetentionLimits) -> int:
        edges = []
        if limits.max_age is not None:
            edges.append(time_column < get_utc_now() - limits.max_age)
        if (
            limits.max_count is not None
            and (edge := await self._find_newest_excess_row(table, time_column, limits.max_count)) is not None
        ):
            edges.append((time_column < edge[0]) | ((time_column == edge[0]) & (table.c.id <= edge[1])))
        total = 0
        for beyond in edges:
            total += await self._delete_where(table, time_column, beyond)
        return total

    async def _find_newest_excess_row(
        self, table: Table, time_column: Column[Any], max_count: int
    ) -> tuple[datetime, str] | None:
        """The newest row that is one too many."""
        query = (
            select(time_column, table.c.id).order_by(time_column.desc(), table.c.id.desc()).offset(max_count).limit(1)
        )
        async with self._database.begin_read() as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else (row[0], row[1])

    async def _delete_where(self, table: Table, time_column: Column[Any], condition: Any) -> int:
        conditions = [condition] if table is not runs else [condition, runs.c.status.not_in(("running", "waiting"))]
        oldest = select(table.c.id).where(*conditions).order_by(time_column, table.c.id).limit(DELETE_BATCH_ROWS)
        total = 0
        while True:
            async with self._database.begin_write() as connection:
                ids = (await connection.scalars(oldest)).all()
                if table is runs:
                    await connection.execute(delete(run_events).where(run_events.c.run_id.in_(ids)))
                await connection.execute(delete(table).where(table.c.id.in_(ids)))
            total += len(ids)
            if len(ids) < DELETE_BATCH_ROWS:
                return total
