"""Loop detection: when to warn about a repeated call, and when to block it."""

from dataclasses import dataclass

from opposable.domain.tools import FailureKind

CallKey = tuple[str, str]
"""The identity of a call: the name of the tool and a text that equal arguments share."""

UNRECOVERABLE_FAILURES: tuple[FailureKind, ...] = ("invalid_arguments", "unknown_tool", "denied")
"""Failures that an identical call always has again."""

TRANSIENT_FAILURES: tuple[FailureKind, ...] = ("timeout", "unavailable", "rate_limited")
"""Failures that may be gone at the next attempt."""

MAX_ATTEMPTS = 3
"""How often a call is made whose failure is temporary, such as a busy server."""
WARN_AFTER = 3
"""Identical results after which the model is warned."""
BLOCK_AFTER = 5
"""Turns without a new result after which a call with identical results is blocked."""


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


def should_block(record: CallRecord, change_count: int, stale_turns: int) -> bool:
    """Return whether a call must not be made again.

    A temporary failure is retried up to `MAX_ATTEMPTS` times. Any other failure is retried once after something has
    changed. A successful call is blocked when it keeps returning the same and no other call returns anything new, so
    that loops over several calls are found too. The caller handles tools that are polled on purpose.

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
