"""Repository of worker processes: heartbeats, and recovery of the runs of dead workers."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from opposable.domain.records import DURABLE_WORKER, get_utc_now
from opposable.store.column_types import utc_now
from opposable.store.database import Repository
from opposable.store.tables import approvals, run_events, runs, workers

LOST_RUN_MESSAGE = (
    "The process that worked on this run ended unexpectedly. A call that had started may have taken effect: "
    "check that before you send the request again."
)
WORKER_RETENTION = timedelta(hours=1)
"""How long a dead worker stays in the table."""


class WorkerRepository(Repository):
    """Workers, the processes that execute runs.

    All times are the database's own, so that clocks of several machines do not matter.
    """

    async def record_heartbeat(self, worker_id: str) -> None:
        """Record that a worker is alive."""
        insert = self._database.build_insert(workers).values(id=worker_id, seen_at=utc_now())
        upsert = insert.on_conflict_do_update(index_elements=["id"], set_={"seen_at": utc_now()})
        await self._database.execute(upsert)

    async def delete(self, worker_id: str) -> None:
        """Delete a worker that is ending. Other workers may then fail its unfinished runs."""
        await self._database.execute(delete(workers).where(workers.c.id == worker_id))

    async def fail_lost_runs(self, max_silence: timedelta) -> Sequence[str]:
        """Mark the active runs of dead workers as failed.

        Several workers may call this at once: each run is returned to one of them. A worker without a heartbeat for
        `max_silence` is dead.

        Returns:
            The ids of the failed runs.
        """
        async with self._database.begin_read() as connection:
            last_heartbeat = await connection.scalar(select(func.max(workers.c.seen_at)))
            if last_heartbeat is None:
                return ()
            live_workers = select(workers.c.id).where(workers.c.seen_at >= last_heartbeat - max_silence)
            is_active = runs.c.status.in_(("running", "waiting"))
            is_lost = is_active & (runs.c.worker != DURABLE_WORKER) & runs.c.worker.not_in(live_workers)
            lost_run = (await connection.scalars(select(runs.c.id).where(is_lost).limit(1))).first()
        return () if lost_run is None else await self._fail_runs(is_lost, last_heartbeat - WORKER_RETENTION)

    async def _fail_runs(self, is_lost: ColumnElement[bool], delete_before: datetime) -> Sequence[str]:
        ended_at = get_utc_now()
        fail_runs = update(runs).where(is_lost).values(status="failed", reason="lost", ended_at=ended_at)
        async with self._database.begin_write() as connection:
            run_ids = (await connection.scalars(fail_runs.returning(runs.c.id))).all()
            await self._add_error_events(connection, run_ids, ended_at)
            is_pending = approvals.c.run_id.in_(run_ids) & (approvals.c.status == "pending")
            expired = {"status": "expired", "reason": "the run ended", "decided_at": ended_at}
            await connection.execute(update(approvals).where(is_pending).values(**expired))
            await connection.execute(delete(workers).where(workers.c.seen_at < delete_before))
        return run_ids

    async def _add_error_events(self, connection: AsyncConnection, run_ids: Sequence[str], ended_at: datetime) -> None:
        """Append an error event to each run."""
        if not run_ids:
            return
        last_sequences = select(run_events.c.run_id, func.max(run_events.c.sequence))
        last_sequences = last_sequences.where(run_events.c.run_id.in_(run_ids)).group_by(run_events.c.run_id)
        sequences = {row[0]: row[1] for row in (await connection.execute(last_sequences)).all()}
        rows = [
            {
                "run_id": run_id,
                "sequence": sequences.get(run_id, 0) + 1,
                "kind": "error",
                "data": {"kind": "lost", "message": LOST_RUN_MESSAGE},
                "at": ended_at,
            }
            for run_id in run_ids
        ]
        await connection.execute(self._database.build_insert(run_events).on_conflict_do_nothing(), rows)
