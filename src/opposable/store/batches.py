"""Repository of batches, their tasks and results."""

from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import Row, String, cast, func, select, update

from opposable.domain.batches import Batch, BatchProgress, BatchTask
from opposable.domain.expected_texts import contains_expected
from opposable.domain.records import ENDED_STATUSES, Page, get_utc_now
from opposable.domain.specs import AgentSpec, RateLimit
from opposable.store.database import Repository
from opposable.store.pagination import fetch_by_id_prefix, fetch_newest_first
from opposable.store.tables import batches, queued_runs, runs

TASKS_PER_INSERT = 1000
RESULTS_PER_READ = 1000

OPEN_STATUSES = ("queued", "submitted", "waiting")
_TOKEN_FIELDS = ("input_tokens", "output_tokens")
_tasks = queued_runs.c


class BatchRepository(Repository):
    """Batches of tasks. The workers read them from here."""

    async def add(self, batch: Batch, tasks: Sequence[BatchTask]) -> None:
        """Store a batch with its tasks, all or nothing."""
        options = {
            "concurrency": batch.concurrency,
            "model_rate": None if batch.model_rate is None else batch.model_rate.model_dump(),
            "tool_rates": {tool_id: rate.model_dump() for tool_id, rate in batch.tool_rates.items()},
            "model_concurrency": batch.model_concurrency,
            "tool_concurrency": batch.tool_concurrency,
        }
        row = {
            "id": batch.batch_id,
            "agent": batch.agent.model_dump(mode="json"),
            "owner": batch.owner,
            "status": batch.status,
            "options": options,
            "created_at": batch.created_at,
        }
        async with self._database.begin_write() as connection:
            await connection.execute(batches.insert().values(**row))
            for start in range(0, len(tasks), TASKS_PER_INSERT):
                chunk = enumerate(tasks[start : start + TASKS_PER_INSERT], start)
                rows = [_task_to_row(batch, position, task) for position, task in chunk]
                await connection.execute(queued_runs.insert(), rows)

    async def get(self, batch_id: str) -> Batch | None:
        """Return the batch with this id."""
        rows = await self._database.fetch(select(batches).where(batches.c.id == batch_id))
        return to_batch(rows[0]) if rows else None

    async def list_by_id_prefix(self, id_prefix: str) -> tuple[Batch, ...]:
        """Return the first two batches whose id starts with a prefix, ordered by id."""
        return await fetch_by_id_prefix(self._database, select(batches), batches.c.id, to_batch, id_prefix)

    async def list(self, *, owner: str | None = None, after: str = "", limit: int = 100) -> Page[Batch]:
        """Return a page of batches, newest first.

        `after` is the cursor of the previous page, `limit` a number from 1 to 1000.
        """
        query = select(batches) if owner is None else select(batches).where(batches.c.owner == owner)
        return await fetch_newest_first(
            self._database, query, batches.c.created_at, batches.c.id, to_batch, after=after, limit=limit
        )

    async def get_progress(self, batch_id: str) -> BatchProgress:
        """Return the number of tasks by status, with tokens and cost."""
        return (await self.get_progress_by_batch([batch_id]))[batch_id]

    async def get_progress_by_batch(self, batch_ids: Sequence[str]) -> dict[str, BatchProgress]:
        """Return the progress of each of the batches by its id."""
        tokens = [func.coalesce(func.sum(_tasks.usage[name].as_integer()), 0) for name in _TOKEN_FIELDS]
        cost = func.coalesce(func.sum(_tasks.cost), 0.0)
        query = select(_tasks.batch_id, _tasks.status, func.count(), cost, *tokens)
        query = query.where(_tasks.batch_id.in_(batch_ids)).group_by(_tasks.batch_id, _tasks.status)
        rows_by_batch: dict[str, list[Sequence[Any]]] = {batch_id: [] for batch_id in batch_ids}
        for row in await self._database.fetch(query):
            rows_by_batch[row[0]].append(row)
        return {batch_id: _to_progress(batch_rows) for batch_id, batch_rows in rows_by_batch.items()}

    async def set_paused(self, batch_id: str, *, paused: bool) -> bool:
        """Stop or continue to start tasks. Return False if the batch has ended."""
        before, after = ("running", "paused") if paused else ("paused", "running")
        is_changeable = (batches.c.id == batch_id) & batches.c.status.in_((before, after))
        return await self._database.execute(update(batches).where(is_changeable).values(status=after)) > 0

    async def finish_ended(self) -> None:
        """Mark running batches without open tasks as finished."""
        open_tasks = select(_tasks.id).where(_tasks.batch_id == batches.c.id, _tasks.status.in_(OPEN_STATUSES))
        is_ended = (batches.c.status == "running") & ~open_tasks.exists()
        await self._database.execute(update(batches).where(is_ended).values(status="finished", ended_at=get_utc_now()))

    async def retry_failed(self, batch_id: str) -> int:
        """Queue the failed and cancelled tasks again, each as a new run. Return how many."""
        attempt = _tasks.attempt + 1
        is_failed = (_tasks.batch_id == batch_id) & _tasks.status.in_(("failed", "cancelled"))
        values = {"status": "queued", "attempt": attempt, "run_id": _tasks.id + "-" + cast(attempt, String)}
        restart = update(batches).where(batches.c.id == batch_id).values(status="running", ended_at=None)
        async with self._database.begin_write() as connection:
            queued = await connection.execute(update(queued_runs).where(is_failed).values(**values, error=""))
            if queued.rowcount:
                await connection.execute(restart)
        return queued.rowcount

    async def cancel(self, batch_id: str) -> None:
        """Cancel the tasks that have not started, and request the cancellation of those that have.

        A batch that has ended is not changed.
        """
        is_task = _tasks.batch_id == batch_id
        is_active = runs.c.id.in_(select(_tasks.run_id).where(is_task, _tasks.status.in_(("submitted", "waiting"))))
        values = {"status": "cancelled", "error": "The batch was cancelled."}
        async with self._database.begin_write() as connection:
            ended = {"status": "cancelled", "ended_at": get_utc_now()}
            is_open = (batches.c.id == batch_id) & batches.c.status.in_(("running", "paused"))
            await connection.execute(update(batches).where(is_open).values(**ended))
            await connection.execute(update(queued_runs).where(is_task, _tasks.status == "queued").values(**values))
            await connection.execute(update(runs).where(is_active).values(cancel_requested=True))

    async def iterate_results(self, batch_id: str) -> AsyncIterator[dict[str, Any]]:
        """Yield one result for each task that has ended, in the order of the tasks."""
        position = -1
        while True:
            is_next = (_tasks.batch_id == batch_id) & (_tasks.position > position)
            query = select(queued_runs).where(is_next, _tasks.status.in_(ENDED_STATUSES))
            rows = await self._database.fetch(query.order_by(_tasks.position).limit(RESULTS_PER_READ))
            for row in rows:
                position = row.position
                yield _to_result(row)
            if len(rows) < RESULTS_PER_READ:
                return


def to_batch(row: Row[Any]) -> Batch:
    """Return the batch of a row."""
    options = row.options
    model_rate = options.get("model_rate")
    return Batch(
        row.id,
        AgentSpec.model_validate(row.agent),
        row.created_at,
        row.owner,
        row.status,
        options["concurrency"],
        None if model_rate is None else RateLimit.model_validate(model_rate),
        {tool_id: RateLimit.model_validate(rate) for tool_id, rate in options.get("tool_rates", {}).items()},
        row.ended_at,
        options.get("model_concurrency"),
        options.get("tool_concurrency", {}),
    )


def _to_progress(rows: Sequence[Sequence[Any]]) -> BatchProgress:
    """Return the progress of a batch from its rows by status: its id, status, count, cost and tokens."""
    input_tokens, output_tokens = (sum(int(row[index]) for row in rows) for index in (4, 5))
    counts = {row[1]: row[2] for row in rows}
    return BatchProgress(counts, input_tokens, output_tokens, sum(float(row[3]) for row in rows))


def _task_to_row(batch: Batch, position: int, task: BatchTask) -> dict[str, Any]:
    task_key = uuid4().hex
    return {
        "id": task_key,
        "run_id": task_key,
        "batch_id": batch.batch_id,
        "position": position,
        "task_id": task.task_id,
        "request": {"task": task.task} | ({"expected": list(task.expected)} if task.expected else {}),
        "attempt": 0,
        "status": "queued",
    }


def _to_result(row: Row[Any]) -> dict[str, Any]:
    result = {
        "id": row.task_id,
        "status": row.status,
        "text": row.text,
        "calls": row.calls,
        "usage": row.usage or {},
        "error": row.error or None,
    }
    if expected := row.request.get("expected"):
        result["correct"] = row.status == "finished" and contains_expected(row.text, expected)
    return result
