"""The context of a tool call: its ids, the run's language, human approval."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from opposable.domain.language import Language

if TYPE_CHECKING:  # specs are pydantic's, whose import costs a library of plain functions half its start
    from opposable.domain.specs import AnyToolSpec


@dataclass(frozen=True, slots=True)
class Approved:
    """A person said yes."""


@dataclass(frozen=True, slots=True)
class Denied:
    """A person said no; the model is told the reason."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that a person is to decide on.

    `arguments` are a copy of exactly those that will be run: nothing done to them, here or by the caller, changes
    the call.
    """

    spec: "AnyToolSpec"
    tool_id: str
    name: str
    arguments: dict[str, Any]
    context: "CallContext"


ApprovalHandler: TypeAlias = Callable[[ApprovalRequest], Awaitable[Approved | Denied]]
"""Asks a person about a call. May take as long as the person does: a tool's time-out begins after it."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a tool may know of the call it serves: ids for records, and the language of the run.

    `report` takes pieces of text to be told while the tool runs (None: nobody listens); call it in the event loop's
    thread. `idempotency_key` is the same for every try of one call. `approve` asks a person about calls that need it
    (None: whom the library was given).
    """

    run_id: str = ""
    call_id: str = ""
    language: Language = "en"
    trace_id: str = ""
    agent_id: str = ""
    conversation_id: str = ""
    idempotency_key: str = ""
    report: Callable[[str], None] | None = None
    approve: ApprovalHandler | None = None


NO_CONTEXT = CallContext()
