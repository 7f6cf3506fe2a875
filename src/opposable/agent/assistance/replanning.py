"""Rule: after repeated failures ask for another tool or another plan, or end the run; docs/assistance.md has the data."""

from collections.abc import Sequence

from opposable.agent.assistance import prompts
from opposable.agent.assistance.rule import AssistanceRule, AssistedRun
from opposable.agent.policy import Directive, Step
from opposable.domain.localized_text import join_localized

SWITCH_AFTER = 2
"""Failures of a tool after which another one is named, and failed turns after which another plan is asked for."""
GIVE_UP_AFTER = 4
"""Turns with nothing but blocked calls after which the run ends with an answer."""


class Replanning(AssistanceRule):
    """Decide how a run goes on after a turn with failures.

    The run ends if the model only repeats blocked calls. A tool that fails too often is replaced if there is an
    alternative. Otherwise, and when whole turns fail, the model is asked for another plan. The model gets the same
    advice again only after as many further failures.
    """

    def __init__(self, run: AssistedRun) -> None:
        super().__init__(run)
        self._failures_by_tool: dict[str, int] = {}  # since the tool last succeeded
        self._failed_turns = self._blocked_turns = 0

    def annotate(self, step: Step, steps: Sequence[Step]) -> str:
        """Count the failures of each tool."""
        name = step.call.name
        if step.result.failure is None:
            self._failures_by_tool.pop(name, None)
        elif step.call.id not in self.run.blocked_ids:
            self._failures_by_tool[name] = self._failures_by_tool.get(name, 0) + 1
        return ""

    async def after_turn(self, steps: Sequence[Step]) -> Directive | None:
        """Return the decision of the turn; its advice goes into the status note."""
        run = self.run
        failed = [step for step in run.turn_steps if step.result.failure is not None]
        has_failed_wholly = bool(failed) and len(failed) == len(run.turn_steps)
        if not has_failed_wholly:
            run.advice = ""
        self._failed_turns = self._failed_turns + 1 if has_failed_wholly else 0
        is_blocked = has_failed_wholly and all(step.call.id in run.blocked_ids for step in failed)
        self._blocked_turns = self._blocked_turns + 1 if is_blocked else 0
        if not failed:
            return None
        if self._blocked_turns >= GIVE_UP_AFTER:
            run.advice = ""
            reason = prompts.NO_PROGRESS.format(turns=self._blocked_turns)
            return Directive("complete", reason, prompts.PARTIAL_ANSWER)
        if others := self._find_replacements(failed[-1]):
            name = failed[-1].call.name
            reason = prompts.FAILING_TOOL.format(name=name, times=self._failures_by_tool[name])
            run.advice = prompts.SWITCH_TOOL.format(reason=reason, names=join_localized(others, ", ", "、"))
            return Directive("switch_tool", reason)
        if self._failed_turns and self._failed_turns % SWITCH_AFTER == 0:
            reason = prompts.FAILING_PLAN.format(turns=self._failed_turns)
            run.advice, run.expects_plan = prompts.REPLAN.format(reason=reason), True
            return Directive("replan", reason)
        return None

    def _find_replacements(self, step: Step) -> tuple[str, ...]:
        """Return the tools that may replace one that has failed too often, the most relevant first."""
        run, name = self.run, step.call.name
        tool, failures = run.library.find_tool(name), self._failures_by_tool.get(name, 0)
        if tool is None or failures == 0 or failures % SWITCH_AFTER:
            return ()
        failed_ids = {run.get_owner_id(other) for other in self._failures_by_tool}
        need = f"{tool.definition.description} {run.task[:500]}"
        matches = run.library.find_alternatives(run.get_owner_id(name), need, failed_ids)
        return tuple(match.name for match in matches)
