"""A question cut into the phrases that mean something."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from opposable.ask.intent.lexicon import Lexicon, Meaning, MeaningKind
from opposable.ask.intent.number_parsing import ENGLISH_NUMBERS, NUMBER_PATTERN, parse_number
from opposable.ask.intent.time_expressions import Span, lowercase_halfwidth
from opposable.ask.intent.tokenizer import Word, tokenize
from opposable.ask.intent.value_lookup import ValueMention, find_dimensions
from opposable.ask.semantics.model import SemanticModel

_MIN_MENTION_SCORE = 0.9
_TERM_KINDS = frozenset({"metric", "dimension", "filter", "exclusion"})
_TERM_AND_VALUE_KINDS = frozenset({"metric", "dimension", "filter", "exclusion", "value"})


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase: its characters, what it may mean, and for a number its value; with neither, it is not understood."""

    start: int
    end: int
    text: str
    meanings: tuple[Meaning, ...] = ()
    number: int | float | None = None

    def get_ids(self, kind: MeaningKind) -> tuple[str, ...]:
        """The ids of this kind that it may mean."""
        return tuple(dict.fromkeys(m.id for m in self.meanings if m.kind == kind))

    def is_a(self, *kinds: MeaningKind) -> bool:
        """Whether it may be one of these kinds."""
        return any(meaning.kind in kinds for meaning in self.meanings)


def split_phrases(
    question: str,
    lexicon: Lexicon,
    model: SemanticModel,
    mentions: Sequence[ValueMention],
    excluded_spans: Sequence[Span],
) -> list[Phrase]:
    """`question` from left to right by the longest phrases; the characters in `taken` (its time) are passed over."""
    words = [w for w in tokenize(question) if not any(start <= w.start < end for start, end in excluded_spans)]
    values = _group_mentions_by_start(mentions, model)
    items: list[Phrase] = []
    at = 0
    while at < len(words):
        size, meanings = _select_phrase(words, at, lexicon, values)
        digits, amount = _parse_number_at(question, words, at)
        if amount is not None and digits >= size and not (meanings and meanings[0].kind in _TERM_KINDS):
            size, meanings = digits, ()
        else:
            amount = None
        start, end = words[at].start, words[at + size - 1].end
        items.append(Phrase(start, end, question[start:end], meanings, amount))
        at += size
    return _merge_unknown_phrases(items, question)


def _group_mentions_by_start(
    mentions: Sequence[ValueMention], model: SemanticModel
) -> dict[int, list[tuple[int, Meaning]]]:
    values: dict[int, list[tuple[int, Meaning]]] = {}
    for match in mentions:
        if match.score >= _MIN_MENTION_SCORE:
            for ref in find_dimensions(match, model):
                values.setdefault(match.start, []).append((match.end, Meaning("value", ref, str(match.value))))
    return values


ValuesByStart = dict[int, list[tuple[int, Meaning]]]
PhraseOption = tuple[int, int, tuple[Meaning, ...]]
"""How many words a phrase has, its rank among phrases of that length, and what it may mean."""


def _select_phrase(
    words: list[Word], at: int, lexicon: Lexicon, values: ValuesByStart
) -> tuple[int, tuple[Meaning, ...]]:
    """The longest phrase at a word, or a shorter one where a phrase of the model begins within it and ends after it."""
    options = _list_phrase_options(words, at, lexicon, values)
    size, meanings = _select_longest(options)
    for cut in range(1, size):
        inner, found = _select_longest(_list_phrase_options(words, at + cut, lexicon, values))
        shorter = [option for option in options if option[0] == cut and option[2]]
        if shorter and cut + inner > size and found and found[0].kind in _TERM_AND_VALUE_KINDS:
            return _select_longest(shorter)
    return size, meanings


def _list_phrase_options(words: list[Word], at: int, lexicon: Lexicon, values: ValuesByStart) -> list[PhraseOption]:
    """The phrases at a word; of equal length the model's own rank first, then values, then small words."""
    options: list[PhraseOption] = [(1, -1, ())]
    for size, known in lexicon.match_at(words, at):
        options.append((size, 2 if known[0].kind in _TERM_AND_VALUE_KINDS else 1, tuple(known)))
    for end, meaning in values.get(words[at].start, ()):
        size = sum(1 for word in words[at:] if word.end <= end)
        same = [m for s, rank, ms in options if s == size and rank == 0 for m in ms]
        if size and words[at + size - 1].end == end:
            options.append((size, 0, (*same, meaning)))
    return options


def _select_longest(options: list[PhraseOption]) -> tuple[int, tuple[Meaning, ...]]:
    size, rank, meanings = max(options, key=lambda option: (option[0], option[1], len(option[2])))
    also = [m for other, its, ms in options if other == size and its == 0 and rank == 2 for m in ms]
    return size, tuple(dict.fromkeys([*meanings, *also]))


def _parse_number_at(question: str, words: list[Word], at: int) -> tuple[int, int | float | None]:
    """How many words a number at `at` has, and the number."""
    low = lowercase_halfwidth(question)
    first = words[at]
    if not (first.stem[0].isdigit() or first.is_chinese or first.stem in ENGLISH_NUMBERS):
        return 0, None
    found = re.compile(NUMBER_PATTERN, re.ASCII).match(low, first.start)
    if found is None:
        return 0, None
    return sum(1 for word in words[at:] if word.start < found.end()), parse_number(found[0])


def _merge_unknown_phrases(phrases: list[Phrase], question: str) -> list[Phrase]:
    """The same with neighbouring words that are not understood made one, so that they are told together."""
    done: list[Phrase] = []
    for item in phrases:
        last = done[-1] if done else None
        unknown = not item.meanings and item.number is None
        if last is not None and unknown and not last.meanings and last.number is None and item.start - last.end <= 1:
            done[-1] = Phrase(last.start, item.end, question[last.start : item.end])
        else:
            done.append(item)
    return done
