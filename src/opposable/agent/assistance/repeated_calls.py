"""Rule: block a call that failed before, and warn of a call that returns nothing new."""

from collections.abc import Sequence
from dataclasses import dataclass

from opposable.agent.assistance import prompts
from opposable.agent.assistance.rule import TRANSIENT_FAILURES, AssistanceRule, AssistedRun
from opposable.agent.policy import Directive, Step
from opposable.agent.tool_execution import ResolvedCall
from opposable.domain.text_normalization import shorten_text
from opposable.domain.tools import FailureKind, ToolCall
from opposable.tools.result_cache import canonicalize_arguments

UNRECOVERABLE_FAILURES: tuple[FailureKind, ...] = ("invalid_arguments", "unknown_tool", "denied")
"""Failures that an identical call always has again."""

MAX_ATTEMPTS = 3
"""How often a call is made whose failure is temporary, such as a busy server. `docs/assistance.md` has the data."""
WARN_AFTER = 3
"""Identical results after which the model is warned."""
BLOCK_AFTER = 5
"""Turns without a new result after which a call with identical results is blocked."""

_MAX_RESULT_CHARACTERS = 1200
"""Characters of a failure that is quoted."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """The last outcome of a call.

    Attributes:
        failure: The kind of failure, None for a success.
        content: The result text.
        repeat_count: Consecutive turns with this outcome.
        change_count: The changes in the run when the call ended.
        turn: The turn in which the call ended.
    """

    failure: FailureKind | None
    content: str
    repeat_count: int
    change_count: int
    turn: int


class RepeatedCalls(AssistanceRule):
    """Block repeated calls earlier than loop detection does."""

    def __init__(self, run: AssistedRun) -> None:
        super().__init__(run)
        self._records: dict[tuple[str, str, bool], CallRecord] = {}
        self._change_count = self._stale_turns = 0
        self._has_new_result = self._has_failed = False

    def screen(self, call: ResolvedCall, steps: Sequence[Step]) -> ResolvedCall:
        """Block a call whose outcome is known."""
        run, name = self.run, call.call.name
        record = self._records.get(self._identify(call.call))
        if record is None or not should_block(record, self._change_count, self._stale_turns):
            return call
        times, result = record.repeat_count, record.content
        if record.failure is not None:
            text = prompts.BLOCKED_FAILURE.format(name=name, result=shorten_text(result, _MAX_RESULT_CHARACTERS))
        elif run.is_read_only(name) and not run.is_polled(name):
            text = prompts.BLOCKED_REPEAT.format(name=name, times=times, result=result)
        else:
            return call
        return call.refuse(text)

    def annotate(self, step: Step, steps: Sequence[Step]) -> str:
        """Record an outcome, and warn of one that the same call had before."""
        run, name, result = self.run, step.call.name, step.result
        if step.call.id in run.blocked_ids:
            return ""
        key = self._identify(step.call)
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

    def _identify(self, call: ToolCall) -> tuple[str, str, bool]:
        """Return what equal calls share. One that was cut off is no whole call. Unknown tools have no arguments."""
        if self.run.library.find_registered_tool(call.name) is None:
            return call.name, "", False
        return call.name, canonicalize_arguments(dict(call.arguments)), call.truncated


def should_block(record: CallRecord, change_count: int, stale_turns: int) -> bool:
    """Return whether a call must not be made again.

    A temporary failure is retried up to `MAX_ATTEMPTS` times. Any other failure is retried once after something has
    changed. A successful call is blocked when it keeps returning the same and no other call returns anything new, so
    that loops over several calls are found too. The caller handles tools that act or are polled on purpose.

    Args:
        record: The last outcome of the same call.
        change_count: The changes in the run so far.
        stale_turns: Consecutive turns without a new result.
    """
    if record.failure is None:
        return record.repeat_count >= WARN_AFTER and stale_turns >= BLOCK_AFTER - 1
    if record.failure in UNRECOVERABLE_FAILURES:
        return True
    if record.failure in TRANSIENT_FAILURES:
        return record.repeat_count >= MAX_ATTEMPTS
    return change_count == record.change_count or record.repeat_count > 1


def should_warn(record: CallRecord, stale_turns: int) -> bool:
    """Return whether to warn the model that a call returned the same as before."""
    if record.failure is not None:
        return record.repeat_count > 1
    return record.repeat_count >= WARN_AFTER and stale_turns >= WARN_AFTER - 2


def record_attempt(
    previous: CallRecord | None, failure: FailureKind | None, content: str, change_count: int, turn: int
) -> CallRecord:
    """Return the record of a call after another attempt.

    Several attempts in one turn count once. Temporary failures of one kind count as the same outcome.
    """
    is_same = previous is not None and previous.failure == failure
    if previous is None or not is_same or (previous.content != content and failure not in TRANSIENT_FAILURES):
        return CallRecord(failure, content, 1, change_count, turn)
    return CallRecord(failure, content, previous.repeat_count + (previous.turn != turn), change_count, turn)
