"""Language detection between English and Chinese, words and numbers of a text."""

import re
from collections.abc import Iterable
from typing import Literal

from opposable.domain.text_normalization import CHINESE_CHARACTERS

Language = Literal["en", "zh"]

NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
"""Number words; the index is the number."""

_DIGITS_BY_WORD = {word: str(n) for n, word in enumerate(NUMBER_WORDS)}
_DIGITS_BY_WORD |= {word: str(n) for n, word in enumerate("一二三四五六七八九十", start=1)} | {"两": "2"}
_CHINESE_CHARACTER = re.compile(f"[{CHINESE_CHARACTERS}]")
_LATIN_WORD = re.compile(r"[A-Za-z]{2,}")
_WORD_OR_NUMBER = re.compile(r"[a-z]+|\d+|[^\x00-\x7f]")


def detect_language(text: str) -> Language:
    """Return "zh" if at least a third of the words are Chinese, else "en".

    Each Chinese character counts as a word. Only the first 2,000 characters are read.
    """
    text = text[:2000]
    chinese = len(_CHINESE_CHARACTER.findall(text))
    return "zh" if chinese and chinese * 2 >= len(_LATIN_WORD.findall(text)) else "en"


def split_words(text: str) -> list[str]:
    """Return the words and numbers of a text in lower case.

    Each Chinese character is a word.
    """
    return _WORD_OR_NUMBER.findall(text.lower())


def extract_numbers(words: Iterable[str]) -> set[str]:
    """Return the numbers among words as digits: "3" for 3, three and 三."""
    return {_DIGITS_BY_WORD.get(word, word) for word in words if word in _DIGITS_BY_WORD or word.isdigit()}
