"""A question's words matched to real values: letter by letter, misspelt, in part, as a number or a date."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from opposable.ask.catalog.stop_words import STOP_BIGRAMS, STOP_WORDS
from opposable.ask.catalog.value_index import IndexedValue, ValueIndex
from opposable.domain.text_normalization import (
    compute_edit_distance,
    extract_index_words,
    find_longest_common_substring,
    has_cjk,
    normalize_text,
    singularize,
    tokenize_with_spans,
)

MatchKind = Literal["exact", "fuzzy", "part"]

_MAX_PHRASE_WORDS = 6
_MAX_CJK_PHRASE_TOKENS = 12
_MAX_QUESTION_CHARACTERS = 1_000
"""Characters of a question that are looked at."""
_MAX_CANDIDATES_PER_WORD = 300
"""Values looked at for one word; those of small columns come first."""
_MIN_PARTIAL_SHARE = 0.3
"""The least share of a value that a question must name for it to be worth telling."""
_MAX_MATCHES_PER_COLUMN = 3
_QUOTED_PATTERN = re.compile(
    r"\"([^\"]{1,80})\"|'([^']{1,80})'(?!\w)|“([^”]{1,80})”|「([^」]{1,80})」|《([^》]{1,80})》|‘([^’]{1,80})’"
)
_DATE_PATTERN = re.compile(r"(\d{4})\s*[-/年.]\s*(\d{1,2})(?:\s*[-/月.]\s*(\d{1,2})\s*日?|\s*月)?")


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """A real value that a question names. `score` is 1 for the very words, less for likeness; `phrase` is as asked.

    `value` is untrusted text, as it stands in the database.
    """

    table: str
    column: str
    value: str
    phrase: str
    kind: MatchKind
    score: float


def match_values(
    question: str, index: ValueIndex, schema_words: frozenset[str] = frozenset(), limit: int = 12
) -> tuple[ValueMatch, ...]:
    """The values that `question` names, the surest first; blocks for milliseconds.

    `names` are words of tables' and columns' names: they are no misspelt values, and alone no sure ones.
    """
    text = normalize_text(question[:_MAX_QUESTION_CHARACTERS])
    windows = _extract_phrases(text) | _extract_quoted_and_dates(question)
    exact = [*_match_exact(windows, index, schema_words), *_match_date_prefixes(question, index)]
    covered = _get_covered_words(text, [match.phrase for match in exact])
    words = [
        word for word in _extract_content_words(text) if word not in covered and singularize(word) not in schema_words
    ]
    fuzzy = _match_fuzzy(text, words, index)
    done = covered | {word for match in fuzzy for word in match.phrase.split()}
    parts = _match_partial(text, [word for word in words if word not in done], index)
    return _select_best([*exact, *fuzzy, *parts], limit)


def _extract_phrases(text: str) -> dict[str, str]:
    """Every run of words that may be a value, with what stands in the question; plurals without their ending too."""
    found: dict[str, str] = {}
    words = tokenize_with_spans(text)
    for i in range(len(words)):
        for j in range(i, min(len(words), i + _MAX_CJK_PHRASE_TOKENS)):
            phrase = text[words[i][1] : words[j][2]]
            if j - i >= _MAX_PHRASE_WORDS and not has_cjk(phrase):
                break
            if i == j and (phrase in STOP_WORDS or (len(phrase) < 2 and not phrase.isdigit())):
                continue
            if phrase in STOP_BIGRAMS or all(word in STOP_WORDS for word in phrase.split()):
                continue
            found.setdefault(phrase, phrase)
            found.setdefault(_singularize_phrase(phrase), phrase)
    return found


def _singularize_phrase(phrase: str) -> str:
    head, space, last = phrase.rpartition(" ")
    return head + space + singularize(last)


def _extract_quoted_and_dates(question: str) -> dict[str, str]:
    """What stands in quotes, even a single letter; and dates as databases write them."""
    found = {
        normalize_text(text): normalize_text(text)
        for groups in _QUOTED_PATTERN.findall(question)
        for text in groups
        if normalize_text(text)
    }
    for year, month, day in _DATE_PATTERN.findall(question):
        written = f"{year} {int(month):02d}" + (f" {int(day):02d}" if day else "")
        found[written] = written
    return found


def _match_date_prefixes(question: str, index: ValueIndex) -> list[ValueMatch]:
    """Values that begin with a month or day the question names: times of that day, days of that month."""
    found: list[ValueMatch] = []
    for year, month, day in _DATE_PATTERN.findall(question):
        written = f"{year} {int(month):02d}" + (f" {int(day):02d}" if day else "")
        within = index.find_by_prefix(f"{written} ")
        found += [ValueMatch(stored.table, stored.column, stored.text, written, "part", 0.8) for stored in within]
    return found


def _match_exact(phrases: dict[str, str], index: ValueIndex, schema_words: frozenset[str]) -> list[ValueMatch]:
    found = [(stored, phrases[stored.normalized]) for stored in index.find_exact(list(phrases))]
    kept: list[ValueMatch] = []
    for stored, phrase in found:
        longer = any(
            phrase != other and phrase in other
            for same, other in found
            if _get_column_key(same) == _get_column_key(stored)
        )
        if not longer:
            score = 1.0 if stored.normalized == phrase else 0.95
            score -= 0.3 if singularize(phrase) in schema_words or (phrase.isdigit() and len(phrase) <= 4) else 0.0
            kept.append(ValueMatch(stored.table, stored.column, stored.text, phrase, "exact", score))
    return kept


def _get_column_key(stored: IndexedValue) -> tuple[str, str]:
    return stored.table, stored.column


def _get_covered_words(text: str, phrases: Iterable[str]) -> set[str]:
    """The words and pairs of characters of the phrases that were found."""
    return {word for phrase in phrases if phrase in text for word in extract_index_words(phrase)}


def _extract_content_words(text: str) -> list[str]:
    words = [word for word in dict.fromkeys(extract_index_words(text)) if word not in STOP_WORDS | STOP_BIGRAMS]
    return [word for word in words if len(word) > 1]


def _match_fuzzy(text: str, words: Sequence[str], index: ValueIndex) -> list[ValueMatch]:
    """Values whose words are misspelt in the question: the word is put right, and its neighbours looked up with it."""
    found: list[ValueMatch] = []
    for word in words:
        if len(word) < 4 or has_cjk(word) or index.has_word(word) or index.has_word(singularize(word)):
            continue
        near = _find_nearest_words(word, index.find_similar_words(word))
        for right in near:
            mended = re.sub(rf"\b{re.escape(word)}\b", right, text)
            windows = {key: phrase for key, phrase in _extract_phrases(mended).items() if right in key.split()}
            for match in _match_exact(windows, index, frozenset()):
                phrase = re.sub(rf"\b{re.escape(right)}\b", word, match.phrase)
                found.append(ValueMatch(match.table, match.column, match.value, phrase, "fuzzy", match.score - 0.2))
            if not windows or not any(match.phrase.find(word) >= 0 for match in found):
                found += [_to_fuzzy_match(match, word) for match in _match_partial(mended, [right], index)]
    return found


def _to_fuzzy_match(match: ValueMatch, word: str) -> ValueMatch:
    return ValueMatch(match.table, match.column, match.value, word, "fuzzy", match.score - 0.1)


def _find_nearest_words(word: str, candidates: Sequence[str]) -> list[str]:
    """The known words with the fewest wrong letters, at most three; one wrong letter is borne, two in a long word."""
    borne = 1 if len(word) < 8 else 2
    ranked = sorted((compute_edit_distance(word, other, borne), other) for other in candidates)
    return [other for count, other in ranked if count <= borne and count == ranked[0][0]][:3]


def _match_partial(text: str, words: Sequence[str], index: ValueIndex) -> list[ValueMatch]:
    """Values that hold words of the question, or that share a run of characters with it."""
    ids: dict[int, None] = {}
    in_order = extract_index_words(text)
    pairs = [[a, b] for a, b in pairwise(in_order) if a in words or b in words]
    for wanted in [*pairs, *([word] for word in words)]:
        if not STOP_WORDS.issuperset(wanted):
            ids |= dict.fromkeys(index.find_ids_with_words(wanted, _MAX_CANDIDATES_PER_WORD))
    found: list[ValueMatch] = []
    for stored in index.get_values(list(ids)[:2_000]):
        phrase = _get_shared_text(text, stored.normalized)
        share = len(phrase.replace(" ", "")) / max(len(stored.normalized.replace(" ", "")), 1)
        if share >= _MIN_PARTIAL_SHARE and any(word in words for word in extract_index_words(phrase)):
            score = 0.4 + 0.4 * share
            found.append(ValueMatch(stored.table, stored.column, stored.text, phrase, "part", score))
    return found


def _get_shared_text(text: str, value: str) -> str:
    """What of a value stands in the question: its words, or its longest run of characters."""
    if has_cjk(value):
        part = find_longest_common_substring(text, value).strip()
        return part if len(part) > 1 and part not in STOP_BIGRAMS else ""
    asked = {singularize(word) for word in text.split()}
    return " ".join(word for word in value.split() if singularize(word) in asked and word not in STOP_WORDS)


def _select_best(matches: Sequence[ValueMatch], limit: int) -> tuple[ValueMatch, ...]:
    """The surest matches, each value once, at most three for one phrase in one column."""
    kept: dict[tuple[str, str, str], ValueMatch] = {}
    counts: dict[tuple[str, str, str], int] = {}
    for match in sorted(matches, key=lambda m: (-m.score, len(m.value), m.table, m.column, m.value)):
        group = (match.table, match.column, match.phrase)
        if (match.table, match.column, match.value) in kept or counts.get(group, 0) >= _MAX_MATCHES_PER_COLUMN:
            continue
        counts[group] = counts.get(group, 0) + 1
        kept[(match.table, match.column, match.value)] = match
    return tuple(kept.values())[:limit]
