"""What a tool is to the rest: a definition, and a way to run it on checked arguments."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from opposable.domain.language import Language
from opposable.domain.tools import ToolDefinition

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


Approve: TypeAlias = Callable[[ApprovalRequest], Awaitable[Approved | Denied]]
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
    approve: Approve | None = None


NO_CONTEXT = CallContext()


class Tool(Protocol):
    """One thing a model can call.

    `tool_id` is the owner's name for it (`calculator`, `schema.list_tables`); `definition` is what a model is told.
    `timeout` is in seconds, None for the library's default.

    A tool may have three things more, which the library looks for: `streams`, true where `run` reports pieces as they
    come; `check(arguments)`, which raises `InvalidArguments` and does nothing else, so that nobody is asked about, and
    nothing counted for, a call that does not fit; `spec`, where it is registered without one.
    """

    @property
    def tool_id(self) -> str:
        """The owner's name of the tool, with a dot before the action where there are several."""
        ...

    @property
    def definition(self) -> ToolDefinition:
        """What a model is told: a provider-safe name, a description, a JSON Schema."""
        ...

    @property
    def timeout(self) -> float | None:
        """Seconds a call may take."""
        ...

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """The value the call brings: text, or anything JSON can hold.

        A tool whose result comes in pieces hands each to `context.report`, where there is one, and returns the whole.

        Raises: `InvalidArguments` when the arguments do not fit, told by field; other `ToolError` kinds when the tool
        says how it failed (one that is a `TimeoutError` too is told as a time-out); whatever else goes wrong inside.
        """
        ...
