"""The hooks by which a policy controls a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from opposable.agent.tool_execution import ResolvedCall
from opposable.domain.events import DecisionAction
from opposable.domain.messages import Message
from opposable.domain.tools import ToolCall, ToolResult


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a run with its result. `turn` counts the model's replies from 1."""

    turn: int
    call: ToolCall
    result: ToolResult


@dataclass(frozen=True, slots=True)
class Directive:
    """How a run goes on: `complete` ends it with the model's best answer; `message` is appended for the model."""

    action: DecisionAction
    reason: str
    message: str = ""


class RunPolicy(Protocol):
    """Controls one run. `steps` are the calls of the run so far, oldest first. A policy may do nothing in any hook."""

    def screen(self, calls: Sequence[ResolvedCall], steps: Sequence[Step]) -> Sequence[ResolvedCall]:
        """Return the calls of a reply, with `failure` set on those that must not run."""
        ...

    def annotate(self, results: Sequence[ToolResult], steps: Sequence[Step]) -> Sequence[ToolResult]:
        """Return the results of a turn, with notes where the model should know more. `steps` end with the turn."""
        ...

    def before_answer(self, reply: Message, steps: Sequence[Step]) -> Directive | None:
        """Return how to go on in place of taking a reply without calls as the answer; None takes it."""
        ...

    async def after_turn(self, steps: Sequence[Step]) -> Directive | None:
        """Return how to go on after a turn with calls; None asks the model for its next reply."""
        ...
