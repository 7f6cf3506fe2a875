"""Phrases of a question: the words that mean something together."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from opposable.ask.intent.lexicon import TERM_AND_VALUE_KINDS, TERM_KINDS, Lexicon, Meaning, MeaningKind, Word, tokenize
from opposable.ask.intent.number_parsing import NUMBER_PATTERN, parse_number
from opposable.ask.intent.time_expressions import Span
from opposable.domain.text_normalization import lowercase_halfwidth

_NUMBER = re.compile(NUMBER_PATTERN, re.ASCII)

_UNKNOWN_RANK, _VALUE_RANK, _STOP_RANK, _EXACT_VALUE_RANK, _FUNCTION_WORD_RANK, _TERM_RANK = range(6)
PhraseOptions = dict[tuple[int, int], list[Meaning]]
"""The meanings of possible phrases, by their number of words and their rank among phrases of that length."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase of a question.

    A phrase without meanings and without a number is unknown.
    """

    start: int
    end: int
    text: str
    meanings: tuple[Meaning, ...] = ()
    number: int | float | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether the phrase has no meaning here."""
        return not self.meanings and self.number is None

    def get_ids(self, kind: MeaningKind) -> tuple[str, ...]:
        """Return the ids of this kind that the phrase may mean."""
        return tuple(dict.fromkeys(meaning.id for meaning in self.meanings if meaning.kind == kind))

    def is_a(self, *kinds: MeaningKind) -> bool:
        """Return whether the phrase may be one of these kinds."""
        return any(meaning.kind in kinds for meaning in self.meanings)


def split_phrases(question: str, lexicon: Lexicon, excluded_spans: Sequence[Span]) -> list[Phrase]:
    """Split a question from left to right into the longest phrases; skip `excluded_spans`, such as the time."""
    words = [w for w in tokenize(question) if not any(start <= w.start < end for start, end in excluded_spans)]
    text = lowercase_halfwidth(question)
    phrases: list[Phrase] = []
    first = 0
    while first < len(words):
        size, meanings = _select_phrase(question, words, first, lexicon)
        number_size, number = _parse_number_at(text, words[first:])
        if number_size < size or (meanings and meanings[0].kind in TERM_KINDS):
            number = None
        if number is not None:
            size, meanings = number_size, ()
        start, end = words[first].start, words[first + size - 1].end
        phrases.append(Phrase(start, end, question[start:end], meanings, number))
        first += size
    return _merge_unknown_phrases(phrases, question)


def _select_phrase(question: str, words: list[Word], first: int, lexicon: Lexicon) -> tuple[int, tuple[Meaning, ...]]:
    """Select the longest phrase that begins with a word.

    A shorter one is selected where a term or value begins within the longest phrase and ends after it.
    """
    options = _list_phrase_options(question, words, first, lexicon)
    size, meanings = _select_longest(options)
    for cut in range(1, size):
        overlap_size, overlap_meanings = _select_longest(_list_phrase_options(question, words, first + cut, lexicon))
        shorter = {key: meanings for key, meanings in options.items() if key[0] == cut and meanings}
        is_term = bool(overlap_meanings) and overlap_meanings[0].kind in TERM_AND_VALUE_KINDS
        if shorter and cut + overlap_size > size and is_term:
            return _select_longest(shorter)
    return size, meanings


def _list_phrase_options(question: str, words: list[Word], first: int, lexicon: Lexicon) -> PhraseOptions:
    """List the phrases that begin with a word."""
    options: PhraseOptions = {(1, _UNKNOWN_RANK): []}
    for size in range(1, min(lexicon.max_words, len(words) - first) + 1):
        phrase = words[first : first + size]
        text = question[phrase[0].start : phrase[-1].end]
        for meaning in lexicon.meanings.get(tuple(word.stem for word in phrase), ()):
            options.setdefault((size, _get_rank(meaning, text)), []).append(meaning)
    return options


def _get_rank(meaning: Meaning, text: str) -> int:
    """Return the rank of a meaning.

    Terms of the model rank above function words. Values of the database rank below those, but above stop words if
    the question has the same letters.
    """
    if meaning.is_stored:
        return _EXACT_VALUE_RANK if meaning.value == text and len(text) > 1 else _VALUE_RANK
    if meaning.kind in TERM_AND_VALUE_KINDS:
        return _TERM_RANK
    return _STOP_RANK if meaning.kind == "stop" else _FUNCTION_WORD_RANK


def _select_longest(options: PhraseOptions) -> tuple[int, tuple[Meaning, ...]]:
    """Select the longest phrase of the highest rank.

    A term also gets the values of the same words.
    """
    size, rank = max(options)
    ranks = (rank, _VALUE_RANK, _EXACT_VALUE_RANK) if rank == _TERM_RANK else (rank,)
    return size, tuple(dict.fromkeys(meaning for rank in ranks for meaning in options.get((size, rank), ())))


def _parse_number_at(text: str, words: list[Word]) -> tuple[int, int | float | None]:
    """Parse the number that begins with the first word, as (number of words, number)."""
    match = _NUMBER.match(text, words[0].start)
    if match is None:
        return 0, None
    return sum(1 for word in words if word.start < match.end()), parse_number(match[0])


def _merge_unknown_phrases(phrases: list[Phrase], question: str) -> list[Phrase]:
    """Merge adjacent unknown phrases, so that they are reported as one."""
    merged: list[Phrase] = []
    for phrase in phrases:
        if merged and merged[-1].is_unknown and phrase.is_unknown and phrase.start - merged[-1].end <= 1:
            start = merged.pop().start
            phrase = Phrase(start, phrase.end, question[start : phrase.end])
        merged.append(phrase)
    return merged
