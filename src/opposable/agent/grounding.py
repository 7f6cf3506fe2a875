"""Where a call's values come from: what the user said, what results showed, and which tools could bring the rest."""

import re
from collections.abc import Iterable
from typing import Any

from opposable.domain.language import NUMBER_WORDS, words

_NUMBER = re.compile(r"\d[\d.,]*\d|\d")
_MEANT = {"a": 1, "an": 1, "once": 1, "twice": 2, "both": 2, "pair": 2, "half": 0.5, "dozen": 12, "hundred": 100}
_CHINESE = re.compile(r"[零〇一二两三四五六七八九十百千万亿半]")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_NO_THING = frozenset("id ids no number name key code value of the new old to from at in by text".split())  # noqa: SIM905
"""Parts of names that say nothing of what they name."""


def parts(name: str) -> list[str]:
    """The words of a tool's or parameter's name in lower case, as they stand in it."""
    return [part.lower() for part in _PART.findall(name)]


def things(name: str) -> set[str]:
    """The words of a tool's or parameter's name that say what it is about, in the singular."""
    return {_singular(part) for part in parts(name)} - _NO_THING


def is_heard(number: float, texts: Iterable[str]) -> bool:
    """Whether a number stands in any of the texts, in digits or, a small one, in words; where any may be meant, it does."""
    for text in texts:
        if any(_value(found) in (number, number * 100, number / 100) for found in _NUMBER.findall(text)):
            return True
        spoken = set(words(text))
        if _CHINESE.search(text) or any(number == meant and word in spoken for word, meant in _MEANT.items()):
            return True
        if number in range(len(NUMBER_WORDS)) and NUMBER_WORDS[int(number)] in spoken:
            return True
    return False


def is_wanted(value: Any, request: str) -> bool:
    """Whether a value is the user's own: an id, whose digits make it just that one, or words that were all said."""
    if not isinstance(value, str):
        return True
    held = words(value)
    return any(word.isdigit() for word in held) or set(held) <= set(words(request))


def is_name(value: Any) -> bool:
    """Whether a value is a text without a digit: what somebody or something is called."""
    return isinstance(value, str) and bool(value) and not any(character.isdigit() for character in value)


def is_spoken(value: str, texts: Iterable[str]) -> bool:
    """Whether all words of a value stand in one of the texts."""
    held = set(words(value))
    return any(held <= set(words(text)) for text in texts)


def is_named(name: str, text: str) -> bool:
    """Whether a tool's name stands in a text as it is."""
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", text) is not None


def is_akin(value: str, texts: str) -> bool:
    """Whether a value and some texts share a Chinese character, or the first three letters or more of a whole word."""
    held = {_singular(word) for word in words(value) if len(word) > 2 or not word.isascii()}
    spoken = {_singular(word) for word in words(texts) if len(word) > 2 or not word.isascii()}
    return any(word.startswith(other) or other.startswith(word) for word in held for other in spoken)


def is_made_up(value: Any, field: str, request: str) -> bool:
    """Whether nothing of a text was said, apart from what its parameter is about."""
    if not isinstance(value, str):
        return False
    held = {_singular(word) for word in words(value)} - things(field)
    return bool(held) and held.isdisjoint(_singular(word) for word in words(request))


def _value(found: str) -> float | None:
    try:
        return float(found.replace(",", ""))
    except ValueError:
        return None


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
