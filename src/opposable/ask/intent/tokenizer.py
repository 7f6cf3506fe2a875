"""Tokenizer of questions: English words by their stem, Chinese text by character."""

import re
from dataclasses import dataclass

from opposable.domain.text_normalization import CHINESE_CHARACTERS, lowercase_halfwidth, singularize

_WORD_PATTERN = re.compile(rf"[{CHINESE_CHARACTERS}]|\d[\d,]*(?:\.\d+)?|[^\W\d_{CHINESE_CHARACTERS}]+(?:['’]s\b)?")
_CHINESE_CHARACTER = re.compile(rf"[{CHINESE_CHARACTERS}]")


@dataclass(frozen=True, slots=True)
class Word:
    """A word, its characters in the text, and the stem that it is compared by."""

    start: int
    end: int
    stem: str

    @property
    def is_chinese(self) -> bool:
        """Whether the word is a Chinese character."""
        return _CHINESE_CHARACTER.match(self.stem) is not None


def tokenize(text: str) -> list[Word]:
    """Split `text` into words, at signs and underscores."""
    matches = _WORD_PATTERN.finditer(lowercase_halfwidth(text))
    return [Word(match.start(), match.end(), stem_word(match[0])) for match in matches]


def stem_word(word: str) -> str:
    """Remove the ending of a plural or a possessive from a lowercase word."""
    word = re.sub(r"['’]s$", "", word)
    return singularize(word) if word.isascii() else word
