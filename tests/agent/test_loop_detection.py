"""Whether a call is made once more."""

import orjson
import pytest

from opposable.agent.guard_options import GUARDED
from opposable.agent.loop_detection import Seen, essential, is_refused, is_told, key_of, may_pass, once_more, waits

CASES = [
    # seen, changes now, turns without anything new, refused
    (None, 0, 0, False),
    (Seen("failed", "no", 1, 0, 1), 0, 0, True),
    (Seen("failed", "no", 1, 0, 1), 1, 0, False),
    (Seen("failed", "no", 2, 1, 3), 2, 0, True),
    (Seen("refused", "too dear", 1, 0, 1), 0, 0, True),
    (Seen("refused", "too dear", 1, 0, 1), 1, 0, False),
    (Seen("invalid_arguments", "- a: is required", 1, 0, 1), 9, 0, True),
    (Seen("unknown_tool", "no such", 1, 0, 1), 9, 0, True),
    (Seen("denied", "no", 1, 0, 1), 9, 0, True),
    (Seen("timeout", "slow", 1, 0, 1), 0, 0, False),
    (Seen("timeout", "slow", 2, 0, 2), 0, 1, False),
    (Seen("timeout", "slow", 3, 0, 3), 0, 2, True),
    (Seen("failed", "ConnectionError: connection reset", 1, 0, 1), 0, 0, False),
    (Seen("failed", "服务繁忙，请稍后再试", 1, 0, 1), 0, 0, False),
    (Seen("failed", "the export is not ready", 1, 0, 1), 0, 0, False),
    (Seen(None, "5", 4, 1, 4), 1, 3, False),
    (Seen(None, "5", 5, 1, 5), 1, 4, True),
    (Seen(None, "5", 5, 1, 5), 9, 0, False),
    (Seen(None, "5", 3, 1, 5), 1, 4, True),
    (Seen(None, "5", 2, 1, 5), 1, 9, False),
    (Seen(None, "status: running", 50, 1, 50), 1, 49, False),
    (Seen(None, "处理中", 50, 1, 50), 1, 49, False),
]


@pytest.mark.parametrize(("seen", "changes", "stale", "refused"), CASES)
def test_a_call_is_made_again_only_where_it_may_come_out_otherwise(seen, changes, stale, refused):
    assert is_refused(seen, changes, stale, GUARDED) is refused


def test_the_same_outcome_counts_once_a_turn_and_another_begins_anew():
    first = once_more(None, None, "5", 0, 1)
    assert once_more(first, None, "5", 0, 1).times == 1
    assert once_more(first, None, "5", 0, 2).times == 2
    assert once_more(first, None, "6", 0, 2).times == 1
    assert once_more(first, "failed", "5", 0, 2).times == 1
    away = once_more(None, "unavailable", "again in 9 seconds", 0, 1)
    assert once_more(away, "unavailable", "again in 8 seconds", 0, 2).times == 2


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
    first = once_more(None, "failed", before, 0, 1)
    assert (once_more(first, "failed", then, 0, 2).times == 2) is same
    assert once_more(Seen(None, before, 1, 0, 1), None, then, 0, 2).times == 1


def test_a_repeated_failure_is_told_at_once_and_a_repeated_result_later():
    assert is_told(Seen("failed", "no", 2, 0, 2), 0, GUARDED)
    assert not is_told(Seen("failed", "no", 1, 0, 2), 9, GUARDED)
    assert not is_told(Seen(None, "5", 2, 0, 2), 1, GUARDED)
    assert is_told(Seen(None, "5", 3, 0, 3), 1, GUARDED)
    assert not is_told(Seen(None, "pending", 3, 0, 3), 1, GUARDED)


def test_arguments_in_another_order_make_the_same_call():
    assert key_of("f", {"a": 1, "b": {"d": 1, "c": 2}}) == key_of("f", {"b": {"c": 2, "d": 1}, "a": 1})
    assert key_of("f", {"a": 1}) != key_of("f", {"a": "1"})
    assert key_of("f", {"a": 2**80}) == key_of("f", {"a": 2**80})


def test_what_says_nothing_makes_no_other_call():
    told = {
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
    assert essential({"size": 1.0, "n": 5, "note": None, "q": "x", "on": True}, told) == plain
    assert essential({"q": "x", "size": 1, "n": 5.0}, told) == plain
    assert essential({**plain, "until": None}, told) == {**plain, "until": None}
    assert essential({**plain, "n": 6, "on": 1}, told) == {**plain, "n": 6, "on": 1}
    assert orjson.dumps(essential({"q": [1.0, {"a": 2.5}]}, told)) == b'{"q":[1,{"a":2.5}]}'
    assert essential({"q": "x", "more": None}, {}) == {"q": "x", "more": None}


def test_what_may_pass_and_what_waits_is_known_by_kind_and_words():
    assert may_pass("unavailable", "")
    assert may_pass("failed", "503 Service Unavailable")
    assert not may_pass("failed", "There is no file 503b.txt")
    assert not may_pass("invalid_arguments", "try again later")
    assert waits("Job 7: in_progress")
    assert waits("任务排队中")
    assert not waits("done")
    assert not waits("running " * 500)
