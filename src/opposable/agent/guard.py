"""Whether a call is made once more: a pure question to what came of the same call before."""

import re
from dataclasses import dataclass
from typing import Any

import orjson

from opposable.agent.guarding import Guarding
from opposable.domain.tools import FailureKind
from opposable.tools.cache import canonical

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
    changed since, once. What brings a result is made again until it has brought the same too often and nothing else
    is new either: a cycle of several calls is such a thing too. Whether the call is one that waits is the caller's to
    ask first.
    """
    if seen is None:
        return False
    if seen.failure is None:
        return seen.times >= guarding.refused_at and stale >= guarding.refused_at - 1 and not waits(seen.content)
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

    Failures that may pass are the same whatever they say: they tell of seconds and of servers.
    """
    if before is None or before.failure != failure or (before.content != content and failure not in PASSING):
        return Seen(failure, content, 1, changes, turn)
    return Seen(failure, content, before.times + (before.turn != turn), changes, turn)
