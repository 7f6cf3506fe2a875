"""Hints about earlier corrections, added to a request that repeats a failed value."""

from collections.abc import Iterable, Sequence
from typing import Any

from opposable.agent.failure_fingerprints import format_correction
from opposable.agent.failure_warnings import MAX_WARNINGS_PER_TOOL, WARNED_FAILURE_KINDS
from opposable.domain.language import Language, split_words
from opposable.domain.records import Failure


def format_hints(failures: Iterable[Failure], tool_name: str, request_words: Sequence[str], language: Language) -> str:
    """Return the corrections of earlier failures whose values the request contains.

    "" if there are none. The hints go next to the request, because small models ignore warnings in a tool
    description.
    """
    hints: dict[str, None] = {}
    for failure in failures:
        if failure.kind not in WARNED_FAILURE_KINDS or not _is_failure_requested(failure.correction, request_words):
            continue
        worked_arguments = format_correction(failure.correction)[1]
        if worked_arguments:
            hints[_format_hint(tool_name, worked_arguments, language)] = None
        if len(hints) == MAX_WARNINGS_PER_TOOL:
            break
    return "\n".join(hints)


def _is_failure_requested(correction: dict[str, Any] | None, request_words: Sequence[str]) -> bool:
    """Return whether a request contains the failed values and not the correct ones."""
    if not correction or not isinstance(failed_arguments := correction.get("given"), dict) or not failed_arguments:
        return False
    worked_arguments = correction.get("right")
    worked_items = worked_arguments.items() if isinstance(worked_arguments, dict) else ()
    has_worked_values = all(_contains_phrase(split_words(str(value)), request_words) for _, value in worked_items)
    return not has_worked_values and all(
        _is_value_requested(field, value, request_words) for field, value in failed_arguments.items()
    )


def _is_value_requested(field: str, value: Any, request_words: Sequence[str]) -> bool:
    """Return whether a request has the numbers and half of the words of a value."""
    value_words = [word for word in split_words(str(value)) if word not in split_words(field.replace("_", " "))]
    requested_words = [word for word in value_words if word in request_words]
    return (
        bool(requested_words)
        and len(requested_words) * 2 >= len(value_words)
        and all(word in requested_words for word in value_words if word.isdigit())
    )


def _contains_phrase(phrase: Sequence[str], request_words: Sequence[str]) -> bool:
    """Return whether a request contains these words in this order."""
    return any(
        list(request_words[at : at + len(phrase)]) == phrase for at in range(len(request_words) - len(phrase) + 1)
    )


def _format_hint(name: str, worked_arguments: str, language: Language) -> str:
    """Return a hint with the arguments that worked.

    Failed ones are left out: small models repeat what they see.
    """
    return (
        f"（以往成功：{name}({worked_arguments})。）"
        if language == "zh"
        else f"(Worked before: {name}({worked_arguments}).)"
    )
