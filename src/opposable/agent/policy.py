"""The hooks by which a policy controls a run."""

from collections.abc import Sequence
from dataclasses import dataclass

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


class RunPolicy:
    """Controls one run, together with the other policies of it. In a hook that a policy leaves out it does nothing.

    `steps` are the finished calls of the run, oldest first. Texts may be `LocalizedText`.
    """

    def screen(self, call: ResolvedCall, steps: Sequence[Step]) -> ResolvedCall:
        """Return a call that is to be executed, changed, or with `failure` set if it must not run."""
        return call

    def annotate(self, step: Step, steps: Sequence[Step]) -> str:
        """Observe the latest step, and return a note for its result; "" for none."""
        return ""

    def before_answer(self, reply: Message, steps: Sequence[Step]) -> Directive | None:
        """Return how to go on in place of taking a reply without calls as the answer; None takes it."""
        return None

    async def after_turn(self, steps: Sequence[Step]) -> Directive | None:
        """Return how to go on after a turn with calls; None asks the model for its next reply."""
        return None
