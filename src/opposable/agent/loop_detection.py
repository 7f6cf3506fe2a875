"""Whether a call is made once more: a pure question to what came of the same call before."""

import re
from dataclasses import dataclass
from typing import Any

import orjson

from opposable.agent.guard_options import Guarding
from opposable.domain.tools import FailureKind
from opposable.tools.argument_validation import without_nulls
from opposable.tools.result_cache import canonical

Key = tuple[str, bytes]
"""A call, whatever its id: the tool's name and its arguments in one order."""

FINAL: tuple[FailureKind, ...] = ("invalid_arguments", "unknown_tool", "denied")
"""Failures that the same call has again whatever happens meanwhile."""

PASSING: tuple[FailureKind, ...] = ("timeout", "unavailable", "rate_limited")
"""Failures that may pass by themselves."""

_MAY_PASS = re.compile(
    r"connection (?:was )?(?:reset|refused|aborted|closed|lost)|temporar|try (?:it )?again (?:later|in|soon)|"
    r"retry (?:later|after|in)|timed? ?out|too many requests|overloaded|\bbusy\b|\b(?:429|502|503|504)\b|"
    r"暂时|稍后|繁忙|超时",
    re.IGNORECASE,
)
_WAITS = re.compile(
    r"\b(?:pending|running|queued|in[ _-]progress|processing|not (?:yet )?(?:ready|finished|done|complete)|waiting|"
    r"preparing|starting|scheduled)\b|处理中|进行中|排队|等待|尚未|未完成|运行中|准备中",
    re.IGNORECASE,
)
_NOISE = re.compile(
    r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b0x[0-9a-f]+\b|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d\S*)?|"
    r"\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?\b|\b(?=\w*\d)(?=\w*[a-f])[0-9a-f]{8,}\b|\b\d{10,}\b|"
    r"\b\d+(?:\.\d+)? ?(?:ms|µs|s|sec|seconds?|milliseconds?|毫秒|秒)(?![a-z])",
    re.IGNORECASE,
)
"""What differs from one telling of a failure to the next without meaning anything: ids, addresses, times, durations."""
_LONGEST_STATUS = 2_000
"""Characters up to which a result may be the state of something that is waited for."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of one call, the last time. `times` counts the turns running in which just this came of it.

    `changes` is how much had changed in the run when it ended, `turn` the turn it ended in.
    """

    failure: FailureKind | None
    content: str
    times: int
    changes: int
    turn: int


def essential(arguments: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """The arguments without what makes no other call: nulls for "not given", defaults given all the same, 1.0 for 1.

    `parameters` is the tool's JSON Schema.
    """
    if None in arguments.values():
        arguments, _ = without_nulls(arguments, parameters)
    told, required = parameters.get("properties", {}), parameters.get("required", ())
    return {
        name: _whole(value)
        for name, value in arguments.items()
        if name in required or not _is_default(value, told.get(name))
    }


def key_of(name: str, arguments: dict[str, Any]) -> Key:
    """What makes two calls the same."""
    try:
        return name, orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # numbers beyond 64 bits
        return name, canonical(arguments).encode()


def may_pass(failure: FailureKind | None, content: str) -> bool:
    """Whether a failure may be gone the next time, with nothing done about it."""
    return failure in PASSING or (failure == "failed" and (bool(_MAY_PASS.search(content[:_LONGEST_STATUS]))))


def waits(content: str) -> bool:
    """Whether a result reads like the state of something that is not done yet."""
    return len(content) <= _LONGEST_STATUS and _WAITS.search(content) is not None


def is_refused(seen: Seen | None, changes: int, stale: int, guarding: Guarding) -> bool:
    """Whether a call is not to be made again.

    `seen` is what came of it before, `changes` how much has changed in the run by now, `stale` how many turns running
    brought nothing that was not known. A failure that may pass is tried again; another one is when something has
    changed since, once. What brings a result is made again until it has brought the same often enough to be told of
    it, and nothing else is new for many turns either: a circle of several calls is such a thing too. Whether the call
    is one that waits is the caller's to ask first.
    """
    if seen is None:
        return False
    if seen.failure is None:
        return seen.times >= guarding.told_at and stale >= guarding.refused_at - 1 and not waits(seen.content)
    if seen.failure in FINAL:
        return True
    if may_pass(seen.failure, seen.content) or waits(seen.content):
        return seen.times >= guarding.tries
    return changes == seen.changes or seen.times > 1


def is_told(seen: Seen, stale: int, guarding: Guarding) -> bool:
    """Whether a model is told that a call it just made has brought the same before; `stale` is of the turns before."""
    if seen.failure is not None:
        return seen.times > 1
    return seen.times >= guarding.told_at and stale >= guarding.told_at - 2 and not waits(seen.content)


def once_more(before: Seen | None, failure: FailureKind | None, content: str, changes: int, turn: int) -> Seen:
    """What is known of a call after one more end of it; calls of one turn count once.

    Failures that may pass are the same whatever they say: they tell of seconds and of servers. Others are the same
    where they differ in nothing but ids and times.
    """
    if before is None or before.failure != failure or not _same(failure, before.content, content):
        return Seen(failure, content, 1, changes, turn)
    return Seen(failure, content, before.times + (before.turn != turn), changes, turn)


def _same(failure: FailureKind | None, before: str, now: str) -> bool:
    if before == now or failure in PASSING:
        return True
    return failure is not None and _NOISE.sub("", before[:_LONGEST_STATUS]) == _NOISE.sub("", now[:_LONGEST_STATUS])


def _is_default(value: Any, told: Any) -> bool:
    if not isinstance(told, dict) or "default" not in told:
        return False
    default = told["default"]
    return bool(value == default) and isinstance(value, bool) == isinstance(default, bool)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(one) for one in value]
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    return value
