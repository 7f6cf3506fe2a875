"""Which of some names was meant by a name that is none of them."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher

SURE = 0.62
"""From this likeness on, and `MARGIN` ahead of every other name, a name may be put right without asking."""
MARGIN = 0.08
HARDLY_ANOTHER = 0.97
"""The likeness of names that differ by case, spaces, signs or a plural's s alone."""
_WORTH_TELLING = 0.45
_PART = 0.7
"""The likeness of a word without letters, such as 行政, to a longer one that holds it, such as 行政管理."""


def suggestions(name: str, names: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Up to `count` of `names` that look like `name`, nearest first."""
    ranked = _ranked(name, names)
    return tuple(other for score, other in ranked if score >= _WORTH_TELLING)[:count]


def sure_match(name: str, names: Iterable[str]) -> str | None:
    """The one of `names` that must have been meant, or None when none or several are near."""
    ranked = _ranked(name, names)
    if not ranked or ranked[0][0] < SURE:
        return None
    if len(ranked) > 1 and ranked[0][0] - ranked[1][0] < MARGIN:
        return None
    return ranked[0][1]


def likeness(one: str, other: str) -> float:
    """How alike two names are, 0 to 1: case, underscores and a plural's s hardly count."""
    a, b = one.casefold(), other.casefold()
    if a == b:
        return 1.0
    bare_a, bare_b = _bare(a), _bare(b)
    if bare_a == bare_b:
        return 0.99
    if bare_a.rstrip("s") == bare_b.rstrip("s"):
        return 0.97
    ratio = SequenceMatcher(None, bare_a, bare_b, autojunk=False).ratio()
    edits = 1 - distance(bare_a, bare_b) / max(len(bare_a), len(bare_b), 1)
    score = (ratio + edits) / 2
    part = not (a + b).isascii() and len(bare_a) > 1 and (bare_a in bare_b or bare_b in bare_a)
    return max(score, _PART) if part else score


def _ranked(name: str, names: Iterable[str]) -> list[tuple[float, str]]:
    """The names that are at all like `name`, the likest first."""
    unique = [other for other in dict.fromkeys(names) if _may_be_like(name, other)]
    return sorted(((likeness(name, other), other) for other in unique), key=lambda pair: (-pair[0], pair[1]))


def _may_be_like(one: str, other: str) -> bool:
    """Whether names share so many letters that their likeness can matter: far quicker than to reckon it."""
    if not (one + other).isascii():
        return True
    a, b = _bare(one.casefold()), _bare(other.casefold())
    shared = sum((Counter(a) & Counter(b)).values())
    return (2 * shared / max(len(a) + len(b), 1) + shared / max(len(a), len(b), 1)) / 2 >= _WORTH_TELLING


def _bare(name: str) -> str:
    seen = name if name.isprintable() else "".join(char for char in name if unicodedata.category(char)[0] != "C")
    return re.sub(r"[\s_\-.]+", "", seen) or name


def distance(a: str, b: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`."""
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, char in enumerate(a, 1):
        row = [i]
        for j, other in enumerate(b, 1):
            cost = min(row[j - 1] + 1, last[j] + 1, last[j - 1] + (char != other))
            if i > 1 and j > 1 and char == b[j - 2] and a[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]
