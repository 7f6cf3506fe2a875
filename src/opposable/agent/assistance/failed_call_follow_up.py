"""Rule: ask for a corrected call when the model would answer right after a failed one."""

import re
from collections.abc import Sequence

from opposable.agent.assistance import prompts
from opposable.agent.assistance.rule import AssistanceRule, AssistedRun
from opposable.agent.assistance.suggestions import is_quoted
from opposable.agent.failure_fingerprints import format_arguments
from opposable.agent.policy import Directive, Step
from opposable.domain.messages import Message
from opposable.models.base import ForcedTool

MAX_FOLLOW_UPS = 3
"""Follow-ups of one run."""


class FailedCallFollowUp(AssistanceRule):
    """Ask for a correction if the failure is temporary, or if the mistake is the model's own.

    The model's own mistakes are invalid arguments, unknown tools, and values that the error quotes and the conversation
    lacks. What the user said is never corrected by force: "Cancel order B-5" must not cancel another order. A call that
    a person denied, or that may have taken effect, is never asked for again.
    """

    def __init__(self, run: AssistedRun) -> None:
        super().__init__(run)
        self._failed: Step | None = None
        self._follow_ups_left = MAX_FOLLOW_UPS

    def annotate(self, step: Step, steps: Sequence[Step]) -> str:
        """Record the failed call of the turn; one that can be corrected comes first."""
        run = self.run
        if self._failed is not None and self._failed.turn != step.turn:
            self._failed = None
        if step.result.failure in (None, "denied") or step.result.outcome_unknown:
            return ""
        suggested = run.suggested_arguments
        if self._failed is None or (suggested.get(step.call.id) and not suggested.get(self._failed.call.id)):
            self._failed = step
        return ""

    def before_answer(self, reply: Message, steps: Sequence[Step]) -> Directive | None:
        """Ask for a corrected call after a turn with a failed one."""
        failed, self._failed = self._failed, None
        if failed is None or not self._follow_ups_left or failed.turn != steps[-1].turn:
            return None
        earlier = (step.result.content for step in steps if step.turn < failed.turn)
        known_text = "\n".join((self.run.conversation, *earlier))
        if self.run.is_retryable(failed.result) or is_own_mistake(failed, known_text):
            return self._ask_for_correction(failed)
        return None

    def _ask_for_correction(self, failed: Step) -> Directive:
        self._follow_ups_left -= 1
        run, name, how = self.run, failed.call.name, prompts.CALL_AS_RESULT_SAYS
        suggested = run.suggested_arguments.get(failed.call.id, {})
        if run.is_retryable(failed.result) or (suggested and run.is_read_only(name)):
            run.next_tool_choice = ForcedTool(name)
            arguments = {**failed.call.arguments, **suggested}
            how = prompts.CALL_SUGGESTION.format(call=f"{name}({format_arguments(arguments.items())})")
        text = prompts.CORRECT_CALL.format(name=name, how=how)
        return Directive("replan", text, text)


def is_own_mistake(step: Step, known_text: str) -> bool:
    """Return whether a failure is about something that the model made up: neither said nor returned before."""
    if step.result.failure != "failed":
        return step.result.failure in ("invalid_arguments", "unknown_tool")
    return any(
        isinstance(value, str)
        and is_quoted(step.result.content, value)
        and not re.search(rf"(?<![\w-]){re.escape(value)}(?![\w-])", known_text, re.ASCII | re.IGNORECASE)
        for value in step.call.arguments.values()
    )
