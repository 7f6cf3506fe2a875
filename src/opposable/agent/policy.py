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


class PolicyAround:
    """A policy that does what an inner one does, to be extended."""

    def __init__(self, inner: RunPolicy) -> None:
        self._inner = inner

    def screen(self, calls: Sequence[ResolvedCall], steps: Sequence[Step]) -> Sequence[ResolvedCall]:
        """Screen calls."""
        return self._inner.screen(calls, steps)

    def annotate(self, results: Sequence[ToolResult], steps: Sequence[Step]) -> Sequence[ToolResult]:
        """Annotate results."""
        return self._inner.annotate(results, steps)

    def before_answer(self, reply: Message, steps: Sequence[Step]) -> Directive | None:
        """Accept an answer, or not."""
        return self._inner.before_answer(reply, steps)

    async def after_turn(self, steps: Sequence[Step]) -> Directive | None:
        """Return how to go on."""
        return await self._inner.after_turn(steps)
