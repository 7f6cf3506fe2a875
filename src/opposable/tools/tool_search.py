"""Full-text search over tools: BM25 on an inverted index."""

import functools
import heapq
import math
import re
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from opposable.domain.text_normalization import CHINESE_CHARACTERS, split_bigrams, split_camel_case

K = TypeVar("K", bound=Hashable)

_BM25_K1 = 1.2
_BM25_B = 0.5
_WORD_PATTERN = re.compile(r"[a-z]+|[0-9]+|[^\W\d_a-z]+")
_CHINESE_PATTERN = re.compile(rf"[{CHINESE_CHARACTERS}]+")
_STOP_WORDS = frozenset(
    """
    a an and any are as at be by can could do does for from get give had has have how i if in into is it its let
    me my need of on or our out please so some that the their them then there these they this to up us use used
    using want was we what when where which who will with would you your
    """.split()  # noqa: SIM905 - a list of words is easier to read
)


def extract_terms(text: str) -> list[str]:
    """Return the search terms of a text: lowercase stems, and pairs of Chinese characters."""
    terms: list[str] = []
    for word in _WORD_PATTERN.findall(split_camel_case(text).lower()):
        if word.isascii():
            if word not in _STOP_WORDS:
                terms.append(_stem_word(word))
        elif _CHINESE_PATTERN.fullmatch(word):
            terms += split_bigrams(word)
        else:
            terms.append(word)
    return terms


@functools.lru_cache(maxsize=10_000)
def _stem_word(word: str) -> str:
    """Remove common English endings, so that "searching files" matches "file search"."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    for ending in ("ion", "or"):
        if word.endswith(f"t{ending}") and len(word) - len(ending) >= 5:
            word = word[: -len(ending)]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


class SearchIndex(Generic[K]):
    """An inverted index of weighted texts by key."""

    def __init__(self) -> None:
        self._postings: dict[str, dict[K, float]] = {}
        self._terms: dict[K, tuple[str, ...]] = {}
        self._lengths: dict[K, float] = {}
        self._total_length = 0.0

    def add(self, key: K, texts: Iterable[tuple[str, float]]) -> None:
        """Add the texts of a key, each with its weight."""
        weights: dict[str, float] = {}
        for text, weight in texts:
            for term in extract_terms(text):
                weights[term] = weights.get(term, 0.0) + weight
        for term, weight in weights.items():
            self._postings.setdefault(term, {})[key] = weight
        self._terms[key] = tuple(weights)
        self._lengths[key] = length = sum(weights.values())
        self._total_length += length

    def remove(self, key: K) -> None:
        """Remove a key with its texts."""
        for term in self._terms.pop(key, ()):
            postings = self._postings[term]
            del postings[key]
            if not postings:
                del self._postings[term]
        self._total_length -= self._lengths.pop(key, 0.0)

    def get_known_share(self, query: str) -> float:
        """Return the share of the query's terms that some text has; 1 for a query without terms."""
        terms = set(extract_terms(query))
        return sum(term in self._postings for term in terms) / len(terms) if terms else 1.0

    def search(self, query: str, limit: int, sort_key: Callable[[K], tuple[float, ...]]) -> list[tuple[K, float]]:
        """Return the best keys with their scores, best first; among equal scores the smallest `sort_key` first."""
        scores: dict[K, float] = {}
        count = len(self._lengths)
        mean_length = self._total_length / count if count else 1.0
        lengths = self._lengths
        base, slope = _BM25_K1 * (1 - _BM25_B), _BM25_K1 * _BM25_B / mean_length
        for term in set(extract_terms(query)):
            postings = self._postings.get(term)
            if not postings:
                continue
            rarity = math.log(1 + (count - len(postings) + 0.5) / (len(postings) + 0.5)) * (_BM25_K1 + 1)
            for key, weight in postings.items():
                scores[key] = scores.get(key, 0.0) + rarity * weight / (weight + base + slope * lengths[key])
        if len(scores) > 4 * limit + 100:  # a common word matches many keys: compute the sort key of the best ones only
            lowest_score = heapq.nlargest(4 * limit, scores.values())[-1]
            scores = {key: score for key, score in scores.items() if score >= lowest_score}
        return heapq.nsmallest(limit, scores.items(), key=lambda item: (-round(item[1], 6), *sort_key(item[0])))
