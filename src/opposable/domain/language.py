"""Which of the two languages we speak a text is in, and its words."""

import re
from collections.abc import Iterable
from typing import Literal

from opposable.domain.text_normalization import CHINESE_CHARACTERS

Language = Literal["en", "zh"]

NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
"""Small numbers in words, each at its own place."""

_DIGITS_BY_WORD = {word: str(n) for n, word in enumerate(NUMBER_WORDS)}
_DIGITS_BY_WORD |= {word: str(n) for n, word in enumerate("一二三四五六七八九十", start=1)} | {"两": "2"}
_CHINESE_CHARACTER = re.compile(f"[{CHINESE_CHARACTERS}]")
_LATIN_WORD = re.compile(r"[A-Za-z]{2,}")
_WORD_OR_NUMBER = re.compile(r"[a-z]+|\d+|[^\x00-\x7f]")


def detect_language(text: str) -> Language:
    """Chinese ("zh") where its characters are at least a third of the words, each counted as one; else "en".

    Only the first 2,000 characters are looked at.
    """
    text = text[:2000]
    chinese = len(_CHINESE_CHARACTER.findall(text))
    return "zh" if chinese and chinese * 2 >= len(_LATIN_WORD.findall(text)) else "en"


def split_words(text: str) -> list[str]:
    """The words and numbers of a text in lower case; a Chinese character is a word."""
    return _WORD_OR_NUMBER.findall(text.lower())


def extract_numbers(words: Iterable[str]) -> set[str]:
    """The numbers among words, in digits: "3" for 3, three and 三."""
    return {_DIGITS_BY_WORD.get(word, word) for word in words if word in _DIGITS_BY_WORD or word.isdigit()}
