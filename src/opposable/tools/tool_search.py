"""Full-text search: which of many texts fit a need best (BM25 over an inverted index)."""

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
    [
        "a",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "could",
        "do",
        "does",
        "for",
        "from",
        "get",
        "give",
        "had",
        "has",
        "have",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "let",
        "me",
        "my",
        "need",
        "of",
        "on",
        "or",
        "our",
        "out",
        "please",
        "so",
        "some",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "to",
        "up",
        "us",
        "use",
        "used",
        "using",
        "want",
        "was",
        "we",
        "what",
        "when",
        "where",
        "which",
        "who",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)


def extract_terms(text: str) -> list[str]:
    """The words of a text as they are searched for: lower case, without endings, Chinese in pairs of characters."""
    found: list[str] = []
    for word in _WORD_PATTERN.findall(split_camel_case(text).lower()):
        if word.isascii():
            if word not in _STOP_WORDS:
                found.append(_stem_word(word))
        elif _CHINESE_PATTERN.fullmatch(word):
            found += split_bigrams(word)
        else:
            found.append(word)
    return found


def _stem_word(word: str) -> str:
    """A word without its commonest endings, so that "searching files" finds "file search"."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


class SearchIndex(Generic[K]):
    """Texts by key, each found by its words."""

    def __init__(self) -> None:
        self._postings: dict[str, dict[K, float]] = {}
        self._terms: dict[K, tuple[str, ...]] = {}
        self._lengths: dict[K, float] = {}
        self._total_length = 0.0

    def add(self, key: K, texts: Iterable[tuple[str, float]]) -> None:
        """Add what is known of `key`: texts, each with its weight."""
        weights: dict[str, float] = {}
        for text, weight in texts:
            for word in extract_terms(text):
                weights[word] = weights.get(word, 0.0) + weight
        for word, weight in weights.items():
            self._postings.setdefault(word, {})[key] = weight
        self._terms[key] = tuple(weights)
        self._lengths[key] = length = sum(weights.values())
        self._total_length += length

    def remove(self, key: K) -> None:
        """Take a key out."""
        for word in self._terms.pop(key, ()):
            places = self._postings[word]
            del places[key]
            if not places:
                del self._postings[word]
        self._total_length -= self._lengths.pop(key, 0.0)

    def search(self, query: str, limit: int, sort_key: Callable[[K], tuple[float, ...]]) -> list[tuple[K, float]]:
        """The keys that fit best with their scores, best first; `rank` decides among equals, the smallest first."""
        scores: dict[K, float] = {}
        count = len(self._lengths)
        mean = self._total_length / count if count else 1.0
        lengths = self._lengths
        for word in set(extract_terms(query)):
            places = self._postings.get(word)
            if not places:
                continue
            rarity = math.log(1 + (count - len(places) + 0.5) / (len(places) + 0.5)) * (_BM25_K1 + 1)
            base, slope = _BM25_K1 * (1 - _BM25_B), _BM25_K1 * _BM25_B / mean
            for key, weight in places.items():
                scores[key] = scores.get(key, 0.0) + rarity * weight / (weight + base + slope * lengths[key])
        if len(scores) > 4 * limit + 100:  # the bulk of a common word is dropped before anything is asked of it
            floor = heapq.nlargest(4 * limit, scores.values())[-1]
            scores = {key: score for key, score in scores.items() if score >= floor}
        return heapq.nsmallest(limit, scores.items(), key=lambda found: (-round(found[1], 6), *sort_key(found[0])))
