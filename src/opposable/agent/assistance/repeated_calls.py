"""Rule: block a call that failed before, and warn of a call that returns nothing new."""

from collections.abc import Sequence

from opposable.agent.assistance import prompts
from opposable.agent.assistance.call_records import (
    MAX_ATTEMPTS,
    CallKey,
    CallRecord,
    record_attempt,
    should_block,
    should_warn,
)
from opposable.agent.assistance.rule import AssistanceRule, AssistedRun
from opposable.agent.policy import Directive, Step
from opposable.agent.tool_execution import ResolvedCall

_MAX_RESULT_CHARACTERS = 1200
"""Characters of a failure that is quoted."""


class RepeatedCalls(AssistanceRule):
    """Block repeated calls earlier than loop detection does."""

    def __init__(self, run: AssistedRun) -> None:
        super().__init__(run)
        self._records: dict[CallKey, CallRecord] = {}
        self._change_count = self._stale_turns = 0
        self._has_new_result = self._has_failed = False

    def screen(self, call: ResolvedCall, steps: Sequence[Step]) -> ResolvedCall:
        """Block a call whose outcome is known."""
        run, name = self.run, call.call.name
        record = self._records.get(run.calls[call.call.id][0])
        if record is None or not should_block(record, self._change_count, self._stale_turns):
            return call
        times, result = record.repeat_count, record.content
        if record.failure is not None:
            shown = result if len(result) <= _MAX_RESULT_CHARACTERS else f"{result[:_MAX_RESULT_CHARACTERS]}…"
            count = prompts.FAILED_TIMES.format(times=times) if times > 1 else ""
            text = prompts.BLOCKED_FAILURE.format(name=name, times=count, result=shown)
        elif not run.is_polled(name):
            text = prompts.BLOCKED_REPEAT.format(name=name, times=times, result=result)
        else:
            return call
        return call.refuse(text)

    def annotate(self, step: Step, steps: Sequence[Step]) -> str:
        """Record an outcome, and warn of one that the same call had before."""
        run, name, result = self.run, step.call.name, step.result
        if step.call.id in run.blocked_ids:
            return ""
        key = run.calls[step.call.id][0]
        before = self._records.get(key)
        record = record_attempt(before, result.failure, result.content, self._change_count, step.turn)
        self._records[key] = record
        is_repeated = should_warn(record, self._stale_turns)
        if result.failure is not None:
            self._has_failed = True
            self._has_new_result = self._has_new_result or record.repeat_count == 1
            is_retryable = run.is_retryable(result) and record.repeat_count < MAX_ATTEMPTS
            if is_repeated and not is_retryable:
                return prompts.REPEATED_FAILURE.format(name=name, times=record.repeat_count)
            return ""
        if before is None or before.content != result.content or before.failure is not None:
            self._has_new_result = True
            self._change_count += not self._has_failed or not run.is_read_only(name)
            if run.is_polled(name):  # what it waits for has changed, so that earlier failures may be gone
                self._records = {call: known for call, known in self._records.items() if known.failure is None}
        if is_repeated and not run.is_polled(name):
            return prompts.REPEATED_RESULT.format(name=name, times=record.repeat_count)
        return ""

    async def after_turn(self, steps: Sequence[Step]) -> Directive | None:
        """Count the turns without a new result."""
        self._stale_turns = 0 if self._has_new_result else self._stale_turns + 1
        self._has_new_result = False
        return None
