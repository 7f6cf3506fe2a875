"""Repository of tool executions: written in batches, read newest first."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, case, func, select

from opposable.domain.records import Execution, ExecutionFilter, ExecutionStats, Page
from opposable.store.database import Repository
from opposable.store.pagination import MAX_PAGE_SIZE, fetch_by_id_prefix, fetch_newest_first
from opposable.store.rows import to_record, to_row
from opposable.store.tables import runs
from opposable.store.tables import tool_executions as executions

NO_FILTER = ExecutionFilter()


class ExecutionRepository(Repository):
    """Tool executions of all runs."""

    async def add(self, new_executions: Sequence[Execution]) -> None:
        """Store executions. An id that is stored already keeps its row."""
        if not new_executions:
            return
        insert = self._database.build_insert(executions).on_conflict_do_nothing(index_elements=["id"])
        async with self._database.begin_write() as connection:
            await connection.execute(insert, [_to_row(execution) for execution in new_executions])

    async def get(self, execution_id: str) -> Execution | None:
        """Return the execution with this id."""
        rows = await self._database.fetch(select(executions).where(executions.c.id == execution_id))
        return _to_execution(rows[0]) if rows else None

    async def list_by_id_prefix(self, id_prefix: str) -> tuple[Execution, ...]:
        """Return the first two executions whose id starts with a prefix, ordered by id."""
        return await fetch_by_id_prefix(self._database, select(executions), executions.c.id, _to_execution, id_prefix)

    async def list(
        self, criteria: ExecutionFilter = NO_FILTER, *, after: str = "", limit: int = 100
    ) -> Page[Execution]:
        """Return a page of matching executions, newest first.

        `after` is the cursor of the previous page, `limit` a number from 1 to 1000.
        """
        query = select(executions).where(*_build_conditions(criteria))
        return await fetch_newest_first(
            self._database, query, executions.c.at, executions.c.id, _to_execution, after=after, limit=limit
        )

    async def export(self, criteria: ExecutionFilter = NO_FILTER) -> AsyncIterator[Execution]:
        """Yield every matching execution, newest first. Reads page by page, so that it blocks no writer."""
        after = ""
        while True:
            page = await self.list(criteria, after=after, limit=MAX_PAGE_SIZE)
            for execution in page.items:
                yield execution
            if not page.next_cursor:
                return
            after = page.next_cursor

    async def get_statistics_by_tool(self, since: datetime) -> dict[str, ExecutionStats]:
        """Return the statistics of each tool since a time, by tool id."""
        failure_count = func.sum(case((executions.c.failure.is_not(None), 1), else_=0))
        query = select(executions.c.tool_id, func.count(), failure_count, func.avg(executions.c.seconds))
        query = query.where(*_build_conditions(ExecutionFilter(since=since)))
        rows = await self._database.fetch(query.group_by(executions.c.tool_id))
        return {
            tool_id: ExecutionStats(calls, failures, mean_seconds) for tool_id, calls, failures, mean_seconds in rows
        }


def _build_conditions(criteria: ExecutionFilter) -> list[Any]:
    table = executions.c
    conditions: list[Any] = [
        table[name] == value
        for name in ("tool_id", "agent_id", "run_id", "conversation_id")
        if (value := getattr(criteria, name))
    ]
    if criteria.failure == "any":
        conditions.append(table.failure.is_not(None))
    elif criteria.failure is not None:
        conditions.append(table.failure == criteria.failure)
    if criteria.since is not None:
        conditions.append(table.at >= criteria.since)
    if criteria.until is not None:
        conditions.append(table.at < criteria.until)
    if criteria.owner is not None:
        conditions.append(table.run_id.in_(select(runs.c.id).where(runs.c.owner == criteria.owner)))
    return conditions


def _to_row(execution: Execution) -> dict[str, Any]:
    return to_row(execution, "execution_id") | {"id": execution.execution_id, "repairs": list(execution.repairs)}


def _to_execution(row: Row[Any]) -> Execution:
    return to_record(Execution, row, execution_id=row.id, repairs=tuple(row.repairs))
