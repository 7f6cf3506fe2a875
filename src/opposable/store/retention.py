"""Deletion of old executions, runs and responses, in batches."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Column, Table, delete, select

from opposable.domain.errors import BadInput
from opposable.domain.records import get_utc_now
from opposable.store.database import Repository
from opposable.store.tables import approvals, queued_runs, responses, run_events, runs, tool_executions

DELETE_BATCH_ROWS = 1000
"""Rows deleted in one transaction. Other writers get a turn between transactions."""


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """The maximum age and number of records. None means no limit."""

    max_age: timedelta | None = None
    max_count: int | None = None


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """Numbers of deleted executions, runs and responses."""

    executions: int
    runs: int
    responses: int = 0


class Retention(Repository):
    """Deletes executions, runs and responses beyond the retention limits.

    A run is deleted with its events, its approvals and the request of a chat. Active runs are never deleted, nor are
    batches.
    """

    async def enforce(self, limits: RetentionLimits) -> RetentionResult:
        """Delete the records beyond `limits`. Without such records it costs a few index lookups.

        Raises:
            BadInput: A limit is negative.
        """
        if (limits.max_count is not None and limits.max_count < 0) or (
            limits.max_age is not None and limits.max_age < timedelta()
        ):
            raise BadInput(
                f"The retention limits are negative (max_age={limits.max_age}, max_count={limits.max_count}). "
                "Pass limits of 0 or more, or None for no limit."
            )
        return RetentionResult(
            await self._delete_beyond_limits(tool_executions, tool_executions.c.at, limits),
            await self._delete_beyond_limits(runs, runs.c.started_at, limits),
            await self._delete_beyond_limits(responses, responses.c.created_at, limits),
        )

    async def _delete_beyond_limits(self, table: Table, time_column: Column[Any], limits: RetentionLimits) -> int:
        conditions: list[Any] = []
        if limits.max_age is not None:
            conditions.append(time_column < get_utc_now() - limits.max_age)
        if limits.max_count is not None:
            excess_row = await self._find_newest_excess_row(table, time_column, limits.max_count)
            if excess_row is not None:
                timestamp, row_id = excess_row
                conditions.append((time_column < timestamp) | ((time_column == timestamp) & (table.c.id <= row_id)))
        total = 0
        for condition in conditions:
            total += await self._delete_where(table, time_column, condition)
        return total

    async def _find_newest_excess_row(
        self, table: Table, time_column: Column[Any], max_count: int
    ) -> tuple[datetime, str] | None:
        """Return the time and id of the newest row beyond `max_count` rows."""
        query = select(time_column, table.c.id).order_by(time_column.desc(), table.c.id.desc())
        rows = await self._database.fetch(query.offset(max_count).limit(1))
        return (rows[0][0], rows[0][1]) if rows else None

    async def _delete_where(self, table: Table, time_column: Column[Any], condition: Any) -> int:
        conditions = [condition]
        if table is runs:
            conditions.append(runs.c.status.not_in(("queued", "running", "waiting")))
        oldest = select(table.c.id).where(*conditions).order_by(time_column, table.c.id).limit(DELETE_BATCH_ROWS)
        total = 0
        while True:
            async with self._database.begin_write() as connection:
                ids = (await connection.scalars(oldest)).all()
                if table is runs:
                    await connection.execute(delete(run_events).where(run_events.c.run_id.in_(ids)))
                    await connection.execute(delete(approvals).where(approvals.c.run_id.in_(ids)))
                    is_chat = queued_runs.c.run_id.in_(ids) & (queued_runs.c.batch_id == "")
                    await connection.execute(delete(queued_runs).where(is_chat))
                await connection.execute(delete(table).where(table.c.id.in_(ids)))
            total += len(ids)
            if len(ids) < DELETE_BATCH_ROWS:
                return total
