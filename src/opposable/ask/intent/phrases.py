"""Phrases of a question: the words that mean something together."""

import re
from dataclasses import dataclass
from itertools import groupby

from opposable.ask.intent.lexicon import TERM_AND_VALUE_KINDS, TERM_KINDS, Lexicon, Meaning, MeaningKind, Word, tokenize
from opposable.ask.intent.number_parsing import NUMBER_PATTERN, parse_number
from opposable.ask.intent.time_expressions import CONSUMED_CHARACTER
from opposable.domain.text_normalization import lowercase_halfwidth

_NUMBER = re.compile(NUMBER_PATTERN, re.ASCII)

_VALUE_RANK, _STOP_RANK, _EXACT_VALUE_RANK, _FUNCTION_WORD_RANK, _TERM_RANK = range(5)


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


def split_phrases(question: str, lexicon: Lexicon, remaining_text: str) -> list[Phrase]:
    """Split a question from left to right into the longest phrases, within the parts around the time.

    `remaining_text` lacks the time. Adjacent unknown words are one phrase, so that they are reported as one.
    """
    parts = groupby(tokenize(question), lambda word: remaining_text[word.start] == CONSUMED_CHARACTER)
    return [phrase for is_time, words in parts if not is_time for phrase in _split_words(question, lexicon, [*words])]


def _split_words(question: str, lexicon: Lexicon, words: list[Word]) -> list[Phrase]:
    text = lowercase_halfwidth(question)
    phrases: list[Phrase] = []
    first = 0
    while first < len(words):
        size = _select_size(question, words[first:], lexicon)
        meanings = _find_meanings(question, words[first : first + size], lexicon)
        number_size, number = _parse_number_at(text, words[first:])
        if number_size < size or (meanings and meanings[0].kind in TERM_KINDS):
            number = None
        if number is not None:
            size, meanings = number_size, ()
        start, end = words[first].start, words[first + size - 1].end
        is_unknown = not meanings and number is None
        if is_unknown and phrases and phrases[-1].is_unknown and start - phrases[-1].end <= 1:
            start = phrases.pop().start
        phrases.append(Phrase(start, end, question[start:end], meanings, number))
        first += size
    return phrases


def _select_size(question: str, words: list[Word], lexicon: Lexicon) -> int:
    """Return the number of words of the longest phrase that begins with the first word, at least 1.

    A shorter one is selected where a term or value begins within the longest phrase and ends after it.
    """
    sizes = _find_sizes(words, lexicon)
    for cut in sizes[:-1]:
        end = cut + max(_find_sizes(words[cut:], lexicon), default=0)
        overlap = _find_meanings(question, words[cut:end], lexicon) if end > sizes[-1] else ()
        if overlap and overlap[0].kind in TERM_AND_VALUE_KINDS:
            return cut
    return sizes[-1] if sizes else 1


def _find_sizes(words: list[Word], lexicon: Lexicon) -> list[int]:
    """Return the numbers of words of the known phrases that begin with the first word, in ascending order."""
    stems = tuple(word.stem for word in words[: lexicon.max_words])
    return [size for size in range(1, len(stems) + 1) if stems[:size] in lexicon.meanings]


def _find_meanings(question: str, phrase: list[Word], lexicon: Lexicon) -> tuple[Meaning, ...]:
    """Return the meanings of a phrase that rank highest.

    A term also gets the values of the same words. The capital that begins a question is no evidence for a value, and
    words such as "the end", which begin with a function word, are none of a value in other letters.
    """
    text = question[phrase[0].start : phrase[-1].end]
    meanings = lexicon.meanings.get(tuple(word.stem for word in phrase), ())
    if len(phrase) > 1 and any(m.kind not in TERM_AND_VALUE_KINDS for m in lexicon.meanings.get((phrase[0].stem,), ())):
        meanings = [meaning for meaning in meanings if not meaning.is_stored or meaning.value == text]
    if text.istitle() and not question[: phrase[0].start].strip():
        text = ""
    ranks = [_get_rank(meaning, text) for meaning in meanings]
    wanted = (_TERM_RANK, _EXACT_VALUE_RANK, _VALUE_RANK) if _TERM_RANK in ranks else (max(ranks, default=0),)
    return tuple(meaning for rank in wanted for meaning, own in zip(meanings, ranks, strict=True) if own == rank)


def _get_rank(meaning: Meaning, text: str) -> int:
    """Return the rank of a meaning.

    Terms of the model rank above function words. Values of the database rank below those, but above stop words if
    the question has the same letters.
    """
    if meaning.is_stored:
        return _EXACT_VALUE_RANK if meaning.value == text and len(text) > 1 else _VALUE_RANK
    if meaning.kind in TERM_AND_VALUE_KINDS:
        return _TERM_RANK
    return _STOP_RANK if meaning.kind in ("stop", "total") else _FUNCTION_WORD_RANK


def _parse_number_at(text: str, words: list[Word]) -> tuple[int, int | float | None]:
    """Parse the number that begins with the first word, as (number of words, number)."""
    match = _NUMBER.match(text, words[0].start)
    if match is None:
        return 0, None
    return sum(1 for word in words if word.start < match.end()), parse_number(match[0])
