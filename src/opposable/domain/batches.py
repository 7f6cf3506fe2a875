"""Runs that wait for a worker, and batches of them."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from opposable.domain.records import ENDED_STATUSES

if TYPE_CHECKING:  # importing pydantic would double the start-up time of a library of plain functions
    from opposable.domain.specs import AgentSpec, RateLimit

BatchStatus = Literal["running", "paused", "finished", "cancelled"]
"""State of a batch; "paused" starts no further task."""

QueuedRunStatus = Literal["queued", "submitted", "waiting", "finished", "failed", "cancelled"]
"""State of a queued run; a "submitted" one is in the queue of the workers, a "waiting" one needs human approval."""

DEFAULT_BATCH_CONCURRENCY = 50
"""Tasks of a batch that run at once, over all workers."""


@dataclass(frozen=True, slots=True)
class BatchTask:
    """One task of a batch; `task_id` is the id of the caller.

    A correct answer contains all `expected` texts. Without any, answers are not graded.
    """

    task_id: str
    task: str
    expected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of tasks for one agent.

    Attributes:
        agent: The agent as it was when the batch was created.
        owner: The id of the API key that created the batch, "" without keys.
        concurrency: The number of tasks that run at once, over all workers.
        model_rate: The limit of model requests, over all workers.
        tool_rates: The limits of calls by tool id, over all workers.
        model_concurrency: The number of model requests at a time, over all workers; None for no limit.
        tool_concurrency: The number of calls at a time by tool id, over all workers.
    """

    batch_id: str
    agent: "AgentSpec"
    created_at: datetime
    owner: str = ""
    status: BatchStatus = "running"
    concurrency: int = DEFAULT_BATCH_CONCURRENCY
    model_rate: "RateLimit | None" = None
    tool_rates: "dict[str, RateLimit]" = field(default_factory=dict)
    ended_at: datetime | None = None
    model_concurrency: int | None = None
    tool_concurrency: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """The number of tasks of a batch by status, with the tokens and the cost so far.

    `cost` is in the currency of the model's price, 0.0 where no price is set.
    """

    counts: dict[QueuedRunStatus, int]
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    @property
    def total(self) -> int:
        """The number of tasks."""
        return sum(self.counts.values())

    @property
    def ended(self) -> int:
        """The number of tasks that have a result."""
        return sum(self.counts.get(status, 0) for status in ENDED_STATUSES)


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A run that a worker executes.

    Attributes:
        request: The arguments of the run as JSON: `task`, and for a chat `agent`, `conversation_id`, `owner`,
            `trace_id`, `stream` and `limits`.
        batch: The batch of the run, None for a chat.
    """

    run_id: str
    request: dict[str, Any]
    batch: Batch | None = None
    status: QueuedRunStatus = "queued"


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a queued run ended. `calls` is the number of its tool calls, `text` its answer."""

    status: QueuedRunStatus
    text: str = ""
    calls: int = 0
    usage: dict[str, int] = field(default_factory=dict)
    error: str = ""
    cost: float = 0.0
