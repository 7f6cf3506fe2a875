"""Loop detection: when to warn about a repeated call, and when to block it."""

import re
from dataclasses import dataclass
from typing import Any

import orjson

from opposable.agent.assistance.guard_options import GuardOptions
from opposable.domain.tools import FailureKind
from opposable.tools.json_schema_validation import remove_optional_nulls
from opposable.tools.result_cache import canonicalize_arguments

CallKey = tuple[str, bytes]
"""The identity of a call: the name of the tool and its arguments as JSON with sorted keys."""

UNRECOVERABLE_FAILURES: tuple[FailureKind, ...] = ("invalid_arguments", "unknown_tool", "denied")
"""Failures that an identical call always has again."""

TRANSIENT_FAILURES: tuple[FailureKind, ...] = ("timeout", "unavailable", "rate_limited")
"""Failures that may be gone at the next attempt."""

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
"""Parts of a message that differ without meaning: ids, addresses, times, durations."""
_MAX_STATUS_CHARACTERS = 2_000
"""The length up to which a result can be a status such as "pending"."""


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


def normalize_arguments(arguments: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments without nulls and default values, and with 1.0 as 1.

    `parameters` is the JSON Schema of the tool.
    """
    if None in arguments.values():
        arguments, _ = remove_optional_nulls(arguments, parameters)
    properties, required = parameters.get("properties", {}), parameters.get("required", ())
    return {
        name: _normalize_numbers(value)
        for name, value in arguments.items()
        if name in required or not _is_default(value, properties.get(name))
    }


def get_call_key(name: str, arguments: dict[str, Any]) -> CallKey:
    """Return the key that identical calls share."""
    try:
        return name, orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # numbers beyond 64 bits
        return name, canonicalize_arguments(arguments).encode()


def is_transient(failure: FailureKind | None, content: str) -> bool:
    """Return whether a failure may be gone at the next attempt."""
    return failure in TRANSIENT_FAILURES or (
        failure == "failed" and (bool(_TRANSIENT_PATTERN.search(content[:_MAX_STATUS_CHARACTERS])))
    )


def is_pending(content: str) -> bool:
    """Return whether a result reads like the status of unfinished work."""
    return len(content) <= _MAX_STATUS_CHARACTERS and _PENDING_PATTERN.search(content) is not None


def should_block(previous: CallRecord | None, change_count: int, stale_turns: int, guards: GuardOptions) -> bool:
    """Return whether a call must not be made again.

    A temporary failure is retried up to `max_attempts` times. Any other failure is retried once after something has
    changed. A successful call is blocked when it keeps returning the same and no other call returns anything new, so
    that loops over several calls are found too. The caller handles tools that are polled on purpose.

    Args:
        previous: The last outcome of the same call.
        change_count: The changes in the run so far.
        stale_turns: Consecutive turns without a new result.
        guards: The thresholds.
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
    """Return whether to warn the model that a call returned the same as before."""
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
    """Return the record of a call after another attempt.

    Several attempts in one turn count once. Temporary failures of one kind count as the same outcome. Other
    outcomes are the same if they differ only in ids and times.
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
        return [_normalize_numbers(item) for item in value]
    if isinstance(value, dict):
        return {name: _normalize_numbers(item) for name, item in value.items()}
    return value
