"""Phrases of a question: the words that mean something together."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from opposable.ask.intent.lexicon import Lexicon, Meaning, MeaningKind, Word, tokenize
from opposable.ask.intent.number_parsing import NUMBER_PATTERN, parse_number
from opposable.ask.intent.time_expressions import CONSUMED_CHARACTER
from opposable.domain.text_normalization import lowercase_halfwidth

_NUMBER = re.compile(NUMBER_PATTERN, re.ASCII)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase of a question.

    A phrase without meanings and without a number is unknown. `is_contested` says that a word of grammar or a term is
    also a value of the database, or that a term or value is also a time.
    """

    start: int
    end: int
    text: str
    meanings: tuple[Meaning, ...] = ()
    number: int | float | None = None
    is_contested: bool = False

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

    `remaining_text` lacks the time. A term or value with words of the time, such as a plan "Monthly", is a phrase too.
    Adjacent unknown words are one phrase, so that they are reported as one.
    """
    words = tokenize(question)
    is_time = [remaining_text[word.start] == CONSUMED_CHARACTER for word in words]
    phrases: list[Phrase] = []
    for first, word in enumerate(words):
        for size in _find_sizes(words[first:], lexicon):
            meanings, is_contested = _find_meanings(question, words[first : first + size], lexicon)
            if any(is_time[first : first + size]) and (is_contested or any(meaning.id for meaning in meanings)):
                end = words[first + size - 1].end
                phrases.append(Phrase(word.start, end, question[word.start : end], meanings, is_contested=True))
    for is_consumed, group in groupby(zip(is_time, words, strict=True), lambda pair: pair[0]):
        phrases += [] if is_consumed else _split_words(question, lexicon, [word for _, word in group])
    return sorted(phrases, key=lambda phrase: phrase.start)


def _split_words(question: str, lexicon: Lexicon, words: list[Word]) -> list[Phrase]:
    text = lowercase_halfwidth(question)
    phrases: list[Phrase] = []
    first = 0
    while first < len(words):
        size = _select_size(question, words[first:], lexicon)
        following = words[first + size :][: _select_size(question, words[first + size :], lexicon)]
        after = _find_meanings(question, following, lexicon)[0] if following else ()
        neighbors = [meaning for meaning in after if meaning.kind == "dimension"]
        neighbors += phrases[-1].meanings if phrases else ()
        meanings, is_contested = _find_meanings(question, words[first : first + size], lexicon, neighbors)
        match = _NUMBER.match(text, words[first].start)
        number_size = sum(1 for word in words[first:] if match and word.start < match.end())
        is_number = number_size >= size and not any(meaning.id and meaning.kind != "value" for meaning in meanings)
        number = parse_number(match[0]) if match and is_number else None
        if number is not None:
            size, meanings, is_contested = number_size, (), False
        start, end = words[first].start, words[first + size - 1].end
        is_unknown = not meanings and number is None
        if is_unknown and phrases and phrases[-1].is_unknown and start - phrases[-1].end <= 1:
            start = phrases.pop().start
        phrases.append(Phrase(start, end, question[start:end], meanings, number, is_contested))
        first += size
    return phrases


def _select_size(question: str, words: list[Word], lexicon: Lexicon) -> int:
    """Return the number of words of the longest phrase that begins with the first word, at least 1.

    A shorter one is selected where a term or value begins within the longest phrase and ends after it.
    """
    sizes = _find_sizes(words, lexicon)
    for cut in sizes[:-1]:
        end = cut + max(_find_sizes(words[cut:], lexicon), default=0)
        overlap = _find_meanings(question, words[cut:end], lexicon)[0] if end > sizes[-1] else ()
        if overlap and overlap[0].id:
            return cut
    return sizes[-1] if sizes else 1


def _find_sizes(words: list[Word], lexicon: Lexicon) -> list[int]:
    """Return the numbers of words of the known phrases that begin with the first word, in ascending order."""
    stems = tuple(word.stem for word in words[: lexicon.max_words])
    return [size for size in range(1, len(stems) + 1) if stems[:size] in lexicon.meanings]


def _find_meanings(
    question: str, phrase: list[Word], lexicon: Lexicon, neighbors: Sequence[Meaning] = ()
) -> tuple[tuple[Meaning, ...], bool]:
    """Return the meanings of a phrase, and whether it is contested.

    A word of grammar or a term contests a phrase with a value of the database in the same letters. In other letters, it
    does so after a preposition and next to the dimension of the value. The capital that begins a question is no evidence
    for a value, and "A" within it is no article. Words such as "the end", which begin with a word of grammar, are no
    value in other letters. A value with signs, such as "Yahoo!", is the only meaning; any other one contests it.
    """
    text = re.sub("['’][sS]$", "", question[phrase[0].start : phrase[-1].end])
    meanings = lexicon.meanings.get(tuple(word.stem for word in phrase), ())
    names = [meaning for meaning in meanings if not meaning.text]
    lengths = {meaning: _measure_text(question, phrase, meaning.text) for meaning in meanings if meaning.text}
    length = max(lengths.values(), default=0)
    stored = [meaning for meaning in lengths if length and lengths[meaning] == length]
    if length > len(text):
        possible = (*names, *(meaning for meaning in lengths if lengths[meaning]))
        return tuple(stored), len({(meaning.id, meaning.value) for meaning in possible}) > 1
    begins_question = text.istitle() and not question[: phrase[0].start].strip()
    same = [] if begins_question else [meaning for meaning in stored if meaning.text.strip() == text]
    if names and names[0].id:
        return (*names, *stored), bool(same) and any(name.kind in ("metric", "dimension") for name in names)
    if names:
        is_expected = any(other.kind in ("in", "of") or other.id in {m.id for m in stored} for other in neighbors)
        is_letter = text == "A" and not begins_question
        return tuple(names), is_letter or bool(stored if is_expected else same)
    has_function_word = any(not m.id for m in lexicon.meanings.get((phrase[0].stem,), ()))
    return tuple(same if len(phrase) > 1 and has_function_word else stored), False


def _measure_text(question: str, phrase: list[Word], text: str) -> int:
    """Return the length of a text if the question has it at a phrase, in any case and with its outer signs, else 0."""
    question, text = (lowercase_halfwidth(part).replace("’", "'") for part in (question, text.strip()))
    start = phrase[0].start - tokenize(text)[0].start
    rest = question[start + len(text) : phrase[-1].end]
    return len(text) if start >= 0 and question.startswith(text, start) and rest in ("", "'s") else 0
