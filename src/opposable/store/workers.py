"""The processes that work on runs: their signs of life, and the runs of those that are dead."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, func, select, update

from opposable.domain.records import get_utc_now
from opposable.store.column_types import utc_now
from opposable.store.database import StoreDatabase
from opposable.store.tables import approvals, run_events, runs, workers

LOST_RUN_MESSAGE = "The process that worked on this run ended without a word. Ask again."
WORKER_RETENTION = timedelta(hours=1)
"""The age at which a dead process is forgotten."""


class WorkerRepository:
    """Who works on runs. Times are the database's own, so that clocks of several machines do not matter."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database

    async def record_heartbeat(self, worker_id: str) -> None:
        """Say that a process lives."""
        insert = self._database.build_insert(workers).values(id=worker_id, seen_at=utc_now())
        async with self._database.begin_write() as connection:
            await connection.execute(insert.on_conflict_do_update(index_elements=["id"], set_={"seen_at": utc_now()}))

    async def delete(self, worker_id: str) -> None:
        """Say that a process ends; what it leaves unfinished is anyone's to end."""
        async with self._database.begin_write() as connection:
            await connection.execute(delete(workers).where(workers.c.id == worker_id))

    async def fail_lost_runs(self, max_silence: timedelta) -> Sequence[str]:
        """End the runs of processes without a sign of life for that long: they failed. Returns the ids of these runs.

        Of several processes that do this at once, each run is ended by one.
        """
        async with self._database.begin_read() as connection:
            newest = await connection.scalar(select(func.max(workers.c.seen_at)))
            if newest is None:
                return ()
            alive = select(workers.c.id).where(workers.c.seen_at >= newest - max_silence)
            lost = runs.c.status.in_(("running", "waiting")) & runs.c.worker.not_in(alive)
            there = (await connection.scalars(select(runs.c.id).where(lost).limit(1))).first()
        return () if there is None else await self._fail_runs(lost, newest - WORKER_RETENTION)

    async def _fail_runs(self, is_lost: ColumnElement[bool], delete_before: datetime) -> Sequence[str]:
        moment = get_utc_now()
        change = update(runs).where(is_lost).values(status="failed", reason="lost", ended_at=moment)
        async with self._database.begin_write() as connection:
            ended = (await connection.scalars(change.returning(runs.c.id))).all()
            last = select(run_events.c.run_id, func.max(run_events.c.sequence)).where(run_events.c.run_id.in_(ended))
            found = await connection.execute(last.group_by(run_events.c.run_id))
            sequences = {row[0]: row[1] for row in found.all()}
            rows = [
                {
                    "run_id": run_id,
                    "sequence": sequences.get(run_id, 0) + 1,
                    "kind": "error",
                    "data": {"kind": "Lost", "message": LOST_RUN_MESSAGE},
                    "at": moment,
                }
                for run_id in ended
            ]
            if rows:
                await connection.execute(self._database.build_insert(run_events).on_conflict_do_nothing(), rows)
            waiting = approvals.c.run_id.in_(ended) & (approvals.c.status == "pending")
            expired = {"status": "expired", "reason": "the run ended", "decided_at": moment}
            await connection.execute(update(approvals).where(waiting).values(**expired))
            await connection.execute(delete(workers).where(workers.c.seen_at < delete_before))
        return ended
