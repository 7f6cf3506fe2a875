"""Whether the answer to a task of an evaluation set contains what is expected."""

import re
from collections.abc import Sequence

from opposable.domain.text_normalization import fold_text

_THOUSANDS_SEPARATOR = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_WORD = "[a-z0-9]"


def contains_expected(answer: str, expected: Sequence[str]) -> bool:
    """Return whether an answer contains every expected text, as whole words and numbers.

    Case, width, white space, thousands separators and zeros at the end of a decimal do not count.
    """
    normalized = f" {_normalize(answer)}"
    return all(_compile(_normalize(text)).search(normalized) for text in expected)


def _normalize(text: str) -> str:
    return _THOUSANDS_SEPARATOR.sub("", " ".join(fold_text(text).split()))


def _compile(text: str) -> re.Pattern[str]:
    """Return the pattern of a text that is not a part of a longer word or number. A number may have more decimals of 0."""
    before = rf"(?<!{_WORD})(?<!\d\.)(?<![^0-9]-)" if text[:1].isdigit() else rf"(?<!{_WORD})"
    after = rf"(?!{_WORD})(?!\.\d)" if text[-1:].isdigit() else rf"(?!{_WORD})"
    starts_word, ends_word, number = re.match(_WORD, text), re.match(_WORD, text[-1:]), _NUMBER.fullmatch(text)
    zeros = "" if not number else "0*" if number[1] else r"(?:\.0+)?"
    return re.compile((before if starts_word else "") + re.escape(text) + zeros + (after if ends_word else ""))
