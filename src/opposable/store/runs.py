"""Repository of runs and their events."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Row, select, update

from opposable.domain.records import ENDED_STATUSES, Page, Run, RunEvent, RunKind, RunStatus
from opposable.domain.usage import Usage
from opposable.store.database import Repository
from opposable.store.pagination import fetch_by_id_prefix, fetch_newest_first
from opposable.store.rows import to_record, to_row
from opposable.store.tables import batches, queued_runs, run_events, runs


class RunRepository(Repository):
    """Runs, active and ended, with their recorded events."""

    async def save(self, *changed_runs: Run) -> None:
        """Store new or changed runs. A cancellation request in the store is preserved.

        Of several versions of one run, the last is stored.
        """
        if not changed_runs:
            return
        rows = [run_to_row(run) for run in {run.run_id: run for run in changed_runs}.values()]
        insert = self._database.build_insert(runs)
        values = {name: insert.excluded[name] for name in rows[0] if name not in ("id", "cancel_requested")}
        async with self._database.begin_write() as connection:
            await connection.execute(insert.on_conflict_do_update(index_elements=["id"], set_=values), rows)

    async def get(self, run_id: str) -> Run | None:
        """Return the run with this id."""
        [rows] = await self._database.fetch_inline(select(runs).where(runs.c.id == run_id))
        return _to_run(rows[0]) if rows else None

    async def list_by_id_prefix(self, id_prefix: str) -> tuple[Run, ...]:
        """Return the first two runs whose id starts with a prefix, ordered by id."""
        return await fetch_by_id_prefix(self._database, select(runs), runs.c.id, _to_run, id_prefix)

    async def list(
        self,
        *,
        owner: str | None = None,
        agent_id: str = "",
        conversation_id: str = "",
        status: RunStatus | None = None,
        kind: RunKind | None = None,
        after: str = "",
        limit: int = 100,
    ) -> Page[Run]:
        """Return a page of matching runs, newest first.

        `after` is the cursor of the previous page, `limit` a number from 1 to 1000.
        """
        conditions = [
            runs.c[name] == value
            for name, value in (
                ("agent_id", agent_id),
                ("conversation_id", conversation_id),
                ("status", status),
                ("kind", kind),
            )
            if value
        ]
        if owner is not None:
            conditions.append(runs.c.owner == owner)
        query = select(runs).where(*conditions)
        return await fetch_newest_first(
            self._database, query, runs.c.started_at, runs.c.id, _to_run, after=after, limit=limit
        )

    async def request_cancel(self, run_id: str) -> bool:
        """Request the cancellation of a run. Return whether the run is active."""
        is_active = (runs.c.id == run_id) & runs.c.status.not_in(ENDED_STATUSES)
        return await self._database.execute(update(runs).where(is_active).values(cancel_requested=True)) > 0

    async def list_cancel_requested(self, run_ids: Collection[str]) -> frozenset[str]:
        """Return which of these runs have a cancellation request, of their own or of their batch."""
        own = select(runs.c.id).where(runs.c.id.in_(run_ids), runs.c.cancel_requested)
        tasks = select(queued_runs.c.run_id).join(batches, batches.c.id == queued_runs.c.batch_id)
        cancelled_tasks = tasks.where(queued_runs.c.run_id.in_(run_ids), batches.c.status == "cancelled")
        own_rows, task_rows = await self._database.fetch_inline(own, cancelled_tasks)
        return frozenset(row[0] for row in (*own_rows, *task_rows))

    async def add_events(self, new_events: Sequence[RunEvent]) -> None:
        """Store events. An event that is stored already keeps its row."""
        if not new_events:
            return
        insert = self._database.build_insert(run_events).on_conflict_do_nothing(index_elements=["run_id", "sequence"])
        async with self._database.begin_write() as connection:
            await connection.execute(insert, [to_row(run_event) for run_event in new_events])

    async def list_events(self, run_id: str, *, after: int = 0, limit: int = 1000) -> tuple[RunEvent, ...]:
        """Return at most `limit` events of a run, in order, with a sequence number above `after`."""
        query = select(run_events).where(run_events.c.run_id == run_id, run_events.c.sequence > after)
        rows = await self._database.fetch(query.order_by(run_events.c.sequence).limit(limit))
        return tuple(to_record(RunEvent, row) for row in rows)


def run_to_row(run: Run) -> dict[str, Any]:
    """Return the row of a run."""
    return to_row(run, "run_id", "usage") | {
        "id": run.run_id,
        "input_tokens": run.usage.input_tokens,
        "output_tokens": run.usage.output_tokens,
        "requests": run.usage.requests,
    }


def _to_run(row: Row[Any]) -> Run:
    return to_record(Run, row, run_id=row.id, usage=Usage(row.input_tokens, row.output_tokens, row.requests))
