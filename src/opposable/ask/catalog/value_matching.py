"""A question's words matched to real values: letter by letter, misspelt, in part, as a number or a date."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from opposable.ask.catalog.text_normalization import (
    STOP_PAIRS,
    STOP_WORDS,
    common_part,
    folded,
    index_words,
    is_cjk,
    singular,
    tokens,
)
from opposable.ask.catalog.value_index import Stored, ValueIndex
from opposable.sql.name_similarity import distance

How = Literal["exact", "fuzzy", "part"]

_WINDOW = 6
_CJK_WINDOW = 12
_QUESTION = 1_000
"""Characters of a question that are looked at."""
_LISTED = 300
"""Values looked at for one word; those of small columns come first."""
_PART = 0.3
"""The least share of a value that a question must name for it to be worth telling."""
_PER_COLUMN = 3
_QUOTED = re.compile(
    r"\"([^\"]{1,80})\"|'([^']{1,80})'(?!\w)|“([^”]{1,80})”|「([^」]{1,80})」|《([^》]{1,80})》|‘([^’]{1,80})’"
)
_DATE = re.compile(r"(\d{4})\s*[-/年.]\s*(\d{1,2})(?:\s*[-/月.]\s*(\d{1,2})\s*日?|\s*月)?")


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """A real value that a question names. `score` is 1 for the very words, less for likeness; `phrase` is as asked.

    `value` is untrusted text, as it stands in the database.
    """

    table: str
    column: str
    value: str
    phrase: str
    how: How
    score: float


def match_values(
    question: str, index: ValueIndex, names: frozenset[str] = frozenset(), most: int = 12
) -> tuple[ValueMatch, ...]:
    """The values that `question` names, the surest first; blocks for milliseconds.

    `names` are words of tables' and columns' names: they are no misspelt values, and alone no sure ones.
    """
    text = folded(question[:_QUESTION])
    windows = _windows(text) | _special(question)
    exact = [*_exact(windows, index, names), *_in_dates(question, index)]
    covered = _covered(text, [match.phrase for match in exact])
    words = [word for word in _content_words(text) if word not in covered and singular(word) not in names]
    fuzzy = _fuzzy(text, words, index)
    done = covered | {word for match in fuzzy for word in match.phrase.split()}
    parts = _parts(text, [word for word in words if word not in done], index)
    return _best([*exact, *fuzzy, *parts], most)


def _windows(text: str) -> dict[str, str]:
    """Every run of words that may be a value, with what stands in the question; plurals without their ending too."""
    found: dict[str, str] = {}
    words = tokens(text)
    for i in range(len(words)):
        for j in range(i, min(len(words), i + _CJK_WINDOW)):
            phrase = text[words[i][1] : words[j][2]]
            if j - i >= _WINDOW and not is_cjk(phrase):
                break
            if i == j and (phrase in STOP_WORDS or (len(phrase) < 2 and not phrase.isdigit())):
                continue
            if phrase in STOP_PAIRS or all(word in STOP_WORDS for word in phrase.split()):
                continue
            found.setdefault(phrase, phrase)
            found.setdefault(_without_plural(phrase), phrase)
    return found


def _without_plural(phrase: str) -> str:
    head, space, last = phrase.rpartition(" ")
    return head + space + singular(last)


def _special(question: str) -> dict[str, str]:
    """What stands in quotes, even a single letter; and dates as databases write them."""
    found = {folded(text): folded(text) for groups in _QUOTED.findall(question) for text in groups if folded(text)}
    for year, month, day in _DATE.findall(question):
        written = f"{year} {int(month):02d}" + (f" {int(day):02d}" if day else "")
        found[written] = written
    return found


def _in_dates(question: str, index: ValueIndex) -> list[ValueMatch]:
    """Values that begin with a month or day the question names: times of that day, days of that month."""
    found: list[ValueMatch] = []
    for year, month, day in _DATE.findall(question):
        written = f"{year} {int(month):02d}" + (f" {int(day):02d}" if day else "")
        within = index.beginning(f"{written} ")
        found += [ValueMatch(stored.table, stored.column, stored.text, written, "part", 0.8) for stored in within]
    return found


def _exact(windows: dict[str, str], index: ValueIndex, names: frozenset[str]) -> list[ValueMatch]:
    found = [(stored, windows[stored.folded]) for stored in index.exactly(list(windows))]
    kept: list[ValueMatch] = []
    for stored, phrase in found:
        longer = any(phrase != other and phrase in other for same, other in found if _place(same) == _place(stored))
        if not longer:
            score = 1.0 if stored.folded == phrase else 0.95
            score -= 0.3 if singular(phrase) in names or (phrase.isdigit() and len(phrase) <= 4) else 0.0
            kept.append(ValueMatch(stored.table, stored.column, stored.text, phrase, "exact", score))
    return kept


def _place(stored: Stored) -> tuple[str, str]:
    return stored.table, stored.column


def _covered(text: str, phrases: Iterable[str]) -> set[str]:
    """The words and pairs of characters of the phrases that were found."""
    return {word for phrase in phrases if phrase in text for word in index_words(phrase)}


def _content_words(text: str) -> list[str]:
    words = [word for word in dict.fromkeys(index_words(text)) if word not in STOP_WORDS | STOP_PAIRS]
    return [word for word in words if len(word) > 1]


def _fuzzy(text: str, words: Sequence[str], index: ValueIndex) -> list[ValueMatch]:
    """Values whose words are misspelt in the question: the word is put right, and its neighbours looked up with it."""
    found: list[ValueMatch] = []
    for word in words:
        if len(word) < 4 or is_cjk(word) or index.knows(word) or index.knows(singular(word)):
            continue
        near = _nearest(word, index.near_words(word))
        for right in near:
            mended = re.sub(rf"\b{re.escape(word)}\b", right, text)
            windows = {key: phrase for key, phrase in _windows(mended).items() if right in key.split()}
            for match in _exact(windows, index, frozenset()):
                phrase = re.sub(rf"\b{re.escape(right)}\b", word, match.phrase)
                found.append(ValueMatch(match.table, match.column, match.value, phrase, "fuzzy", match.score - 0.2))
            if not windows or not any(match.phrase.find(word) >= 0 for match in found):
                found += [_as_fuzzy(match, word) for match in _parts(mended, [right], index)]
    return found


def _as_fuzzy(match: ValueMatch, word: str) -> ValueMatch:
    return ValueMatch(match.table, match.column, match.value, word, "fuzzy", match.score - 0.1)


def _nearest(word: str, known: Sequence[str]) -> list[str]:
    """The known words with the fewest wrong letters, at most three; one wrong letter is borne, two in a long word."""
    borne = 1 if len(word) < 8 else 2
    ranked = sorted((edits(word, other, borne), other) for other in known)
    return [other for count, other in ranked if count <= borne and count == ranked[0][0]][:3]


def edits(one: str, other: str, borne: int) -> int:
    """Letters to put in, take out, change or swap to make `one` of `other`; more than `borne` may be told as any more."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    one, other = one[start:], other[start:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return borne + 1 if abs(len(one) - len(other)) > borne or len(one) > 8 else distance(one, other)


def _parts(text: str, words: Sequence[str], index: ValueIndex) -> list[ValueMatch]:
    """Values that hold words of the question, or that share a run of characters with it."""
    ids: dict[int, None] = {}
    in_order = index_words(text)
    pairs = [[a, b] for a, b in pairwise(in_order) if a in words or b in words]
    for wanted in [*pairs, *([word] for word in words)]:
        if not STOP_WORDS.issuperset(wanted):
            ids |= dict.fromkeys(index.with_words(wanted, _LISTED))
    found: list[ValueMatch] = []
    for stored in index.values(list(ids)[:2_000]):
        phrase = _shared(text, stored.folded)
        share = len(phrase.replace(" ", "")) / max(len(stored.folded.replace(" ", "")), 1)
        if share >= _PART and any(word in words for word in index_words(phrase)):
            score = 0.4 + 0.4 * share
            found.append(ValueMatch(stored.table, stored.column, stored.text, phrase, "part", score))
    return found


def _shared(text: str, value: str) -> str:
    """What of a value stands in the question: its words, or its longest run of characters."""
    if is_cjk(value):
        part = common_part(text, value).strip()
        return part if len(part) > 1 and part not in STOP_PAIRS else ""
    asked = {singular(word) for word in text.split()}
    return " ".join(word for word in value.split() if singular(word) in asked and word not in STOP_WORDS)


def _best(matches: Sequence[ValueMatch], most: int) -> tuple[ValueMatch, ...]:
    """The surest matches, each value once, at most three for one phrase in one column."""
    kept: dict[tuple[str, str, str], ValueMatch] = {}
    counts: dict[tuple[str, str, str], int] = {}
    for match in sorted(matches, key=lambda m: (-m.score, len(m.value), m.table, m.column, m.value)):
        group = (match.table, match.column, match.phrase)
        if (match.table, match.column, match.value) in kept or counts.get(group, 0) >= _PER_COLUMN:
            continue
        counts[group] = counts.get(group, 0) + 1
        kept[(match.table, match.column, match.value)] = match
    return tuple(kept.values())[:most]
