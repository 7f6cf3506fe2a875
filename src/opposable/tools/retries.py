"""Retries of a tool call that got no answer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from opposable.domain.backoff import get_backoff_seconds
from opposable.tools.invocation import InvocationResult

NO_ANSWER_FAILURES = ("unavailable", "timeout")
"""Failures of a tool that did not answer. They count for its circuit breaker, and are retried."""


@dataclass(frozen=True, slots=True)
class ToolRetryOptions:
    """How often an idempotent tool that does not answer is tried, and the waits between the attempts.

    The wait doubles with each attempt, up to `max_wait_seconds`, with jitter. It is at least what the tool's server
    asks for; where that is more than `max_wait_seconds`, there is no further attempt.
    """

    max_attempts: int = 3
    first_wait_seconds: float = 0.5
    max_wait_seconds: float = 8.0


async def retry(
    attempt: Callable[[int, float], Awaitable[InvocationResult]],
    options: ToolRetryOptions,
    max_attempts: int,
    timeout_seconds: float,
    *,
    may_repeat: Callable[[], bool],
) -> InvocationResult:
    """Make attempts until a tool answers, with waits in between.

    Args:
        attempt: Makes one attempt. It gets the number of the attempt, counted from 1, and the seconds left.
        options: The waits.
        max_attempts: The number of attempts.
        timeout_seconds: The time for all attempts together.
        may_repeat: Whether the call may still be repeated, asked after each attempt.

    Returns:
        The last result; a refusal (`attempts` 0) only if there is no result before it.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout_seconds
    last: InvocationResult | None = None
    for number in range(1, max_attempts + 1):
        result = await attempt(number, timeout_seconds if number == 1 else deadline - clock())
        if result.attempts == 0:
            return last or result
        last = result
        last.attempts = number
        backoff_seconds = get_backoff_seconds(number, options.first_wait_seconds, options.max_wait_seconds)
        wait_seconds = max(backoff_seconds, last.retry_after)
        is_final = last.failure not in NO_ANSWER_FAILURES or number == max_attempts
        is_final |= last.retry_after > options.max_wait_seconds  # the model decides
        if is_final or not may_repeat() or clock() + wait_seconds >= deadline:
            break
        await asyncio.sleep(wait_seconds)
    assert last is not None
    return last
