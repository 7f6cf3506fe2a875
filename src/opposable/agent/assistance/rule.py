"""What a rule of assistance may do, and the run that the rules share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opposable.agent.failure_memory import NO_PATTERNS, FailurePatterns
from opposable.agent.failure_recorder import FailureRecorder
from opposable.agent.policy import RunPolicy, Step
from opposable.domain.language import Language
from opposable.domain.messages import Message
from opposable.domain.tools import FailureKind, ToolCall, ToolDefinition, ToolResult
from opposable.models.base import ToolChoice
from opposable.tools.library import ToolLibrary

if TYPE_CHECKING:  # specs are pydantic's, and only a run in trouble asks for them
    from opposable.domain.specs import AnyToolSpec

TRANSIENT_FAILURES: tuple[FailureKind, ...] = ("timeout", "unavailable", "rate_limited")
"""Failures that may be gone at the next attempt."""


@dataclass(slots=True)
class AssistedRun:
    """What the rules of one run know.

    Attributes:
        task: The last message of the user.
        conversation: The text of all messages before the run.
        patterns: The failures known when the run started.
        recorder: Records the failures of this run, None without a memory.
        steps: The finished calls, oldest first, as the tools returned them.
        arguments: The arguments of the calls of the turn, by call id; {} if they could not be read.
        blocked_ids: The calls of the turn that a rule blocked.
        suggested_arguments: Arguments that may correct a failed call of the turn, by call id.
        plan: What the model announced before its calls.
        expects_plan: Whether the text of the next calls is a new plan.
        advice: What the model should do next, for the status note.
        next_tool_choice: The tool choice of the next request.
    """

    library: ToolLibrary
    task: str
    conversation: str
    language: Language
    patterns: FailurePatterns = NO_PATTERNS
    recorder: FailureRecorder | None = None
    steps: Sequence[Step] = ()
    arguments: dict[str, dict[str, Any]] = field(default_factory=dict)
    blocked_ids: set[str] = field(default_factory=set)
    suggested_arguments: dict[str, dict[str, Any]] = field(default_factory=dict)
    plan: str = ""
    expects_plan: bool = True
    advice: str = ""
    next_tool_choice: ToolChoice = "auto"

    @property
    def turn_steps(self) -> list[Step]:
        """The calls of the last turn."""
        latest = self.steps[len(self.steps) - len(self.arguments) :]
        return [step for step in latest if step.turn == latest[-1].turn]

    def get_owner_id(self, name: str) -> str:
        """Return the id that a tool is registered by; the name itself if there is no such tool."""
        tool = self.library.find_registered_tool(name)
        return name if tool is None else tool.entry.tool_id

    def get_spec(self, name: str) -> "AnyToolSpec | None":
        """Return the spec of a tool."""
        return self.library.get_spec(self.get_owner_id(name))

    def is_read_only(self, name: str) -> bool:
        """Return whether calls of a tool change nothing."""
        traits = self.library.get_traits(name)
        return traits is not None and traits.read_only

    def is_polled(self, name: str) -> bool:
        """Return whether the spec of a tool says that it is polled on purpose."""
        spec = self.get_spec(name)
        return spec is not None and bool(spec.metadata.get("polling"))

    def is_retryable(self, result: ToolResult) -> bool:
        """Return whether the same call may succeed later; one that may have taken effect is never repeated."""
        return result.failure in TRANSIENT_FAILURES and not result.outcome_unknown


class AssistanceRule(RunPolicy):
    """One rule of assistance: a policy that can also change the requests and the replies."""

    def __init__(self, run: AssistedRun) -> None:
        self.run = run

    def extend_request(self, messages: list[Message]) -> list[Message]:
        """Return the messages of a request with what the rule adds; the history stays without it."""
        return messages

    def extend_definitions(self, definitions: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
        """Return the tool definitions of a request with what the rule adds."""
        return definitions

    def select_calls(self, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
        """Return the calls of a reply that are to be made now."""
        return calls
