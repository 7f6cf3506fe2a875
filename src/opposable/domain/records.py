"""What is kept: agents, conversations, runs and their calls, failures, pins, keys, approvals."""

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar
from uuid import uuid4

import orjson

from opposable.domain.messages import Message
from opposable.domain.tools import FailureKind, ToolResult
from opposable.domain.usage import NO_USAGE, Usage

if TYPE_CHECKING:  # specs are pydantic's, whose import would cost a plain library half its start
    from opposable.domain.specs import AgentSpec, RateLimit

T = TypeVar("T")

RunStatus = Literal["running", "waiting", "finished", "failed", "cancelled"]
"""Where a run stands; "waiting" is for a person's approval."""

ApprovalStatus = Literal["pending", "approved", "denied", "expired"]
"""What was decided of a call; "expired" when nobody did in time."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list. `next` is the cursor of the part that follows, "" at the end.

    `set_aside` names rows that could not be read, with the reason.
    """

    items: tuple[T, ...]
    next_cursor: str = ""
    unreadable_rows: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Execution:
    """One call as it was made. `arguments` have secrets redacted; `seconds` is wall time; `at` is in UTC.

    `result` is what the model was told, or empty where `handle` says where the whole is kept.
    """

    execution_id: str
    run_id: str
    call_id: str
    tool_id: str
    name: str
    arguments: dict[str, Any]
    result: str
    at: datetime
    seconds: float
    failure: FailureKind | None = None
    attempts: int = 1
    cached: bool = False
    repairs: tuple[str, ...] = ()
    handle: str = ""
    trace_id: str = ""
    agent_id: str = ""
    conversation_id: str = ""


def execution_from_result(
    result: ToolResult,
    tool_id: str,
    arguments: dict[str, Any],
    *,
    run_id: str = "",
    trace_id: str = "",
    agent_id: str = "",
    conversation_id: str = "",
) -> Execution:
    """The record of a call that has just ended, under an id of its own."""
    return Execution(
        execution_id=uuid4().hex,
        run_id=run_id,
        call_id=result.call_id,
        tool_id=tool_id,
        name=result.name,
        arguments=arguments,
        result=result.content,
        at=get_utc_now(),
        seconds=result.seconds,
        failure=result.failure,
        attempts=result.attempts,
        cached=result.cached,
        repairs=result.repairs,
        handle=result.handle,
        trace_id=trace_id,
        agent_id=agent_id,
        conversation_id=conversation_id,
    )


@dataclass(frozen=True, slots=True)
class ExecutionFilter:
    """Which executions are meant: all fields given must fit. `failure` may be a kind, or "any" for all that failed.

    `since` is included, `until` is not; both are in UTC.
    """

    tool_id: str = ""
    agent_id: str = ""
    run_id: str = ""
    conversation_id: str = ""
    failure: FailureKind | Literal["any"] | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class ExecutionStats:
    """How a tool has done: calls made, those that failed, and their mean wall time in seconds."""

    calls: int
    failures: int
    mean_seconds: float


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """An agent as it is kept. `version` counts from 1 and grows with each change; earlier versions are kept."""

    spec: "AgentSpec"
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation without its messages. `owner` is the key that began it, "" where there are no keys."""

    conversation_id: str
    owner: str = ""
    agent_id: str = ""
    title: str = ""
    messages: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """What one run adds to a conversation, which is begun where it is not there. `turn_id` is the run's id."""

    turn_id: str
    conversation: Conversation
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A run. `reason` says why it ended, in the loop's words; `text` is its answer.

    `cancel_requested` is a wish that any process may leave and the one that runs it reads. `worker` is that process.
    """

    run_id: str
    started_at: datetime
    status: RunStatus = "running"
    agent_id: str = ""
    conversation_id: str = ""
    owner: str = ""
    trace_id: str = ""
    task: str = ""
    text: str = ""
    reason: str = ""
    usage: Usage = NO_USAGE
    turns: int = 0
    tool_calls: int = 0
    ended_at: datetime | None = None
    cancel_requested: bool = False
    worker: str = ""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """What happened in a run, to be told again. `sequence` counts a run's events from 1; `data` is JSON."""

    run_id: str
    sequence: int
    kind: str
    data: dict[str, Any]
    at: datetime


SHARED_SCOPE = ""
"""The scope of failures that all agents know of."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that failed, as it is remembered across runs.

    It is one failure where tool, action, kind, fingerprint (of the arguments) and scope are the same. `scope` is an
    agent's id, or "" when all agents share it. `correction` is what put it right the last time: JSON, None when
    nothing has yet. A pinned one is never forgotten by itself.
    """

    tool_id: str
    action: str
    kind: FailureKind
    fingerprint: str
    scope: str = ""
    message: str = ""
    count: int = 1
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    correction: dict[str, Any] | None = None
    pinned: bool = False

    @property
    def failure_id(self) -> str:
        """What it is called: 32 hexadecimal digits made from what makes it one failure."""
        return canonical_sha256([self.scope, self.tool_id, self.action, self.kind, self.fingerprint])[:32]


@dataclass(frozen=True, slots=True)
class ToolPin:
    """An MCP server's tool as it was accepted, and as it looks now where that differs.

    `sha256` is of the whole canonical tool object, `definition` that object. `pending_sha256` and `pending` tell of a
    changed object that waits for acceptance ("" and None: none does).
    """

    server_id: str
    tool: str
    sha256: str
    definition: dict[str, Any]
    pinned_at: datetime
    pending_sha256: str = ""
    pending: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key without the key: `prefix` is its first characters, to know it by; `sha256` is of the whole.

    `rate_limit` and `token_budget` (tokens in all) are None for no limit.
    """

    key_id: str
    name: str
    prefix: str
    sha256: str
    created_at: datetime
    scopes: tuple[str, ...] = ()
    rate_limit: "RateLimit | None" = None
    token_budget: int | None = None
    tokens_used: int = 0
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Approval:
    """A call that waits for a person, or was decided. `arguments` are exact, as they will be given to the tool.

    `sha256` is `canonical_sha256(arguments)`: a call with other arguments is another call and needs another approval.
    """

    approval_id: str
    run_id: str
    call_id: str
    tool_id: str
    arguments: dict[str, Any]
    sha256: str
    created_at: datetime
    status: ApprovalStatus = "pending"
    agent_id: str = ""
    conversation_id: str = ""
    owner: str = ""
    decided_by: str = ""
    decided_at: datetime | None = None
    reason: str = ""


def canonical_sha256(value: Any) -> str:
    """The SHA-256, in hexadecimal, of a JSON value written with sorted keys and without spaces."""
    return hashlib.sha256(orjson.dumps(value, default=str, option=_CANONICAL_JSON_OPTIONS)).hexdigest()


def get_utc_now() -> datetime:
    """This moment, in UTC."""
    return datetime.now(UTC)


_CANONICAL_JSON_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
