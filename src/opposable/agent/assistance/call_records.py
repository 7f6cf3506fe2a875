"""Whether a call is made once more: a pure question to what came of the same call before."""

import re
from dataclasses import dataclass
from typing import Any

import orjson

from opposable.agent.assistance.guard_options import GuardOptions
from opposable.domain.tools import FailureKind
from opposable.tools.argument_validation import remove_optional_nulls
from opposable.tools.result_cache import canonicalize_arguments

CallKey = tuple[str, bytes]
"""A call, whatever its id: the tool's name and its arguments in one order."""

UNRECOVERABLE_FAILURES: tuple[FailureKind, ...] = ("invalid_arguments", "unknown_tool", "denied")
"""Failures that the same call has again whatever happens meanwhile."""

TRANSIENT_FAILURES: tuple[FailureKind, ...] = ("timeout", "unavailable", "rate_limited")
"""Failures that may pass by themselves."""

_TRANSIENT_PATTERN = re.compile(
    r"connection (?:was )?(?:reset|refused|aborted|closed|lost)|temporar|try (?:it )?again (?:later|in|soon)|"
    r"retry (?:later|after|in)|timed? ?out|too many requests|overloaded|\bbusy\b|\b(?:429|502|503|504)\b|"
    r"暂时|稍后|繁忙|超时",
    re.IGNORECASE,
)
_PENDING_PATTERN = re.compile(
    r"\b(?:pending|running|queued|in[ _-]progress|processing|not (?:yet )?(?:ready|finished|done|complete)|waiting|"
    r"preparing|starting|scheduled)\b|处理中|进行中|排队|等待|尚未|未完成|运行中|准备中",
    re.IGNORECASE,
)
_NOISE_PATTERN = re.compile(
    r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b0x[0-9a-f]+\b|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d\S*)?|"
    r"\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?\b|\b(?=\w*\d)(?=\w*[a-f])[0-9a-f]{8,}\b|\b\d{10,}\b|"
    r"\b\d+(?:\.\d+)? ?(?:ms|µs|s|sec|seconds?|milliseconds?|毫秒|秒)(?![a-z])",
    re.IGNORECASE,
)
"""What differs from one telling of a failure to the next without meaning anything: ids, addresses, times, durations."""
_MAX_STATUS_CHARACTERS = 2_000
"""Characters up to which a result may be the state of something that is waited for."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """What came of one call, the last time. `times` counts the turns running in which just this came of it.

    `changes` is how much had changed in the run when it ended, `turn` the turn it ended in.
    """

    failure: FailureKind | None
    content: str
    repeat_count: int
    change_count: int
    turn: int


def normalize_arguments(arguments: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """The arguments without what makes no other call: nulls for "not given", defaults given all the same, 1.0 for 1.

    `parameters` is the tool's JSON Schema.
    """
    if None in arguments.values():
        arguments, _ = remove_optional_nulls(arguments, parameters)
    told, required = parameters.get("properties", {}), parameters.get("required", ())
    return {
        name: _normalize_numbers(value)
        for name, value in arguments.items()
        if name in required or not _is_default(value, told.get(name))
    }


def get_call_key(name: str, arguments: dict[str, Any]) -> CallKey:
    """What makes two calls the same."""
    try:
        return name, orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # numbers beyond 64 bits
        return name, canonicalize_arguments(arguments).encode()


def is_transient(failure: FailureKind | None, content: str) -> bool:
    """Whether a failure may be gone the next time, with nothing done about it."""
    return failure in TRANSIENT_FAILURES or (
        failure == "failed" and (bool(_TRANSIENT_PATTERN.search(content[:_MAX_STATUS_CHARACTERS])))
    )


def is_pending(content: str) -> bool:
    """Whether a result reads like the state of something that is not done yet."""
    return len(content) <= _MAX_STATUS_CHARACTERS and _PENDING_PATTERN.search(content) is not None


def should_block(previous: CallRecord | None, change_count: int, stale_turns: int, guards: GuardOptions) -> bool:
    """Whether a call is not to be made again.

    `seen` is what came of it before, `changes` how much has changed in the run by now, `stale` how many turns running
    brought nothing that was not known. A failure that may pass is tried again; another one is when something has
    changed since, once. What brings a result is made again until it has brought the same often enough to be told of
    it, and nothing else is new for many turns either: a circle of several calls is such a thing too. Whether the call
    is one that waits is the caller's to ask first.
    """
    if previous is None:
        return False
    if previous.failure is None:
        return (
            previous.repeat_count >= guards.warn_after
            and stale_turns >= guards.block_after - 1
            and not is_pending(previous.content)
        )
    if previous.failure in UNRECOVERABLE_FAILURES:
        return True
    if is_transient(previous.failure, previous.content) or is_pending(previous.content):
        return previous.repeat_count >= guards.max_attempts
    return change_count == previous.change_count or previous.repeat_count > 1


def should_warn(record: CallRecord, stale_turns: int, guards: GuardOptions) -> bool:
    """Whether a model is told that a call it just made has brought the same before; `stale` is of the turns before."""
    if record.failure is not None:
        return record.repeat_count > 1
    return (
        record.repeat_count >= guards.warn_after
        and stale_turns >= guards.warn_after - 2
        and not is_pending(record.content)
    )


def record_attempt(
    previous: CallRecord | None, failure: FailureKind | None, content: str, change_count: int, turn: int
) -> CallRecord:
    """What is known of a call after one more end of it; calls of one turn count once.

    Failures that may pass are the same whatever they say: they tell of seconds and of servers. Others are the same
    where they differ in nothing but ids and times.
    """
    if previous is None or previous.failure != failure or not _is_same_outcome(failure, previous.content, content):
        return CallRecord(failure, content, 1, change_count, turn)
    return CallRecord(failure, content, previous.repeat_count + (previous.turn != turn), change_count, turn)


def _is_same_outcome(failure: FailureKind | None, previous_content: str, content: str) -> bool:
    if previous_content == content or failure in TRANSIENT_FAILURES:
        return True
    return failure is not None and _NOISE_PATTERN.sub(
        "", previous_content[:_MAX_STATUS_CHARACTERS]
    ) == _NOISE_PATTERN.sub("", content[:_MAX_STATUS_CHARACTERS])


def _is_default(value: Any, schema: Any) -> bool:
    if not isinstance(schema, dict) or "default" not in schema:
        return False
    default = schema["default"]
    return bool(value == default) and isinstance(value, bool) == isinstance(default, bool)


def _normalize_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_normalize_numbers(one) for one in value]
    if isinstance(value, dict):
        return {name: _normalize_numbers(one) for name, one in value.items()}
    return value
