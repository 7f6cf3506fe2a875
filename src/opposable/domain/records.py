"""Stored records, such as conversations, runs, failures and API keys."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar
from uuid import uuid4

from opposable.domain.json_text import dump_json
from opposable.domain.messages import Message
from opposable.domain.tools import FailureKind, ToolResult
from opposable.domain.usage import NO_USAGE, Usage

if TYPE_CHECKING:  # importing pydantic would double the start-up time of a library of plain functions
    from opposable.domain.specs import AgentSpec, AnyToolSpec, RateLimit

T = TypeVar("T")

RunStatus = Literal["queued", "running", "waiting", "finished", "failed", "cancelled"]
"""State of a run; "queued" means for a worker, "waiting" for human approval."""

ENDED_STATUSES: tuple[Literal["finished", "failed", "cancelled"], ...] = ("finished", "failed", "cancelled")
"""The states of a run that has ended."""

RunKind = Literal["chat", "data"]
"""What a run does; "data" answers a question about data."""

DURABLE_WORKER = "durable"
"""The `worker` of durable runs: any worker process may execute them."""

ApprovalStatus = Literal["pending", "approved", "denied", "expired"]
"""Decision on a call; "expired" where none came in time."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list.

    `next_cursor` is the cursor of the next page, "" on the last one. `unreadable_rows` maps keys of rows that could
    not be read to the reason.
    """

    items: tuple[T, ...]
    next_cursor: str = ""
    unreadable_rows: dict[str, str] = field(default_factory=dict)


async def load_all_pages(load_page: Callable[[str], Awaitable[Page[T]]]) -> list[T]:
    """Return the items of all pages; `load_page` returns the page after a cursor."""
    page = await load_page("")
    items = list(page.items)
    while page.next_cursor:
        page = await load_page(page.next_cursor)
        items += page.items
    return items


@dataclass(frozen=True, slots=True)
class Execution:
    """The record of a tool call.

    Attributes:
        arguments: With secrets redacted.
        result: The text for the model, empty where `handle` is the key of the stored result.
        at: Time of the end of the call, in UTC.
        seconds: Wall time.
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
    """Create the record of a call that has just ended, with a new id."""
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


def scope_conversation_id(conversation_id: str, owner: str) -> str:
    """Return the id under which an owner's conversation is stored if another owner has that id.

    Clients choose ids, so an id that is taken must behave like a new one. Clients cannot send the character "~".
    """
    return f"{conversation_id}~{owner}"


def get_public_conversation_id(stored_id: str) -> str:
    """Return the id of a conversation that its owner uses."""
    return stored_id.partition("~")[0]


@dataclass(frozen=True, slots=True)
class ExecutionFilter:
    """A filter of executions; all fields that are set must match.

    `failure` is a kind of failure, or "any" for every failed call. `since` is inclusive, `until` exclusive; both are
    in UTC. `owner` selects the executions of the runs of one API key.
    """

    tool_id: str = ""
    agent_id: str = ""
    run_id: str = ""
    conversation_id: str = ""
    failure: FailureKind | Literal["any"] | None = None
    since: datetime | None = None
    until: datetime | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class ExecutionStats:
    """Calls of a tool, those that failed, and the mean wall time in seconds."""

    calls: int
    failures: int
    mean_seconds: float


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """A stored agent. `version` counts its changes from 1.

    Earlier versions remain stored.
    """

    spec: "AgentSpec"
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ToolVersion:
    """A version of a stored tool; versions count from 1. Enabling and disabling a tool creates no version.

    `saved_by` is the name of the API key that saved it, "" if unknown.
    """

    spec: "AnyToolSpec"
    version: int
    saved_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation without its messages.

    `owner` is the id of the API key that created it, "" without keys.
    """

    conversation_id: str
    owner: str = ""
    agent_id: str = ""
    title: str = ""
    messages: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """The messages that one run adds to a conversation.

    `turn_id` is the id of the run.
    """

    turn_id: str
    conversation: Conversation
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A run of an agent.

    `text` is the answer and `reason` the `StopReason`. `model` is the name by which the service knows its model.
    `worker` is the process that runs it; any process may set `cancel_requested`.
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
    kind: RunKind = "chat"
    model: str = ""


def turn_from_run(run: Run, messages: tuple[Message, ...]) -> ConversationTurn:
    """Return the messages that a run adds to its conversation. The task of its first run is the title."""
    title = " ".join(run.task.split())[:80]
    conversation = Conversation(run.conversation_id, run.owner, run.agent_id, title)
    return ConversationTurn(run.run_id, conversation, messages)


@dataclass(frozen=True, slots=True)
class RunEvent:
    """A stored event of a run. `sequence` counts the events of a run from 1.

    `data` is JSON.
    """

    run_id: str
    sequence: int
    kind: str
    data: dict[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed call, stored across runs.

    Tool, action, kind, scope and the fingerprint of arguments and error identify it.

    Attributes:
        scope: An agent's id, with its owner's; or the scope that several agents share, which has no values.
        correction: The last correction that worked, as JSON, None where there was none.
        pinned: Whether it is exempt from expiry.
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
        """32 hexadecimal digits computed from the identifying fields."""
        return canonical_sha256([self.scope, self.tool_id, self.action, self.kind, self.fingerprint])[:32]

    @property
    def qualified_tool_id(self) -> str:
        """The id of the tool with its action."""
        return f"{self.tool_id}.{self.action}" if self.action else self.tool_id

    @property
    def is_informative(self) -> bool:
        """Whether it recurred, was corrected or is pinned."""
        return self.count > 1 or self.correction is not None or self.pinned


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response of the gateway that later requests can read and continue.

    Attributes:
        owner: The id of the API key that created it, "" for none.
        model: The name of the model in the request.
        url: The URL of the API where the server of the model stores it, "" for a response that is stored here.
        items: The items up to the response, in the form of the API.
        body: The response, None if the server of the model stores it.
    """

    response_id: str
    owner: str
    model: str
    url: str
    items: tuple[dict[str, Any], ...]
    body: dict[str, Any] | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ToolPin:
    """The accepted definition of an MCP server's tool, and a pending one.

    `sha256` is the hash of `definition` in canonical JSON. `pending_sha256` and `pending` describe the changed
    definition, "" and None where the tool has not changed.
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
    """The record of an API key: its first characters and its hash.

    `rate_limit` and `token_budget` (total tokens) are None for no limit.
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
    """A call that needs human approval, and its decision.

    `arguments` are exactly those the tool will receive. `sha256` is `canonical_sha256(arguments)`: a call with other
    arguments needs another approval.
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


@dataclass(frozen=True, slots=True)
class QueryExample:
    """A question about a database, with SQL that a person confirmed.

    `database` is the identity of the database.
    """

    example_id: str
    database: str
    question: str
    sql: str
    created_at: datetime


def canonical_sha256(value: Any) -> str:
    """Return the hexadecimal SHA-256 of a JSON value in canonical form.

    The canonical form has sorted keys and no spaces.
    """
    return hashlib.sha256(dump_json(value, default=str, sort_keys=True)).hexdigest()


def get_utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)
