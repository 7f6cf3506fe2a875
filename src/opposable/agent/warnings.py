"""What a model is told of a tool's earlier failures, in its description: words of our making, and arguments."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opposable.agent.evidence import words
from opposable.agent.fingerprints import given_in, in_words, named
from opposable.domain.language import Language
from opposable.domain.records import Failure
from opposable.domain.tools import FailureKind, ToolDefinition

WARNINGS = 3
"""Warnings of one tool at most."""
TAUGHT: tuple[FailureKind, ...] = ("invalid_arguments", "refused", "failed", "timeout")
"""Failures that a model is warned of: those its arguments may have caused."""


def warnings_of(known: Iterable[Failure], weight: Callable[[Failure], float]) -> tuple[str, str]:
    """The lines on one tool, in English and in Chinese, with nothing in them that a tool said.

    A failure that was put right is told for longer than one that was not, which must have come twice, or be pinned.
    """
    told: dict[tuple[str, str], None] = {}
    for one in known:
        given, right = in_words(one.correction)
        if one.kind not in TAUGHT or weight(one) < (0.25 if right else 1.0):
            continue
        if not right and one.count < 2 and not one.pinned:
            continue
        told[given or named(given_in(one.message).items()), right] = None
        if len(told) > WARNINGS:
            break
    pairs = [pair for pair in told if any(pair)][:WARNINGS]
    return "\n".join(_line(*pair, "en") for pair in pairs), "\n".join(_line(*pair, "zh") for pair in pairs)


def warned(definition: ToolDefinition, lines: str) -> ToolDefinition:
    """The definition with the lines below its description."""
    if not lines:
        return definition
    return ToolDefinition(definition.name, f"{definition.description}\n{lines}", definition.parameters)


def hints_of(known: Iterable[Failure], name: str, request: str, language: Language) -> str:
    """What put right before what this request asks for in the same words, for the tool of that name; "" for nothing.

    It stands beside the request: a small model does not heed a line in a tool's description.
    """
    spoken = words(request)
    told: dict[str, None] = {}
    for one in known:
        if one.kind not in TAUGHT or not _is_asked_again(one.correction, spoken):
            continue
        given, right = in_words(one.correction)
        if right:
            told[_hint(name, given, right, language)] = None
        if len(told) == WARNINGS:
            break
    return "\n".join(told)


def _is_asked_again(correction: dict[str, Any] | None, spoken: Sequence[str]) -> bool:
    """Whether a request has all that was given wrongly, and not what is right."""
    if not correction or not isinstance(given := correction.get("given"), dict) or not given:
        return False
    right = correction.get("right")
    better = right.values() if isinstance(right, dict) else ()
    return all(_said(value, spoken) for value in given.values()) and not all(_said(value, spoken) for value in better)


def _said(value: Any, spoken: Sequence[str]) -> bool:
    held = words(str(value))
    return bool(held) and any(list(spoken[at : at + len(held)]) == held for at in range(len(spoken) - len(held) + 1))


def _hint(name: str, given: str, right: str, language: Language) -> str:
    if language == "zh":
        return f"（以往经验：{name} 用 {given} 失败，用 {right} 成功。）"
    return f"(Known from before: {name} failed with {given} and worked with {right}.)"


def _line(given: str, right: str, language: Language) -> str:
    if language == "zh":
        tried = f"{given} 曾经失败" if given else "曾经失败"
        return f"以往经验：{tried}" + (f"；可行的是 {right}。" if right else "。")
    tried = f"{given} failed" if given else "a call failed"
    return f"Known from before: {tried}" + (f"; {right} worked." if right else ".")
