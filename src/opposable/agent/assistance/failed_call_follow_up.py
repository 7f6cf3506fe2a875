"""Rule: ask for a corrected call when the model would answer right after a failed one."""

from dataclasses import dataclass
from typing import Any

from opposable.agent.assistance import prompts
from opposable.agent.assistance.argument_suggestions import is_quoted
from opposable.agent.assistance.rule import AssistanceRule, AssistedRun
from opposable.agent.failure_fingerprints import format_arguments
from opposable.agent.policy import Directive, Step
from opposable.domain.messages import Message
from opposable.models.base import ForcedTool

MAX_FOLLOW_UPS = 3
"""Follow-ups of one run."""


@dataclass(frozen=True, slots=True)
class _FailedCall:
    step: Step
    suggested_arguments: dict[str, Any]
    is_blocked: bool
    has_known_correction: bool
    is_own_mistake: bool


class FailedCallFollowUp(AssistanceRule):
    """Ask for a correction if one is known, if the failure is temporary, or if the mistake is the model's own.

    The model's own mistakes are invalid arguments, unknown tools, and values that the error quotes and the user did not
    say. What the user said is never corrected by force: "Cancel order B-5" must not cancel another order. A call that
    a person denied, or that may have taken effect, is never asked for again.
    """

    switch = "follow_ups"

    def __init__(self, run: AssistedRun) -> None:
        super().__init__(run)
        self._failed: _FailedCall | None = None
        self._follow_ups_left = MAX_FOLLOW_UPS

    def annotate(self, step: Step) -> str:
        """Record the failed call of the turn; one that can be corrected comes first."""
        run, call = self.run, step.call
        if self._failed is not None and self._failed.step.turn != step.turn:
            self._failed = None
        if step.result.failure in (None, "denied") or run.is_outcome_unknown(step.result):
            return ""
        suggested = run.suggested_arguments.get(call.id, {})
        if self._failed is None or (suggested and not self._failed.suggested_arguments):
            self._failed = _FailedCall(
                step,
                suggested,
                call.id in run.blocked_ids,
                bool(suggested) or run.is_retryable(step.result),
                is_own_mistake(step, run.task),
            )
        return ""

    def before_answer(self, reply: Message) -> Directive | None:
        """Ask for a corrected call after a turn with a failed one."""
        failed, self._failed = self._failed, None
        if failed is None or not self._follow_ups_left or failed.step.turn != self.run.turn:
            return None
        return self._ask_for_correction(failed) if failed.has_known_correction or failed.is_own_mistake else None

    async def after_turn(self) -> Directive | None:
        """Ask at once if the model repeats a failed call whose correction is known."""
        failed = self._failed
        if failed is None or failed.step.turn != self.run.turn or not self._follow_ups_left:
            self._failed = None
            return None
        return self._ask_for_correction(failed) if failed.is_blocked and failed.suggested_arguments else None

    def _ask_for_correction(self, failed: _FailedCall) -> Directive:
        self._failed = None
        self._follow_ups_left -= 1
        run, name = self.run, failed.step.call.name
        run.next_tool_choice = ForcedTool(name) if failed.has_known_correction else "required"
        arguments = {**failed.step.call.arguments, **failed.suggested_arguments}
        suggestion = f"{name}({format_arguments(arguments.items())})" if failed.has_known_correction else ""
        text = prompts.ask_to_correct_call(name, suggestion, run.language)
        return Directive("replan", text, text)


def is_own_mistake(step: Step, task: str) -> bool:
    """Return whether a failure is about something that the model made up, not about what the user said."""
    if step.result.failure != "failed":
        return step.result.failure in ("invalid_arguments", "unknown_tool")
    return any(
        isinstance(value, str) and is_quoted(step.result.content, value) and value.casefold() not in task.casefold()
        for value in step.call.arguments.values()
    )
