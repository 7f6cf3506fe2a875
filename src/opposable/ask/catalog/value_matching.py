"""Matches the words of a question to values of a database."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
_MAX_CANDIDATES_PER_WORD = 300
_MAX_CANDIDATES = 2_000
_MIN_PARTIAL_SHARE = 0.3
"""The smallest share of a value that a question must contain for a partial match."""
_MAX_MATCHES_PER_COLUMN = 3
_QUOTED_PATTERN = re.compile(
    r"\"([^\"]{1,80})\"|'([^']{1,80})'(?!\w)|“([^”]{1,80})”|「([^」]{1,80})」|《([^》]{1,80})》|‘([^’]{1,80})’"
)
_DATE_PATTERN = re.compile(r"(\d{4})\s*[-/年.]\s*(\d{1,2})(?:\s*[-/月.]\s*(\d{1,2})\s*日?|\s*月)?")


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """A database value that a question names.

    Attributes:
        table: The full name of the table.
        column: The name of the column.
        value: The value in the database; untrusted text.
        phrase: The words of the question.
        kind: How the words match the value.
        score: 1 for the same words, less for similar words.
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
    """Match a question to the indexed values; blocks for milliseconds.

    Args:
        question: The question; only its first 1,000 characters are read.
        index: The values.
        schema_words: Words of table and column names: never a misspelled value, and on their own a weak match.
        limit: The most matches to return.

    Returns:
        The matches, best first.
    """
    text = normalize_text(question[:_MAX_QUESTION_CHARACTERS])
    phrases = _extract_phrases(text) | _extract_quoted_and_dates(question)
    exact = [*_match_exact(phrases, index, schema_words), *_match_date_prefixes(question, index)]
    matched_words = _get_covered_words(text, [match.phrase for match in exact])
    content_words = _extract_content_words(text)
    words = [word for word in content_words if word not in matched_words and singularize(word) not in schema_words]
    fuzzy = _match_fuzzy(text, words, index)
    matched_words |= {word for match in fuzzy for word in match.phrase.split()}
    partial = _match_partial(text, [word for word in words if word not in matched_words], index)
    return _select_best([*exact, *fuzzy, *partial], limit)


def _extract_phrases(text: str) -> dict[str, str]:
    """Return the runs of words that may be a value, by their compared form.

    The compared form of a phrase is the phrase itself or its singular.
    """
    phrases: dict[str, str] = {}
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
            phrases.setdefault(phrase, phrase)
            phrases.setdefault(_singularize_phrase(phrase), phrase)
    return phrases


def _singularize_phrase(phrase: str) -> str:
    head, space, last = phrase.rpartition(" ")
    return head + space + singularize(last)


def _extract_quoted_and_dates(question: str) -> dict[str, str]:
    """Return the quoted texts, of any length, and the dates as databases write them."""
    quoted = [normalize_text(text) for groups in _QUOTED_PATTERN.findall(question) for text in groups]
    return {text: text for text in [*quoted, *_extract_dates(question)] if text}


def _extract_dates(question: str) -> list[str]:
    """Return the months and days of a question as "2024 03" and "2024 03 15"."""
    dates = _DATE_PATTERN.findall(question)
    return [f"{year} {int(month):02d}" + (f" {int(day):02d}" if day else "") for year, month, day in dates]


def _match_date_prefixes(question: str, index: ValueIndex) -> list[ValueMatch]:
    """Match the times of a day and the days of a month that the question names."""
    return [
        ValueMatch(stored.table, stored.column, stored.text, date, "part", 0.8)
        for date in _extract_dates(question)
        for stored in index.find_by_prefix(f"{date} ")
    ]


def _match_exact(phrases: dict[str, str], index: ValueIndex, schema_words: frozenset[str]) -> list[ValueMatch]:
    """Match whole values; of overlapping phrases only the longest matches."""
    candidates = [(stored, phrases[stored.normalized]) for stored in index.find_exact(list(phrases))]
    matches: list[ValueMatch] = []
    for stored, phrase in candidates:
        is_in_longer_phrase = any(
            phrase != other_phrase and phrase in other_phrase
            for other, other_phrase in candidates
            if _get_column_key(other) == _get_column_key(stored)
        )
        if is_in_longer_phrase:
            continue
        is_weak = singularize(phrase) in schema_words or (phrase.isdigit() and len(phrase) <= 4)
        score = 1.0 if stored.normalized == phrase else 0.95
        score -= 0.3 if is_weak else 0.0
        matches.append(ValueMatch(stored.table, stored.column, stored.text, phrase, "exact", score))
    return matches


def _get_column_key(stored: IndexedValue) -> tuple[str, str]:
    return stored.table, stored.column


def _get_covered_words(text: str, phrases: Iterable[str]) -> set[str]:
    """Return the words and bigrams of the phrases that the text contains."""
    return {word for phrase in phrases if phrase in text for word in extract_index_words(phrase)}


def _extract_content_words(text: str) -> list[str]:
    words = [word for word in dict.fromkeys(extract_index_words(text)) if word not in STOP_WORDS | STOP_BIGRAMS]
    return [word for word in words if len(word) > 1]


def _match_fuzzy(text: str, words: Sequence[str], index: ValueIndex) -> list[ValueMatch]:
    """Match values with the misspelled words corrected."""
    matches: list[ValueMatch] = []
    for word in words:
        if len(word) < 4 or has_cjk(word) or index.has_word(word) or index.has_word(singularize(word)):
            continue
        for correction in _find_nearest_words(word, index.find_similar_words(word)):
            corrected_text = re.sub(rf"\b{re.escape(word)}\b", correction, text)
            phrases = {key: p for key, p in _extract_phrases(corrected_text).items() if correction in key.split()}
            for match in _match_exact(phrases, index, frozenset()):
                phrase = re.sub(rf"\b{re.escape(correction)}\b", word, match.phrase)
                matches.append(replace(match, phrase=phrase, kind="fuzzy", score=match.score - 0.2))
            if not phrases or not any(word in match.phrase for match in matches):
                partial = _match_partial(corrected_text, [correction], index)
                matches += [replace(match, phrase=word, kind="fuzzy", score=match.score - 0.1) for match in partial]
    return matches


def _find_nearest_words(word: str, candidates: Sequence[str]) -> list[str]:
    """Return up to three candidates with the fewest edits.

    A long word may have two edits, others one.
    """
    max_edits = 1 if len(word) < 8 else 2
    ranked = sorted((compute_edit_distance(word, other, max_edits), other) for other in candidates)
    return [other for edits, other in ranked if edits <= max_edits and edits == ranked[0][0]][:3]


def _match_partial(text: str, words: Sequence[str], index: ValueIndex) -> list[ValueMatch]:
    """Match values that share words, or a run of characters, with the question."""
    ids: dict[int, None] = {}
    adjacent_words = [list(pair) for pair in pairwise(extract_index_words(text)) if not set(pair).isdisjoint(words)]
    for searched_words in [*adjacent_words, *([word] for word in words)]:
        if not STOP_WORDS.issuperset(searched_words):
            ids |= dict.fromkeys(index.find_ids_with_words(searched_words, _MAX_CANDIDATES_PER_WORD))
    matches: list[ValueMatch] = []
    for stored in index.get_values(list(ids)[:_MAX_CANDIDATES]):
        phrase = _get_shared_text(text, stored.normalized)
        share = len(phrase.replace(" ", "")) / max(len(stored.normalized.replace(" ", "")), 1)
        if share >= _MIN_PARTIAL_SHARE and any(word in words for word in extract_index_words(phrase)):
            score = 0.4 + 0.4 * share
            matches.append(ValueMatch(stored.table, stored.column, stored.text, phrase, "part", score))
    return matches


def _get_shared_text(text: str, value: str) -> str:
    """Return the part of a value that the question contains.

    It is the shared words, or the longest run of characters of a CJK value.
    """
    if has_cjk(value):
        part = find_longest_common_substring(text, value).strip()
        return part if len(part) > 1 and part not in STOP_BIGRAMS else ""
    question_words = {singularize(word) for word in text.split()}
    return " ".join(w for w in value.split() if singularize(w) in question_words and w not in STOP_WORDS)


def _select_best(matches: Sequence[ValueMatch], limit: int) -> tuple[ValueMatch, ...]:
    """Select the best matches: each value once, at most three per phrase."""
    selected: dict[tuple[str, str, str], ValueMatch] = {}
    counts: Counter[tuple[str, str, str]] = Counter()
    for match in sorted(matches, key=lambda m: (-m.score, len(m.value), m.table, m.column, m.value)):
        value_key = (match.table, match.column, match.value)
        phrase_key = (match.table, match.column, match.phrase)
        if value_key not in selected and counts[phrase_key] < _MAX_MATCHES_PER_COLUMN:
            counts[phrase_key] += 1
            selected[value_key] = match
    return tuple(selected.values())[:limit]
