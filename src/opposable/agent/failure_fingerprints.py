"""Calls that failed, as they are remembered: without secrets, and with what put them right."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Any

import orjson

from opposable.domain.records import canonical_sha256
from opposable.parsers import escape_special_tokens
from opposable.safety.redaction import REDACTED, redact

UNCERTAIN_PREFIX = "~"
"""Begins the fingerprint of arguments that held a secret: two of these may stand for different calls."""

MAX_STORED_CHARACTERS = 200
"""Characters of a value or of a sentence that are kept."""

_FIELD_PATTERN = re.compile(r"^- ([^\s:：]{1,100})[:：]", re.MULTILINE)
_DIGITS_PATTERN = re.compile(r"\d+")
_MIN_SIMILARITY = 0.6
"""How like two texts must be for one to be a correction of the other."""


def compute_fingerprint(arguments: dict[str, Any]) -> str:
    """What makes failed calls of one action the same: a hash of the arguments in one order, their secrets taken out."""
    safe = redact(arguments)
    made = canonical_sha256(safe)[:32]
    return made if safe == arguments else UNCERTAIN_PREFIX + made


def find_wrong_fields(arguments: dict[str, Any], error_text: str) -> tuple[str, ...]:
    """The arguments a failure is about: those its lines name, or those whose value it repeats."""
    named = [field.split(".")[0] for field in _FIELD_PATTERN.findall(error_text)]
    if named:
        return tuple(dict.fromkeys(named))
    return tuple(
        name for name, value in arguments.items() if isinstance(value, str) and len(value) > 1 and value in error_text
    )


def format_failure_message(arguments: dict[str, Any], error_text: str) -> str:
    """What is kept of a failure in words: the arguments it is about as a line of JSON, then what the tool said."""
    about = find_wrong_fields(arguments, error_text)
    shown = {name: value for name, value in arguments.items() if name in about} or arguments
    line = orjson.dumps(truncate_value(redact(shown)), default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    return f"{line}\n{str(redact(error_text[: MAX_STORED_CHARACTERS * 20]))[: MAX_STORED_CHARACTERS * 2]}"


def parse_failed_arguments(message: str) -> dict[str, Any]:
    """The arguments a kept failure is about; empty where its message tells none."""
    try:
        found = orjson.loads(message.partition("\n")[0])
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def find_correction(
    failed_arguments: dict[str, Any],
    worked_arguments: dict[str, Any],
    error_text: str,
    *,
    allow_larger_numbers: bool = False,
) -> dict[str, Any] | None:
    """What was different in the call that worked, as `{"given": {…}, "right": {…}}`; None where it is another matter.

    It is a correction where what failed was told by field, where the tool itself had named the new value, where a value
    went to another name, or where a value became a similar one; numbers alone that differ make another call, not a
    better one, unless they have `grown` as after a time-out.
    """
    given = {name: value for name, value in failed_arguments.items() if worked_arguments.get(name, _MISSING) != value}
    right = {name: value for name, value in worked_arguments.items() if failed_arguments.get(name, _MISSING) != value}
    if not given and not right:
        return None
    told = {field.split(".")[0] for field in _FIELD_PATTERN.findall(error_text)}
    larger = (
        allow_larger_numbers
        and bool(right)
        and all(_is_larger(given.get(name), value) for name, value in right.items())
    )
    if not (larger or told & (given.keys() | right.keys()) or _is_plausible_correction(given, right, error_text)):
        return None
    return {"given": truncate_value(redact(given)), "right": truncate_value(redact(right))}


def format_correction(correction: dict[str, Any] | None) -> tuple[str, str]:
    """What was given and what was right, each as `name="value", …`; ("", "") where nothing can be told."""
    if not correction or not isinstance(right := correction.get("right"), dict):
        return "", ""
    given = correction.get("given")
    pairs = (format_arguments(given.items() if isinstance(given, dict) else ()), format_arguments(right.items()))
    return ("", "") if REDACTED in pairs[1] else pairs


def format_arguments(items: Iterable[tuple[str, Any]]) -> str:
    """Arguments as `name="value", …`, with nothing in them that a model could take for markup or for another line."""
    told = (f"{name[:60]}={orjson.dumps(value, default=str).decode()[:MAX_STORED_CHARACTERS]}" for name, value in items)
    return escape_special_tokens(", ".join(" ".join(one.split()) for one in told))


def truncate_value(value: Any) -> Any:
    """A JSON value with its texts cut to what is kept of them."""
    if isinstance(value, str):
        return value if len(value) <= MAX_STORED_CHARACTERS else f"{value[:MAX_STORED_CHARACTERS]}…"
    if isinstance(value, dict):
        return {str(key)[:MAX_STORED_CHARACTERS]: truncate_value(inner) for key, inner in list(value.items())[:20]}
    if isinstance(value, list | tuple):
        return [truncate_value(inner) for inner in value[:20]]
    return value


_MISSING = object()


def _is_plausible_correction(
    wrong_arguments: dict[str, Any], correct_arguments: dict[str, Any], error_text: str
) -> bool:
    """Whether what is right can be seen to follow from what was given or from what the tool said of it."""
    if any(isinstance(value, str) and len(value) > 1 and value in error_text for value in correct_arguments.values()):
        return True
    if wrong_arguments.keys().isdisjoint(correct_arguments) and any(
        value in wrong_arguments.values() for value in correct_arguments.values()
    ):
        return True
    return any(
        name in wrong_arguments and _is_similar(wrong_arguments[name], value)
        for name, value in correct_arguments.items()
    )


def _is_larger(wrong_value: Any, correct_value: Any) -> bool:
    return (
        isinstance(wrong_value, int | float) and isinstance(correct_value, int | float) and correct_value > wrong_value
    )


def _is_similar(wrong_value: Any, correct_value: Any) -> bool:
    if type(wrong_value) is not type(correct_value):
        return str(wrong_value) == str(correct_value)
    if not isinstance(wrong_value, str) or _DIGITS_PATTERN.sub("", wrong_value) == _DIGITS_PATTERN.sub(
        "", correct_value
    ):
        return False
    return (
        SequenceMatcher(None, wrong_value[:MAX_STORED_CHARACTERS], correct_value[:MAX_STORED_CHARACTERS]).ratio()
        >= _MIN_SIMILARITY
    )
