"""What a model is told of a tool's earlier failures, in its description: words of our making, and arguments."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opposable.agent.assistance.grounding import get_content_words
from opposable.agent.failure_fingerprints import format_arguments, format_correction, parse_failed_arguments
from opposable.domain.language import Language, split_words
from opposable.domain.records import Failure
from opposable.domain.tools import FailureKind, ToolDefinition

MAX_WARNINGS_PER_TOOL = 3
"""Warnings of one tool at most."""
WARNED_FAILURE_KINDS: tuple[FailureKind, ...] = ("invalid_arguments", "refused", "failed", "timeout")
"""Failures that a model is warned of: those its arguments may have caused."""


def format_warnings(failures: Iterable[Failure], compute_weight: Callable[[Failure], float]) -> tuple[str, str]:
    """The lines on one tool, in English and in Chinese, with nothing in them that a tool said.

    A failure that was put right is told for longer than one that was not, which must have come twice, or be pinned.
    """
    told: dict[tuple[str, str], None] = {}
    for one in failures:
        given, right = format_correction(one.correction)
        if one.kind not in WARNED_FAILURE_KINDS or compute_weight(one) < (0.25 if right else 1.0):
            continue
        if not right and one.count < 2 and not one.pinned:
            continue
        told[given or format_arguments(parse_failed_arguments(one.message).items()), right] = None
        if len(told) > MAX_WARNINGS_PER_TOOL:
            break
    pairs = [pair for pair in told if any(pair)][:MAX_WARNINGS_PER_TOOL]
    return "\n".join(_format_warning(*pair, "en") for pair in pairs), "\n".join(
        _format_warning(*pair, "zh") for pair in pairs
    )


def add_warnings(definition: ToolDefinition, warning_lines: str) -> ToolDefinition:
    """The definition with the lines below its description."""
    if not warning_lines:
        return definition
    return ToolDefinition(definition.name, f"{definition.description}\n{warning_lines}", definition.parameters)


def format_hints(failures: Iterable[Failure], tool_name: str, request_words: Sequence[str], language: Language) -> str:
    """What put right before what a request asks for in the same words, for the tool of that name; "" for nothing.

    `spoken` are the request's words. It stands beside the request: a small model does not heed a line in a tool's description.
    """
    told: dict[str, None] = {}
    for one in failures:
        if one.kind not in WARNED_FAILURE_KINDS or not _is_failure_requested(one.correction, request_words):
            continue
        right = format_correction(one.correction)[1]
        if right:
            told[_format_hint(tool_name, right, language)] = None
        if len(told) == MAX_WARNINGS_PER_TOOL:
            break
    return "\n".join(told)


def _is_failure_requested(correction: dict[str, Any] | None, request_words: Sequence[str]) -> bool:
    """Whether a request has what was given wrongly, and not what is right."""
    if not correction or not isinstance(given := correction.get("given"), dict) or not given:
        return False
    right = correction.get("right")
    better = right.items() if isinstance(right, dict) else ()
    known = all(_contains_phrase(split_words(str(value)), request_words) for _, value in better)
    return not known and all(_is_value_requested(field, value, request_words) for field, value in given.items())


def _is_value_requested(field: str, value: Any, request_words: Sequence[str]) -> bool:
    """Whether a request has a value's numbers, and at least half of its words, apart from what the field is about."""
    held = [word for word in split_words(str(value)) if word not in get_content_words(field)]
    told = [word for word in held if word in request_words]
    return bool(told) and len(told) * 2 >= len(held) and all(word in told for word in held if word.isdigit())


def _contains_phrase(phrase: Sequence[str], request_words: Sequence[str]) -> bool:
    """Whether words were spoken one after the other."""
    return any(
        list(request_words[at : at + len(phrase)]) == phrase for at in range(len(request_words) - len(phrase) + 1)
    )


def _format_hint(name: str, worked_arguments: str, language: Language) -> str:
    """What worked, and nothing of what did not: a small model writes again whatever it sees."""
    return (
        f"（以往成功：{name}({worked_arguments})。）"
        if language == "zh"
        else f"(Worked before: {name}({worked_arguments}).)"
    )


def _format_warning(failed_arguments: str, worked_arguments: str, language: Language) -> str:
    if language == "zh":
        tried = f"{failed_arguments} 曾经失败" if failed_arguments else "曾经失败"
        return f"以往经验：{tried}" + (f"；可行的是 {worked_arguments}。" if worked_arguments else "。")
    tried = f"{failed_arguments} failed" if failed_arguments else "a call failed"
    return f"Known from before: {tried}" + (f"; {worked_arguments} worked." if worked_arguments else ".")
