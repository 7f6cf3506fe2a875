"""A text as words: English ones by their stem, Chinese ones character by character."""

import re
from dataclasses import dataclass

from opposable.ask.intent.time_expressions import lowercase_halfwidth

_WORD_PATTERN = re.compile(
    r"[\u3400-\u9fff\uf900-\ufaff]|\d[\d,]*(?:\.\d+)?|[^\W\d_\u3400-\u9fff\uf900-\ufaff]+(?:['’]s\b)?"
)


@dataclass(frozen=True, slots=True)
class Word:
    """One word and where it stands; `stem` is what it is compared by."""

    start: int
    end: int
    stem: str

    @property
    def is_chinese(self) -> bool:
        """Whether it is a Chinese character."""
        return "\u3400" <= self.stem <= "\u9fff" or "\uf900" <= self.stem <= "\ufaff"


def tokenize(text: str) -> list[Word]:
    """The words of `text` in order; signs and underscores part them."""
    low = lowercase_halfwidth(text)
    return [Word(found.start(), found.end(), stem_word(found[0])) for found in _WORD_PATTERN.finditer(low)]


def stem_word(word: str) -> str:
    """A word in lower case without the ending of a plural or a possessive."""
    word = re.sub(r"['’]s$", "", word)
    if not word.isascii() or len(word) < 4 or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ses", "xes", "ches", "shes", "zes")) and not word.endswith(("ases", "uses", "eses", "oses")):
        return word[:-2]
    return word.removesuffix("s")
