"""Similarity of names."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher

from opposable.domain.text_normalization import compute_edit_distance

SAME_NAME_SIMILARITY = 0.97
"""Similarity of names that differ only by case, separators or a plural s."""
_MIN_SUGGESTED_SIMILARITY = 0.45
_SUBSTRING_SIMILARITY = 0.7
"""Similarity of a non-ASCII word such as 行政 to a longer one that contains it, such as 行政管理."""


def suggest_names(name: str, names: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Return up to `limit` of `names` that are similar to `name`, most similar first."""
    ranked = _rank_names(name, names)
    return tuple(other for score, other in ranked if score >= _MIN_SUGGESTED_SIMILARITY)[:limit]


def compute_similarity(name: str, other: str) -> float:
    """Return the similarity of two names, 0 to 1.

    Case, separators and a plural s hardly count.
    """
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
    contained = not (a + b).isascii() and len(bare_a) > 1 and (bare_a in bare_b or bare_b in bare_a)
    return max(score, _SUBSTRING_SIMILARITY) if contained else score


def _rank_names(name: str, names: Iterable[str]) -> list[tuple[float, str]]:
    """Return similar names with their scores, most similar first."""
    unique = [other for other in dict.fromkeys(names) if _can_be_similar(name, other)]
    return sorted(((compute_similarity(name, other), other) for other in unique), key=lambda pair: (-pair[0], pair[1]))


def _can_be_similar(name: str, other: str) -> bool:
    """Whether names share enough letters to be similar: a cheap upper bound."""
    if not (name + other).isascii():
        return True
    a, b = _strip_separators(name.casefold()), _strip_separators(other.casefold())
    shared = sum((Counter(a) & Counter(b)).values())
    return (2 * shared / max(len(a) + len(b), 1) + shared / max(len(a), len(b), 1)) / 2 >= _MIN_SUGGESTED_SIMILARITY


def _strip_separators(name: str) -> str:
    visible = name if name.isprintable() else "".join(char for char in name if unicodedata.category(char)[0] != "C")
    return re.sub(r"[\s_\-.]+", "", visible) or name
