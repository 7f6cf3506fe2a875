"""Records of calls: written in batches, read by filter, newest first."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, case, func, select

from opposable.domain.records import Execution, ExecutionFilter, Page, Tally
from opposable.store.database import Database
from opposable.store.pagination import LARGEST, newest_first
from opposable.store.tables import tool_executions as executions

EVERYTHING = ExecutionFilter()


class Executions:
    """The calls that were made."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, batch: Sequence[Execution]) -> None:
        """Keep calls; one that is kept already stays as it is."""
        if not batch:
            return
        insert = self._database.insert(executions).on_conflict_do_nothing(index_elements=["id"])
        async with self._database.writing() as connection:
            await connection.execute(insert, [_row(one) for one in batch])

    async def get(self, execution_id: str) -> Execution | None:
        """The call of that id."""
        async with self._database.reading() as connection:
            row = (await connection.execute(select(executions).where(executions.c.id == execution_id))).one_or_none()
        return None if row is None else _execution(row)

    async def list(self, which: ExecutionFilter = EVERYTHING, *, after: str = "", limit: int = 100) -> Page[Execution]:
        """Calls that fit the filter, newest first; `after` is the last part's cursor."""
        query = select(executions).where(*_conditions(which))
        return await newest_first(
            self._database, query, executions.c.at, executions.c.id, _execution, after=after, limit=limit
        )

    async def export(self, which: ExecutionFilter = EVERYTHING) -> AsyncIterator[Execution]:
        """Every call that fits the filter, newest first, a part at a time: no reader holds up a writer."""
        after = ""
        while True:
            page = await self.list(which, after=after, limit=LARGEST)
            for one in page.items:
                yield one
            if not page.next:
                return
            after = page.next

    async def tallies(self, since: datetime, *, agent_id: str = "") -> dict[str, Tally]:
        """How each tool has done since then, by tool id."""
        failed = func.sum(case((executions.c.failure.is_not(None), 1), else_=0))
        query = select(executions.c.tool_id, func.count(), failed, func.avg(executions.c.seconds))
        query = query.where(*_conditions(ExecutionFilter(since=since, agent_id=agent_id)))
        async with self._database.reading() as connection:
            rows = (await connection.execute(query.group_by(executions.c.tool_id))).all()
        return {tool: Tally(calls, failures, seconds) for tool, calls, failures, seconds in rows}

    async def latest(self, tool_ids: Sequence[str], *, each: int = 50) -> dict[str, Tally]:
        """How the last calls of each of these tools ended, by tool id: a few look-ups, however many are kept."""
        found: dict[str, Tally] = {}
        async with self._database.looking() as connection:
            for tool_id in dict.fromkeys(tool_ids):
                query = select(executions.c.failure, executions.c.seconds).where(executions.c.tool_id == tool_id)
                rows = (await connection.execute(query.order_by(executions.c.at.desc()).limit(each))).all()
                if rows:
                    failed = sum(row.failure is not None for row in rows)
                    found[tool_id] = Tally(len(rows), failed, sum(row.seconds for row in rows) / len(rows))
        return found


def _conditions(which: ExecutionFilter) -> list[Any]:
    table = executions.c
    conditions: list[Any] = [
        table[name] == value
        for name in ("tool_id", "agent_id", "run_id", "conversation_id")
        if (value := getattr(which, name))
    ]
    if which.failure == "any":
        conditions.append(table.failure.is_not(None))
    elif which.failure is not None:
        conditions.append(table.failure == which.failure)
    if which.since is not None:
        conditions.append(table.at >= which.since)
    if which.until is not None:
        conditions.append(table.at < which.until)
    return conditions


def _row(one: Execution) -> dict[str, Any]:
    return {
        "id": one.execution_id,
        "run_id": one.run_id,
        "call_id": one.call_id,
        "tool_id": one.tool_id,
        "name": one.name,
        "agent_id": one.agent_id,
        "conversation_id": one.conversation_id,
        "trace_id": one.trace_id,
        "arguments": one.arguments,
        "result": one.result,
        "handle": one.handle,
        "failure": one.failure,
        "attempts": one.attempts,
        "cached": one.cached,
        "repairs": list(one.repairs),
        "at": one.at,
        "seconds": one.seconds,
    }


def _execution(row: Row[Any]) -> Execution:
    return Execution(
        execution_id=row.id,
        run_id=row.run_id,
        call_id=row.call_id,
        tool_id=row.tool_id,
        name=row.name,
        arguments=row.arguments,
        result=row.result,
        at=row.at,
        seconds=row.seconds,
        failure=row.failure,
        attempts=row.attempts,
        cached=row.cached,
        repairs=tuple(row.repairs),
        handle=row.handle,
        trace_id=row.trace_id,
        agent_id=row.agent_id,
        conversation_id=row.conversation_id,
    )
