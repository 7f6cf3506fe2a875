"""Batches: thousands of tasks for one agent, executed by worker processes."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

import orjson

from opposable.domain.batches import DEFAULT_BATCH_CONCURRENCY, Batch, BatchProgress, BatchTask
from opposable.domain.errors import BadInput
from opposable.domain.json_text import preview_json
from opposable.domain.records import get_utc_now
from opposable.domain.specs import AgentSpec, RateLimit
from opposable.store.store import Store

MAX_TASKS = 1_000_000


def parse_tasks(lines: Iterable[bytes | str]) -> list[BatchTask]:
    """Parse JSON lines of tasks, `{"id": …, "task": …}`. Empty lines are skipped.

    A line of an evaluation set has the key `expected`: a text or number, or a list of them.

    Raises:
        BadInput: A line is not a task, an id occurs twice, or there is no task.
    """
    tasks = [_parse_task(line, number) for number, line in enumerate(lines, 1) if line.strip()]
    if not tasks:
        raise BadInput('There are no tasks. Write one JSON object per line: {"id": "1", "task": "…"}.')
    if len(tasks) > MAX_TASKS:
        raise BadInput(f"There are {len(tasks)} tasks; a batch has at most {MAX_TASKS}. Split the file.")
    return require_unique_ids(tasks)


def require_unique_ids(tasks: list[BatchTask]) -> list[BatchTask]:
    """Return the tasks.

    Raises:
        BadInput: Two of them have the same id.
    """
    [(task_id, count)] = Counter(task.task_id for task in tasks).most_common(1)
    if count > 1:
        raise BadInput(f"The id {task_id!r} occurs {count} times. Give each task an id of its own.")
    return tasks


async def create_batch(
    store: Store,
    agent: AgentSpec,
    tasks: list[BatchTask],
    *,
    owner: str = "",
    concurrency: int = DEFAULT_BATCH_CONCURRENCY,
    model_rate: RateLimit | None = None,
    tool_rates: Mapping[str, RateLimit] | None = None,
    model_concurrency: int | None = None,
    tool_concurrency: Mapping[str, int] | None = None,
) -> Batch:
    """Store a batch for the workers. The agent is copied: later changes of it do not matter.

    Raises:
        StoreUnavailable: The store does not answer.
    """
    batch = Batch(
        uuid4().hex,
        agent,
        get_utc_now(),
        owner,
        concurrency=concurrency,
        model_rate=model_rate,
        tool_rates=dict(tool_rates or {}),
        model_concurrency=model_concurrency,
        tool_concurrency=dict(tool_concurrency or {}),
    )
    await store.batches.add(batch, tasks)
    return batch


def batch_to_json(batch: Batch, progress: BatchProgress) -> dict[str, Any]:
    """Return a batch with its progress as JSON."""
    return {
        "batch_id": batch.batch_id,
        "agent_id": batch.agent.agent_id,
        "status": "finished" if batch.status == "running" and progress.ended == progress.total else batch.status,
        "total": progress.total,
        "ended": progress.ended,
        "counts": progress.counts,
        "input_tokens": progress.input_tokens,
        "output_tokens": progress.output_tokens,
        "cost": progress.cost,
        "concurrency": batch.concurrency,
        "model_rate": None if batch.model_rate is None else batch.model_rate.model_dump(),
        "tool_rates": {tool_id: rate.model_dump() for tool_id, rate in batch.tool_rates.items()},
        "model_concurrency": batch.model_concurrency,
        "tool_concurrency": batch.tool_concurrency,
        "created_at": batch.created_at,
        "ended_at": batch.ended_at,
    }


def _parse_task(line: bytes | str, number: int) -> BatchTask:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadInput(f'Line {number} is not JSON ({error}). Write {{"id": "1", "task": "…"}}.') from error
    fields = value if isinstance(value, dict) else {}
    task_id, task = fields.get("id"), fields.get("task")
    if isinstance(task_id, int) and not isinstance(task_id, bool):
        task_id = str(task_id)
    if not isinstance(task_id, str) or not task_id or not isinstance(task, str) or not task.strip():
        raise BadInput(f'Line {number} is not a task: {preview_json(value)}. Write {{"id": "1", "task": "…"}}.')
    return BatchTask(task_id, task, _parse_expected(fields.get("expected"), number))


def _parse_expected(value: Any, number: int) -> tuple[str, ...]:
    expected = value if isinstance(value, list) else [] if value is None else [value]
    values = [int(item) if isinstance(item, float) and item.is_integer() else item for item in expected]
    texts = tuple(str(item) for item in values if isinstance(item, str | int | float) and not isinstance(item, bool))
    if len(texts) != len(expected) or not all(text.strip() for text in texts):
        raise BadInput(
            f"Line {number}: `expected` is {preview_json(value)}. Write a text or number that correct answers contain, "
            "or a list of them."
        )
    return texts
