"""What a model is told of a tool's earlier failures, in its description: words of our making, and arguments."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opposable.agent.failure_fingerprints import given_in, in_words, named
from opposable.agent.grounding import things
from opposable.domain.language import Language, words
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


def hints_of(known: Iterable[Failure], name: str, spoken: Sequence[str], language: Language) -> str:
    """What put right before what a request asks for in the same words, for the tool of that name; "" for nothing.

    `spoken` are the request's words. It stands beside the request: a small model does not heed a line in a tool's description.
    """
    told: dict[str, None] = {}
    for one in known:
        if one.kind not in TAUGHT or not _is_asked_again(one.correction, spoken):
            continue
        right = in_words(one.correction)[1]
        if right:
            told[_hint(name, right, language)] = None
        if len(told) == WARNINGS:
            break
    return "\n".join(told)


def _is_asked_again(correction: dict[str, Any] | None, spoken: Sequence[str]) -> bool:
    """Whether a request has what was given wrongly, and not what is right."""
    if not correction or not isinstance(given := correction.get("given"), dict) or not given:
        return False
    right = correction.get("right")
    better = right.items() if isinstance(right, dict) else ()
    known = all(_stands_in(words(str(value)), spoken) for _, value in better)
    return not known and all(_is_meant(field, value, spoken) for field, value in given.items())


def _is_meant(field: str, value: Any, spoken: Sequence[str]) -> bool:
    """Whether a request has a value's numbers, and at least half of its words, apart from what the field is about."""
    held = [word for word in words(str(value)) if word not in things(field)]
    told = [word for word in held if word in spoken]
    return bool(told) and len(told) * 2 >= len(held) and all(word in told for word in held if word.isdigit())


def _stands_in(held: Sequence[str], spoken: Sequence[str]) -> bool:
    """Whether words were spoken one after the other."""
    return any(list(spoken[at : at + len(held)]) == held for at in range(len(spoken) - len(held) + 1))


def _hint(name: str, right: str, language: Language) -> str:
    """What worked, and nothing of what did not: a small model writes again whatever it sees."""
    return f"（以往成功：{name}({right})。）" if language == "zh" else f"(Worked before: {name}({right}).)"


def _line(given: str, right: str, language: Language) -> str:
    if language == "zh":
        tried = f"{given} 曾经失败" if given else "曾经失败"
        return f"以往经验：{tried}" + (f"；可行的是 {right}。" if right else "。")
    tried = f"{given} failed" if given else "a call failed"
    return f"Known from before: {tried}" + (f"; {right} worked." if right else ".")
