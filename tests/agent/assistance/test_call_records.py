"""Whether a call is made once more."""

import orjson
import pytest

from opposable.agent.assistance.call_records import (
    CallRecord,
    get_call_key,
    is_pending,
    is_transient,
    normalize_arguments,
    record_attempt,
    should_block,
    should_warn,
)
from opposable.agent.assistance.guard_options import ALL_GUARDS

CASES = [
    # seen, changes now, turns without anything new, refused
    (None, 0, 0, False),
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
    (CallRecord("failed", "ConnectionError: connection reset", 1, 0, 1), 0, 0, False),
    (CallRecord("failed", "服务繁忙，请稍后再试", 1, 0, 1), 0, 0, False),
    (CallRecord("failed", "the export is not ready", 1, 0, 1), 0, 0, False),
    (CallRecord(None, "5", 4, 1, 4), 1, 3, False),
    (CallRecord(None, "5", 5, 1, 5), 1, 4, True),
    (CallRecord(None, "5", 5, 1, 5), 9, 0, False),
    (CallRecord(None, "5", 3, 1, 5), 1, 4, True),
    (CallRecord(None, "5", 2, 1, 5), 1, 9, False),
    (CallRecord(None, "status: running", 50, 1, 50), 1, 49, False),
    (CallRecord(None, "处理中", 50, 1, 50), 1, 49, False),
]


@pytest.mark.parametrize(("seen", "changes", "stale", "refused"), CASES)
def test_a_call_is_made_again_only_where_it_may_come_out_otherwise(seen, changes, stale, refused):
    assert should_block(seen, changes, stale, ALL_GUARDS) is refused


def test_the_same_outcome_counts_once_a_turn_and_another_resets_the_count():
    first = record_attempt(None, None, "5", 0, 1)
    assert record_attempt(first, None, "5", 0, 1).repeat_count == 1
    assert record_attempt(first, None, "5", 0, 2).repeat_count == 2
    assert record_attempt(first, None, "6", 0, 2).repeat_count == 1
    assert record_attempt(first, "failed", "5", 0, 2).repeat_count == 1
    away = record_attempt(None, "unavailable", "again in 9 seconds", 0, 1)
    assert record_attempt(away, "unavailable", "again in 8 seconds", 0, 2).repeat_count == 2


NOISE = [
    # what a failure said, what it said the next time, the same?
    ("no a.x (request 7f3a9c0012)", "no a.x (request 8b3a9c0099)", True),
    ("9b2f3c1a-0a1b-4c2d-8e3f-1234567890ab: gone", "9b2f3c1a-0a1b-4c2d-8e3f-1234567890ac: gone", True),
    ("2026-11-20T12:00:01Z gone", "2026-11-20T12:00:07.123Z gone", True),
    ("12:00:01 找不到，用时 12 毫秒", "12:00:09 找不到，用时 9 毫秒", True),
    ("<Order at 0x7f14f84612d0> is closed", "<Order at 0x7f14f84699d0> is closed", True),
    ("3 in the basket, at least 5 are needed", "4 in the basket, at least 5 are needed", False),
    ("There is no order 17.", "There is no order 18.", False),
]


@pytest.mark.parametrize(("before", "then", "same"), NOISE)
def test_ids_and_times_make_no_other_failure_and_numbers_that_mean_something_do(before, then, same):
    first = record_attempt(None, "failed", before, 0, 1)
    assert (record_attempt(first, "failed", then, 0, 2).repeat_count == 2) is same
    assert record_attempt(CallRecord(None, before, 1, 0, 1), None, then, 0, 2).repeat_count == 1


def test_a_repeated_failure_is_warned_about_at_once_and_a_repeated_result_later():
    assert should_warn(CallRecord("failed", "no", 2, 0, 2), 0, ALL_GUARDS)
    assert not should_warn(CallRecord("failed", "no", 1, 0, 2), 9, ALL_GUARDS)
    assert not should_warn(CallRecord(None, "5", 2, 0, 2), 1, ALL_GUARDS)
    assert should_warn(CallRecord(None, "5", 3, 0, 3), 1, ALL_GUARDS)
    assert not should_warn(CallRecord(None, "pending", 3, 0, 3), 1, ALL_GUARDS)


def test_arguments_in_another_order_make_the_same_call():
    assert get_call_key("f", {"a": 1, "b": {"d": 1, "c": 2}}) == get_call_key("f", {"b": {"c": 2, "d": 1}, "a": 1})
    assert get_call_key("f", {"a": 1}) != get_call_key("f", {"a": "1"})
    assert get_call_key("f", {"a": 2**80}) == get_call_key("f", {"a": 2**80})


def test_what_says_nothing_makes_no_other_call():
    schema = {
        "properties": {
            "q": {"type": "string"},
            "n": {"type": "integer", "default": 5},
            "on": {"type": "boolean", "default": True},
            "note": {"type": "string"},
            "until": {"type": ["string", "null"]},
            "size": {"type": "number", "default": 1},
        },
        "required": ["q", "size"],
    }
    plain = {"q": "x", "size": 1}
    assert normalize_arguments({"size": 1.0, "n": 5, "note": None, "q": "x", "on": True}, schema) == plain
    assert normalize_arguments({"q": "x", "size": 1, "n": 5.0}, schema) == plain
    assert normalize_arguments({**plain, "until": None}, schema) == {**plain, "until": None}
    assert normalize_arguments({**plain, "n": 6, "on": 1}, schema) == {**plain, "n": 6, "on": 1}
    assert orjson.dumps(normalize_arguments({"q": [1.0, {"a": 2.5}]}, schema)) == b'{"q":[1,{"a":2.5}]}'
    assert normalize_arguments({"q": "x", "more": None}, {}) == {"q": "x", "more": None}


def test_what_may_pass_and_what_waits_is_known_by_kind_and_words():
    assert is_transient("unavailable", "")
    assert is_transient("failed", "503 Service Unavailable")
    assert not is_transient("failed", "There is no file 503b.txt")
    assert not is_transient("invalid_arguments", "try again later")
    assert is_pending("Job 7: in_progress")
    assert is_pending("任务排队中")
    assert not is_pending("done")
    assert not is_pending("running " * 500)
