"""What is forgotten: calls and runs beyond an age or a number, a batch at a time."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Column, Table, delete, select

from opposable.domain.errors import BadInput
from opposable.domain.records import now
from opposable.store.database import Database
from opposable.store.tables import run_events, runs, tool_executions

BATCH = 1000
"""Rows forgotten in one transaction: writers come in between."""


@dataclass(frozen=True, slots=True)
class Keep:
    """What is kept: at most so old, at most so many (the newest); None for no limit."""

    age: timedelta | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many calls and runs were forgotten."""

    executions: int
    runs: int


class Retention:
    """Forgets what is too old or too much. A run that still goes on is kept whatever its age."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def enforce(self, keep: Keep) -> Forgotten:
        """Forget what is beyond `keep`. Cheap when there is nothing to forget: a few look-ups in an index.

        Raises: `BadInput` for a negative age or number.
        """
        if (keep.count is not None and keep.count < 0) or (keep.age is not None and keep.age < timedelta()):
            raise BadInput("What is kept cannot be of negative age or number.")
        return Forgotten(
            await self._forget(tool_executions, tool_executions.c.at, keep),
            await self._forget(runs, runs.c.started_at, keep),
        )

    async def _forget(self, table: Table, at: Column[Any], keep: Keep) -> int:
        edges = []
        if keep.age is not None:
            edges.append(at < now() - keep.age)
        if keep.count is not None and (edge := await self._edge(table, at, keep.count)) is not None:
            edges.append((at < edge[0]) | ((at == edge[0]) & (table.c.id <= edge[1])))
        total = 0
        for beyond in edges:
            total += await self._forget_where(table, at, beyond)
        return total

    async def _edge(self, table: Table, at: Column[Any], count: int) -> tuple[datetime, str] | None:
        """The newest row that is one too many."""
        query = select(at, table.c.id).order_by(at.desc(), table.c.id.desc()).offset(count).limit(1)
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else (row[0], row[1])

    async def _forget_where(self, table: Table, at: Column[Any], beyond: Any) -> int:
        conditions = [beyond] if table is not runs else [beyond, runs.c.status.not_in(("running", "waiting"))]
        oldest = select(table.c.id).where(*conditions).order_by(at, table.c.id).limit(BATCH)
        total = 0
        while True:
            async with self._database.writing() as connection:
                ids = (await connection.scalars(oldest)).all()
                if table is runs:
                    await connection.execute(delete(run_events).where(run_events.c.run_id.in_(ids)))
                await connection.execute(delete(table).where(table.c.id.in_(ids)))
            total += len(ids)
            if len(ids) < BATCH:
                return total
