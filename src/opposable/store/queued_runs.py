"""Repository of queued runs: handed to the workers, and the state that their executions share."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, func, select, update

from opposable.domain.batches import DEFAULT_BATCH_CONCURRENCY, QueuedRun, QueuedRunStatus, RunOutcome
from opposable.domain.records import Run
from opposable.domain.specs import RateLimit
from opposable.store.batches import OPEN_STATUSES, to_batch
from opposable.store.database import Repository
from opposable.store.runs import run_to_row
from opposable.store.tables import approvals, batches, call_attempts, queued_runs, rate_slots, runs

MAX_QUEUED_CHATS = 200
"""Chats that are handed to the workers at a time."""
MAX_QUEUED_TASKS = 50
"""Tasks of a batch that are handed to the workers at a time: chats and takeovers wait meanwhile."""


class QueuedRunRepository(Repository):
    """Runs that workers execute, those of batches and of chats."""

    async def add(self, queued: QueuedRun, run: Run) -> None:
        """Queue a run that belongs to no batch, and store its record, both or neither."""
        row = {
            "id": queued.run_id,
            "run_id": queued.run_id,
            "batch_id": "",
            "position": 0,
            "task_id": queued.run_id,
            "request": queued.request,
            "attempt": 0,
            "status": "queued",
        }
        async with self._database.begin_write() as connection:
            await connection.execute(runs.insert().values(**run_to_row(run)))
            await connection.execute(queued_runs.insert().values(**row))

    async def get(self, run_id: str) -> QueuedRun | None:
        """Return a queued run with its batch."""
        table = queued_runs.c
        query = select(table.request, table.batch_id, table.status).where(table.run_id == run_id)
        async with self._database.begin_read() as connection:
            row = (await connection.execute(query)).one_or_none()
            if row is None:
                return None
            batch_query = select(batches).where(batches.c.id == row.batch_id)
            batch_row = (await connection.execute(batch_query)).one_or_none() if row.batch_id else None
        return QueuedRun(run_id, row.request, None if batch_row is None else to_batch(batch_row), row.status)

    async def list_ready_chats(self) -> tuple[str, ...]:
        """Return the ids of chats to hand to the workers."""
        chats = select(queued_runs.c.run_id).where(queued_runs.c.status == "queued", queued_runs.c.batch_id == "")
        async with self._database.begin_read() as connection:
            return tuple((await connection.scalars(chats.limit(MAX_QUEUED_CHATS))).all())

    async def list_ready_tasks(self) -> tuple[str, ...]:
        """Return the ids of tasks to hand to the workers, within the concurrency of their batch."""
        table = queued_runs.c
        running = select(batches.c.id, batches.c.options).where(batches.c.status == "running")
        run_ids: list[str] = []
        async with self._database.begin_read() as connection:
            for batch_id, options in (await connection.execute(running)).all():
                is_submitted = (table.batch_id == batch_id) & (table.status == "submitted")
                submitted = await connection.scalar(select(func.count()).where(is_submitted)) or 0
                free = min(options.get("concurrency", DEFAULT_BATCH_CONCURRENCY) - submitted, MAX_QUEUED_TASKS)
                if free > 0:
                    tasks = select(table.run_id).where(table.batch_id == batch_id, table.status == "queued")
                    run_ids += (await connection.scalars(tasks.order_by(table.position).limit(free))).all()
        return tuple(run_ids)

    async def list_resumable(self) -> tuple[str, ...]:
        """Return the ids of waiting runs whose approvals are decided, or whose cancellation is requested."""
        pending = select(approvals.c.id).where(
            approvals.c.run_id == queued_runs.c.run_id, approvals.c.status == "pending"
        )
        cancelled = select(runs.c.id).where(runs.c.id == queued_runs.c.run_id, runs.c.cancel_requested)
        query = select(queued_runs.c.run_id).where(
            queued_runs.c.status == "waiting", ~pending.exists() | cancelled.exists()
        )
        async with self._database.begin_read() as connection:
            return tuple((await connection.scalars(query)).all())

    async def mark_submitted(self, run_ids: Sequence[str]) -> None:
        """Mark queued runs as submitted. One that a worker has already suspended or ended is not changed."""
        is_queued = queued_runs.c.run_id.in_(run_ids) & (queued_runs.c.status == "queued")
        await self._database.execute(update(queued_runs).where(is_queued).values(status="submitted"))

    async def set_status(self, run_ids: Sequence[str], status: QueuedRunStatus) -> None:
        """Change the status of runs that have not ended."""
        is_open = queued_runs.c.run_id.in_(run_ids) & queued_runs.c.status.in_(OPEN_STATUSES)
        await self._database.execute(update(queued_runs).where(is_open).values(status=status))

    async def finish(self, run_id: str, outcome: RunOutcome) -> None:
        """Store how a run ended, and forget the attempts of its calls."""
        values: dict[str, Any] = {
            name: getattr(outcome, name) for name in ("status", "text", "calls", "usage", "error", "cost")
        }
        async with self._database.begin_write() as connection:
            await connection.execute(update(queued_runs).where(queued_runs.c.run_id == run_id).values(**values))
            await connection.execute(delete(call_attempts).where(call_attempts.c.run_id == run_id))

    async def count_attempts(self, key: str) -> int:
        """Return how often a call was started."""
        query = select(call_attempts.c.attempts).where(call_attempts.c.key == key)
        async with self._database.begin_read() as connection:
            return await connection.scalar(query) or 0

    async def set_attempts(self, key: str, run_id: str, attempts: int) -> None:
        """Store how often a call was started."""
        insert = self._database.build_insert(call_attempts).values(key=key, run_id=run_id, attempts=attempts)
        upsert = insert.on_conflict_do_update(index_elements=["key"], set_={"attempts": attempts})
        await self._database.execute(upsert)

    async def reserve_slot(self, key: str, limit: RateLimit) -> float:
        """Reserve the next of the evenly spaced times at which `key` may be used, over all processes.

        Returns:
            The seconds until that time.
        """
        interval = limit.seconds / limit.calls
        now = func.extract("epoch", func.clock_timestamp())
        insert = self._database.build_insert(rate_slots).values(key=key, next_at=now + interval)
        next_at = func.greatest(rate_slots.c.next_at, now) + interval
        upsert = insert.on_conflict_do_update(index_elements=["key"], set_={"next_at": next_at})
        async with self._database.begin_write() as connection:
            wait = await connection.scalar(upsert.returning(rate_slots.c.next_at - interval - now))
        return max(0.0, float(wait or 0.0))
