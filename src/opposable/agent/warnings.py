"""What a model is told of a tool's earlier failures, in its description: words of our making, and arguments."""

from collections.abc import Callable, Iterable

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


def _line(given: str, right: str, language: Language) -> str:
    if language == "zh":
        tried = f"{given} 曾经失败" if given else "曾经失败"
        return f"以往经验：{tried}" + (f"；可行的是 {right}。" if right else "。")
    tried = f"{given} failed" if given else "a call failed"
    return f"Known from before: {tried}" + (f"; {right} worked." if right else ".")
