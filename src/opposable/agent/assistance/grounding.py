"""Grounding of values: whether the request or a result contains them."""

import re
from collections.abc import Iterable
from typing import Any

from opposable.domain.language import NUMBER_WORDS, split_words

_NUMBER_PATTERN = re.compile(r"\d[\d.,]*\d|\d")
_NUMBERS_BY_WORD = {
    "a": 1,
    "an": 1,
    "once": 1,
    "twice": 2,
    "both": 2,
    "pair": 2,
    "half": 0.5,
    "dozen": 12,
    "hundred": 100,
}
_CHINESE_NUMERAL_PATTERN = re.compile(r"[零〇一二两三四五六七八九十百千万亿半]")
_IDENTIFIER_PART_PATTERN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_GENERIC_WORDS = frozenset("id ids no number name key code value of the new old to from at in by text".split())  # noqa: SIM905
"""Words of names that say nothing about their subject."""


def split_identifier(name: str) -> list[str]:
    """Return the words of an identifier in lower case."""
    return [part.lower() for part in _IDENTIFIER_PART_PATTERN.findall(name)]


def get_content_words(name: str) -> set[str]:
    """Return the words of an identifier that name its subject, in the singular."""
    return {_to_singular(part) for part in split_identifier(name)} - _GENERIC_WORDS


def is_number_grounded(number: float, texts: Iterable[str]) -> bool:
    """Return whether a number occurs in a text, in digits or in words."""
    for text in texts:
        if any(_parse_number(found) in (number, number * 100, number / 100) for found in _NUMBER_PATTERN.findall(text)):
            return True
        spoken = set(split_words(text))
        if _CHINESE_NUMERAL_PATTERN.search(text) or any(
            number == meant and word in spoken for word, meant in _NUMBERS_BY_WORD.items()
        ):
            return True
        if number in range(len(NUMBER_WORDS)) and NUMBER_WORDS[int(number)] in spoken:
            return True
    return False


def is_user_value(value: Any, request: str) -> bool:
    """Return whether a value is one of the user: an id, or words of the request."""
    if not isinstance(value, str):
        return True
    held = split_words(value)
    return any(word.isdigit() for word in held) or set(held) <= set(split_words(request))


def is_name(value: Any) -> bool:
    """Return whether a value is a text without digits."""
    return isinstance(value, str) and bool(value) and not any(character.isdigit() for character in value)


def is_in_any_text(value: str, texts: Iterable[str]) -> bool:
    """Return whether all words of a value occur in one of the texts."""
    held = set(split_words(value))
    return any(held <= set(split_words(text)) for text in texts)


def is_tool_named(name: str, text: str) -> bool:
    """Return whether a text contains the name of a tool."""
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", text) is not None


def shares_word(value: str, text: str) -> bool:
    """Return whether a value and a text share a word, also by its beginning."""
    held = {_to_singular(word) for word in split_words(value) if len(word) > 2 or not word.isascii()}
    spoken = {_to_singular(word) for word in split_words(text) if len(word) > 2 or not word.isascii()}
    return any(word.startswith(other) or other.startswith(word) for word in held for other in spoken)


def is_ungrounded(value: Any, field: str, request: str) -> bool:
    """Return whether no word of a text occurs in the request."""
    if not isinstance(value, str):
        return False
    held = {_to_singular(word) for word in split_words(value)} - get_content_words(field)
    return bool(held) and held.isdisjoint(_to_singular(word) for word in split_words(request))


def _parse_number(digits: str) -> float | None:
    try:
        return float(digits.replace(",", ""))
    except ValueError:
        return None


def _to_singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
