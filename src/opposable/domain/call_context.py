"""The context of a tool call: its ids, the run's language, human approval."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from opposable.domain.language import Language

if TYPE_CHECKING:  # importing pydantic would double the start-up time of a library of plain functions
    from opposable.domain.specs import AnyToolSpec


@dataclass(frozen=True, slots=True)
class Approved:
    """The decision to run a call."""


@dataclass(frozen=True, slots=True)
class Denied:
    """The decision not to run a call; the model sees the reason."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that needs human approval.

    `arguments` is a copy of the arguments of the call, so that changing it does not change the call.
    """

    spec: "AnyToolSpec"
    tool_id: str
    name: str
    arguments: dict[str, Any]
    context: "CallContext"


ResultScope: TypeAlias = str | tuple[str, str]
"""The id of a run, or an owner and the id of a conversation."""

ApprovalHandler: TypeAlias = Callable[[ApprovalRequest], Awaitable[Approved | Denied]]
"""Requests human approval of a call. It may take any time: the tool's time-out begins afterwards."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """Context of a tool call: ids for records, the language of the run, and callbacks.

    Attributes:
        owner: The id of the API key that calls the tool, "" without keys.
        idempotency_key: The same for every attempt of one call.
        report: Takes text that is shown while the tool runs, None where it is not shown. Call it in the event loop.
        approve: Requests human approval, None for the handler of the tool library.
        requires_approval: Whether this call needs approval, also if its tool does not.
    """

    run_id: str = ""
    call_id: str = ""
    language: Language = "en"
    trace_id: str = ""
    agent_id: str = ""
    conversation_id: str = ""
    owner: str = ""
    idempotency_key: str = ""
    report: Callable[[str], None] | None = None
    approve: ApprovalHandler | None = None
    requires_approval: bool = False

    @property
    def result_scope(self) -> ResultScope:
        """What may read the whole of a long result: the conversation of its owner, or the run if it is in none."""
        return (self.owner, self.conversation_id) if self.conversation_id else self.run_id


NO_CONTEXT = CallContext()
