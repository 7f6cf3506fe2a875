"""Which of the two languages we speak a text is in."""

import re
from typing import Literal

Language = Literal["en", "zh"]

_CHINESE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_LATIN_WORD = re.compile(r"[A-Za-z]{2,}")


def language_of(text: str) -> Language:
    """Chinese ("zh") where its characters are at least a third of the words, each counted as one; else "en".

    Only the first 2,000 characters are looked at.
    """
    text = text[:2000]
    chinese = len(_CHINESE.findall(text))
    return "zh" if chinese and chinese * 2 >= len(_LATIN_WORD.findall(text)) else "en"
