"""Which of some names was meant by a name that is none of them."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher

from opposable.domain.text_normalization import compute_edit_distance

SURE_SIMILARITY = 0.62
"""From this likeness on, and `MARGIN` ahead of every other name, a name may be put right without asking."""
SURE_MARGIN = 0.08
SAME_NAME_SIMILARITY = 0.97
"""The likeness of names that differ by case, spaces, signs or a plural's s alone."""
_MIN_SUGGESTED_SIMILARITY = 0.45
_SUBSTRING_SIMILARITY = 0.7
"""The likeness of a word without letters, such as 行政, to a longer one that holds it, such as 行政管理."""


def suggest_names(name: str, names: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Up to `count` of `names` that look like `name`, nearest first."""
    ranked = _rank_names(name, names)
    return tuple(other for score, other in ranked if score >= _MIN_SUGGESTED_SIMILARITY)[:limit]


def find_sure_match(name: str, names: Iterable[str]) -> str | None:
    """The one of `names` that must have been meant, or None when none or several are near."""
    ranked = _rank_names(name, names)
    if not ranked or ranked[0][0] < SURE_SIMILARITY:
        return None
    if len(ranked) > 1 and ranked[0][0] - ranked[1][0] < SURE_MARGIN:
        return None
    return ranked[0][1]


def compute_similarity(name: str, other: str) -> float:
    """How alike two names are, 0 to 1: case, underscores and a plural's s hardly count."""
    a, b = name.casefold(), other.casefold()
    if a == b:
        return 1.0
    bare_a, bare_b = _strip_separators(a), _strip_separators(b)
    if bare_a == bare_b:
        return 0.99
    if bare_a.rstrip("s") == bare_b.rstrip("s"):
        return 0.97
    ratio = SequenceMatcher(None, bare_a, bare_b, autojunk=False).ratio()
    edits = 1 - compute_edit_distance(bare_a, bare_b) / max(len(bare_a), len(bare_b), 1)
    score = (ratio + edits) / 2
    part = not (a + b).isascii() and len(bare_a) > 1 and (bare_a in bare_b or bare_b in bare_a)
    return max(score, _SUBSTRING_SIMILARITY) if part else score


def _rank_names(name: str, names: Iterable[str]) -> list[tuple[float, str]]:
    """The names that are at all like `name`, the likest first."""
    unique = [other for other in dict.fromkeys(names) if _can_be_similar(name, other)]
    return sorted(((compute_similarity(name, other), other) for other in unique), key=lambda pair: (-pair[0], pair[1]))


def _can_be_similar(name: str, other: str) -> bool:
    """Whether names share so many letters that their likeness can matter: far quicker than to reckon it."""
    if not (name + other).isascii():
        return True
    a, b = _strip_separators(name.casefold()), _strip_separators(other.casefold())
    shared = sum((Counter(a) & Counter(b)).values())
    return (2 * shared / max(len(a) + len(b), 1) + shared / max(len(a), len(b), 1)) / 2 >= _MIN_SUGGESTED_SIMILARITY


def _strip_separators(name: str) -> str:
    seen = name if name.isprintable() else "".join(char for char in name if unicodedata.category(char)[0] != "C")
    return re.sub(r"[\s_\-.]+", "", seen) or name
