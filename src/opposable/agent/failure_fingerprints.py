"""The stored form of failed calls: fingerprints, messages and corrections."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Any

import orjson

from opposable.domain.json_text import dump_json
from opposable.domain.records import canonical_sha256
from opposable.parsers import escape_special_tokens
from opposable.safety.redaction import REDACTED, redact

MAX_STORED_CHARACTERS = 200
"""Characters of a value or of a sentence that are stored."""

_FIELD_PATTERN = re.compile(r"^- ([^\s:：]{1,100})[:：]", re.MULTILINE)
_DIGITS_PATTERN = re.compile(r"\d+")
_LETTERS_PATTERN = re.compile(r"[^\W\d_]+|[^\x00-\x7f]+")
_VARYING_PATTERN = re.compile(r"""(?<!\w)(['"`]).*?\1|[^\s\u2e80-\uffff]*\d[^\s\u2e80-\uffff]*""")
"""Quoted texts, and words with digits; Chinese has no spaces between words."""
MIN_SIMILARITY = 0.7
"""The `difflib` ratio from which a text counts as a misspelling. Measured by `evals/argument_similarity.py`."""


def compute_fingerprint(arguments: dict[str, Any]) -> str:
    """Return the hash of the arguments without their secrets. Identical calls of a tool share it."""
    return canonical_sha256(redact(arguments))[:32]


def compute_error_fingerprint(arguments: dict[str, Any], error_text: str) -> str:
    """Return the hash of an error without what varies: values of the arguments, quoted text and numbers."""
    for value in arguments.values():
        if _is_in_text(value, error_text):
            error_text = error_text.replace(value, "")
    constant = _VARYING_PATTERN.sub("", error_text[: MAX_STORED_CHARACTERS * 2])  # its time grows with the square
    return canonical_sha256(constant[:MAX_STORED_CHARACTERS])[:16]


def describe_shapes(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the shapes of the values, such as `<text A-9>` for "A-17" and `<int>` for 3, by argument."""
    return {name: f"<{_describe_shape(value)}>" for name, value in arguments.items()}


def _describe_shape(value: Any) -> str:
    if not isinstance(value, str):
        return type(value).__name__
    letters = _LETTERS_PATTERN.sub(lambda match: "A" if match[0].isupper() else "a", value[:MAX_STORED_CHARACTERS])
    return f"text {_DIGITS_PATTERN.sub('9', letters)}"


def find_wrong_fields(arguments: dict[str, Any], error_text: str) -> tuple[str, ...]:
    """Return the arguments that an error names by field, or whose value it quotes."""
    quoted = (name for name, value in arguments.items() if _is_in_text(value, error_text))
    return tuple(_find_named_fields(error_text) or quoted)


def format_failure_message(arguments: dict[str, Any], error_text: str, *, shapes_only: bool = False) -> str:
    """Return the message to store: the wrong arguments as JSON, then the error; or the shapes of these arguments."""
    wrong_fields = find_wrong_fields(arguments, error_text)
    shown = {name: value for name, value in arguments.items() if name in wrong_fields} or arguments
    if shapes_only:
        return dump_json(describe_shapes(shown)).decode()
    line = dump_json(truncate_value(redact(shown)), default=str).decode()
    return f"{line}\n{str(redact(error_text[: MAX_STORED_CHARACTERS * 20]))[: MAX_STORED_CHARACTERS * 2]}"


def parse_failed_arguments(message: str) -> dict[str, Any]:
    """Return the wrong arguments of a stored failure; {} if its message has none."""
    try:
        arguments = orjson.loads(message.partition("\n")[0])
    except orjson.JSONDecodeError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def find_correction(
    failed_arguments: dict[str, Any],
    worked_arguments: dict[str, Any],
    error_text: str,
    *,
    allow_larger_numbers: bool = False,
) -> dict[str, Any] | None:
    """Return the correction of a failed call by a successful one, as `{"given": {…}, "right": {…}}`.

    The result is None if the successful call is a different call rather than a correction. It is a correction if the
    error names the field or the new value, if a value moved to another argument, or if a text became a similar one.
    Different numbers alone are no correction, unless `allow_larger_numbers` is set and they grew, as after a time-out.
    """
    failed_items, worked_items = failed_arguments.items(), worked_arguments.items()
    wrong_arguments = {name: value for name, value in failed_items if (name, value) not in worked_items}
    correct_arguments = {name: value for name, value in worked_items if (name, value) not in failed_items}
    are_larger = (
        allow_larger_numbers
        and bool(correct_arguments)
        and all(_is_larger(wrong_arguments.get(name), value) for name, value in correct_arguments.items())
    )
    if not (
        are_larger
        or _find_named_fields(error_text).keys() & (wrong_arguments.keys() | correct_arguments.keys())
        or _is_plausible_correction(wrong_arguments, correct_arguments, error_text)
    ):
        return None
    return {"given": truncate_value(redact(wrong_arguments)), "right": truncate_value(redact(correct_arguments))}


def format_correction(correction: dict[str, Any] | None) -> tuple[str, str]:
    """Return the wrong and the correct arguments, each as `name="value", …`; ("", "") if there are none to show."""
    if not correction:
        return "", ""
    failed, worked = (format_arguments(correction.get(side, {}).items()) for side in ("given", "right"))
    return ("", "") if REDACTED in worked else (failed, worked)


def format_arguments(items: Iterable[tuple[str, Any]]) -> str:
    """Format arguments as `name="value", …` on one line, with special tokens escaped."""
    pairs = (f"{name[:60]}={dump_json(value, default=str).decode()[:MAX_STORED_CHARACTERS]}" for name, value in items)
    return escape_special_tokens(", ".join(" ".join(pair.split()) for pair in pairs))


def truncate_value(value: Any) -> Any:
    """Return a JSON value with its texts, lists and objects cut to the stored length."""
    if isinstance(value, str):
        return value if len(value) <= MAX_STORED_CHARACTERS else f"{value[:MAX_STORED_CHARACTERS]}…"
    if isinstance(value, dict):
        return {str(key)[:MAX_STORED_CHARACTERS]: truncate_value(inner) for key, inner in list(value.items())[:20]}
    if isinstance(value, list | tuple):
        return [truncate_value(inner) for inner in value[:20]]
    return value


def _find_named_fields(error_text: str) -> dict[str, None]:
    """Return the arguments that an error names by field, in order."""
    return dict.fromkeys(field.split(".")[0] for field in _FIELD_PATTERN.findall(error_text))


def _is_in_text(value: Any, text: str) -> bool:
    return isinstance(value, str) and len(value) > 1 and value in text


def _is_plausible_correction(
    wrong_arguments: dict[str, Any], correct_arguments: dict[str, Any], error_text: str
) -> bool:
    """Return whether the correct arguments follow from the wrong ones or the error."""
    if any(_is_in_text(value, error_text) for value in correct_arguments.values()):
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
    return all(isinstance(value, int | float) for value in (wrong_value, correct_value)) and correct_value > wrong_value


def _is_similar(wrong_value: Any, correct_value: Any) -> bool:
    if type(wrong_value) is not type(correct_value):
        return str(wrong_value) == str(correct_value)
    if not isinstance(wrong_value, str):
        return False
    without_digits = {_DIGITS_PATTERN.sub("", value) for value in (wrong_value, correct_value)}
    wrong, correct = wrong_value[:MAX_STORED_CHARACTERS], correct_value[:MAX_STORED_CHARACTERS]
    return len(without_digits) > 1 and SequenceMatcher(None, wrong, correct).ratio() >= MIN_SIMILARITY
