"""Whether a call is made once more."""

import pytest

from opposable.agent.assistance.repeated_calls import (
    CallRecord,
    record_attempt,
    should_block,
    should_warn,
)
from opposable.tools.result_cache import canonicalize_arguments

CASES = [
    # seen, changes now, turns without anything new, refused
    (CallRecord("failed", "no", 1, 0, 1), 0, 0, True),
    (CallRecord("failed", "no", 1, 0, 1), 1, 0, False),
    (CallRecord("failed", "no", 2, 1, 3), 2, 0, True),
    (CallRecord("refused", "too dear", 1, 0, 1), 0, 0, True),
    (CallRecord("refused", "too dear", 1, 0, 1), 1, 0, False),
    (CallRecord("invalid_arguments", "- a: is required", 1, 0, 1), 9, 0, True),
    (CallRecord("unknown_tool", "no such", 1, 0, 1), 9, 0, True),
    (CallRecord("denied", "no", 1, 0, 1), 9, 0, True),
    (CallRecord("timeout", "slow", 1, 0, 1), 0, 0, False),
    (CallRecord("timeout", "slow", 2, 0, 2), 0, 1, False),
    (CallRecord("timeout", "slow", 3, 0, 3), 0, 2, True),
    (CallRecord(None, "5", 4, 1, 4), 1, 3, False),
    (CallRecord(None, "5", 5, 1, 5), 1, 4, True),
    (CallRecord(None, "5", 5, 1, 5), 9, 0, False),
    (CallRecord(None, "5", 3, 1, 5), 1, 4, True),
    (CallRecord(None, "5", 2, 1, 5), 1, 9, False),
]


@pytest.mark.parametrize(("seen", "changes", "stale", "refused"), CASES)
def test_a_call_is_made_again_only_where_it_may_come_out_otherwise(seen, changes, stale, refused):
    assert should_block(seen, changes, stale) is refused


def test_the_same_outcome_counts_once_a_turn_and_another_resets_the_count():
    first = record_attempt(None, None, "5", 0, 1)
    assert record_attempt(first, None, "5", 0, 1).repeat_count == 1
    assert record_attempt(first, None, "5", 0, 2).repeat_count == 2
    assert record_attempt(first, None, "6", 0, 2).repeat_count == 1
    assert record_attempt(first, "failed", "5", 0, 2).repeat_count == 1
    away = record_attempt(None, "unavailable", "again in 9 seconds", 0, 1)
    assert record_attempt(away, "unavailable", "again in 8 seconds", 0, 2).repeat_count == 2


def test_a_repeated_failure_is_warned_about_at_once_and_a_repeated_result_later():
    assert should_warn(CallRecord("failed", "no", 2, 0, 2), 0)
    assert not should_warn(CallRecord("failed", "no", 1, 0, 2), 9)
    assert not should_warn(CallRecord(None, "5", 2, 0, 2), 1)
    assert should_warn(CallRecord(None, "5", 3, 0, 3), 1)


def test_arguments_in_another_order_make_the_same_call():
    ordered, reversed_ = {"a": 1, "b": {"d": 1, "c": 2}}, {"b": {"c": 2, "d": 1}, "a": 1}
    assert canonicalize_arguments(ordered) == canonicalize_arguments(reversed_)
    assert canonicalize_arguments({"a": 1}) != canonicalize_arguments({"a": "1"})
    assert canonicalize_arguments({"a": 2**80}) == canonicalize_arguments({"a": 2**80})
