"""Warnings about earlier failures, for tool descriptions and requests.

They never quote the output of a tool.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opposable.agent.assistance.grounding import get_content_words
from opposable.agent.failure_fingerprints import format_arguments, format_correction, parse_failed_arguments
from opposable.domain.language import Language, split_words
from opposable.domain.records import Failure
from opposable.domain.tools import FailureKind, ToolDefinition

MAX_WARNINGS_PER_TOOL = 3
"""Warnings in the description of one tool."""
WARNED_FAILURE_KINDS: tuple[FailureKind, ...] = ("invalid_arguments", "refused", "failed", "timeout")
"""Failures that lead to a warning: those that the arguments may have caused."""


def format_warnings(failures: Iterable[Failure], compute_weight: Callable[[Failure], float]) -> tuple[str, str]:
    """Return the warnings about one tool, in English and in Chinese.

    A failure without a correction counts only if it occurred twice or is pinned. One with a correction counts for
    longer.
    """
    corrections: dict[tuple[str, str], None] = {}
    for failure in failures:
        failed_arguments, worked_arguments = format_correction(failure.correction)
        if failure.kind not in WARNED_FAILURE_KINDS or compute_weight(failure) < (0.25 if worked_arguments else 1.0):
            continue
        if not worked_arguments and failure.count < 2 and not failure.pinned:
            continue
        corrections[
            failed_arguments or format_arguments(parse_failed_arguments(failure.message).items()), worked_arguments
        ] = None
        if len(corrections) > MAX_WARNINGS_PER_TOOL:
            break
    pairs = [pair for pair in corrections if any(pair)][:MAX_WARNINGS_PER_TOOL]
    return "\n".join(_format_warning(*pair, "en") for pair in pairs), "\n".join(
        _format_warning(*pair, "zh") for pair in pairs
    )


def add_warnings(definition: ToolDefinition, warning_lines: str) -> ToolDefinition:
    """Return the definition with the warnings below its description."""
    if not warning_lines:
        return definition
    return ToolDefinition(definition.name, f"{definition.description}\n{warning_lines}", definition.parameters)


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
    value_words = [word for word in split_words(str(value)) if word not in get_content_words(field)]
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


def _format_warning(failed_arguments: str, worked_arguments: str, language: Language) -> str:
    if language == "zh":
        failure = f"{failed_arguments} 曾经失败" if failed_arguments else "曾经失败"
        return f"以往经验：{failure}" + (f"；可行的是 {worked_arguments}。" if worked_arguments else "。")
    failure = f"{failed_arguments} failed" if failed_arguments else "a call failed"
    return f"Known from before: {failure}" + (f"; {worked_arguments} worked." if worked_arguments else ".")
