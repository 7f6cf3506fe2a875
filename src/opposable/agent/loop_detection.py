"""Loop detection, the default policy: find calls that repeat without effect."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from opposable.agent.limits import DEFAULT_LIMITS, Limits
from opposable.agent.policy import Directive, RunPolicy, Step
from opposable.agent.tool_execution import ResolvedCall
from opposable.domain.localized_text import LocalizedText
from opposable.domain.text_normalization import shorten_text
from opposable.domain.tools import FailureKind, ToolCall
from opposable.tools.result_cache import canonicalize_arguments

PERMANENT_FAILURES: frozenset[FailureKind] = frozenset({"unknown_tool", "invalid_arguments", "denied", "refused"})
"""Failures that the same call has again, unless another call changes something."""

MAX_RETRIES = 3
"""How often a call that failed for another reason may be repeated before another call succeeds."""

_MAX_QUOTED_CHARACTERS = 500
"""Characters of a failure that is quoted."""
_REFUSED_REPEAT = LocalizedText(
    "Not run: this exact call of {name} just failed permanently. It said: {result}",
    "没有执行：刚才完全相同的 {name} 调用已经失败，重复也不会成功。它的结果是：{result}",
)
_REFUSED_RETRY = LocalizedText(
    "Not run: this exact call of {name} failed {count} times in a row. It last said: {result}",
    "没有执行：完全相同的 {name} 调用已连续失败 {count} 次。最后一次的结果是：{result}",
)
_REPETITION_NOTE = LocalizedText(
    "[Note: this call has had this same result {count} times in a row.]",
    "[注意：这一调用已连续 {count} 次得到同样的结果。]",
)
_STOP_REASON = LocalizedText(
    "{name} was called {count} times in a row with the same arguments and the same result.",
    "{name} 以相同的参数连续调用了 {count} 次，结果都相同。",
)


@dataclass(frozen=True, slots=True)
class LoopDetection(RunPolicy):
    """Refuse exact repeats of permanent failures, and end runs that repeat one call without a new result.

    Attributes:
        limits: The limits of the run, with its numbers of repeats.
    """

    limits: Limits = DEFAULT_LIMITS

    def screen(self, call: ResolvedCall, steps: Sequence[Step]) -> ResolvedCall:
        """Set a failure on a call that would repeat its own failure."""
        if call.failure is not None or not steps or steps[-1].result.failure is None:
            return call
        failures = find_latest_failures(steps)
        own = [step for step in failures if _is_same_call(step.call, call.call)]
        if own and own[0] is failures[0] and _is_permanent(own[0], steps):
            message = _REFUSED_REPEAT
        elif sum(step.result.failure != "cancelled" for step in own) > MAX_RETRIES:
            message = _REFUSED_RETRY
        else:
            return call
        quoted = shorten_text(own[0].result.content, _MAX_QUOTED_CHARACTERS)
        return call.refuse(message.format(name=call.call.name, count=MAX_RETRIES + 1, result=quoted))

    def annotate(self, step: Step, steps: Sequence[Step]) -> str:
        """Note that one call has had the same result `noted_repeats` times in a row, or more often."""
        count = count_repeats(steps, self.limits.noted_repeats)
        return _REPETITION_NOTE.format(count=count) if count else ""

    async def after_turn(self, steps: Sequence[Step]) -> Directive | None:
        """End the run if one call has had the same result too often."""
        if count := count_repeats(steps, self.limits.repeats):
            return Directive("complete", _STOP_REASON.format(name=steps[-1].call.name, count=count))
        return None


def count_repeats(steps: Sequence[Step], minimum: int | None) -> int:
    """Return how many of the last steps are one call with one result, without another in between; 0 below the minimum.

    Without a minimum, and in runs that are too short for it, nothing is compared.
    """
    if minimum is None or len(steps) < minimum:
        return 0
    count = sum(1 for _ in itertools.takewhile(lambda step: _is_same_step(step, steps[-1]), reversed(steps)))
    return count if count >= minimum else 0


def find_latest_failures(steps: Sequence[Step]) -> list[Step]:
    """Return the calls that have failed since one succeeded, latest first.

    Calls that a policy refused, or that came while their tool was out of service or over its rate limit, are left
    out (`attempts` is 0). Those that a person denied, or whose arguments are invalid, are not.
    """
    failures = itertools.takewhile(lambda step: step.result.failure is not None, reversed(steps))
    return [step for step in failures if step.result.attempts or step.result.failure == "denied"]


def _is_permanent(failed: Step, steps: Sequence[Step]) -> bool:
    """Return whether a call fails again. Another call of its reply that succeeded may have ended later."""
    has_others = any(step.turn == failed.turn and step.result.failure is None for step in steps)
    return failed.result.failure in PERMANENT_FAILURES and not has_others


def _is_same_call(call: ToolCall, other: ToolCall) -> bool:
    """Return whether two calls are the same; a call that was cut off never ran, so the whole one is another.

    The arguments are compared as JSON: in Python, `True` equals 1.
    """
    if (call.name, call.truncated) != (other.name, other.truncated):
        return False
    return canonicalize_arguments(dict(call.arguments)) == canonicalize_arguments(dict(other.arguments))


def _is_same_step(step: Step, other: Step) -> bool:
    outcomes = [(one.result.content, one.result.failure, one.result.media) for one in (step, other)]
    return step is other or (outcomes[0] == outcomes[1] and _is_same_call(step.call, other.call))
