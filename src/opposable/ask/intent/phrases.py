"""A question cut into the phrases that mean something."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from opposable.ask.intent.lexicon import Kind, Lexicon, Meaning
from opposable.ask.intent.number_parsing import ENGLISH, NUMBER, number
from opposable.ask.intent.time_expressions import Span, lowered
from opposable.ask.intent.tokenizer import Word, words_of
from opposable.ask.intent.value_lookup import ValueMatch, dimensions_of
from opposable.ask.semantics.model import SemanticModel

_SURE = 0.9
_NAMES = frozenset({"metric", "dimension", "filter", "exclusion"})
_TERMS = frozenset({"metric", "dimension", "filter", "exclusion", "value"})


@dataclass(frozen=True, slots=True)
class Item:
    """A phrase: its characters, what it may mean, and for a number its value; with neither, it is not understood."""

    start: int
    end: int
    text: str
    meanings: tuple[Meaning, ...] = ()
    number: int | float | None = None

    def ids(self, kind: Kind) -> tuple[str, ...]:
        """The ids of this kind that it may mean."""
        return tuple(dict.fromkeys(m.id for m in self.meanings if m.kind == kind))

    def is_a(self, *kinds: Kind) -> bool:
        """Whether it may be one of these kinds."""
        return any(meaning.kind in kinds for meaning in self.meanings)


def items_of(
    question: str, lexicon: Lexicon, model: SemanticModel, found: Sequence[ValueMatch], taken: Sequence[Span]
) -> list[Item]:
    """`question` from left to right by the longest phrases; the characters in `taken` (its time) are passed over."""
    words = [w for w in words_of(question) if not any(start <= w.start < end for start, end in taken)]
    values = _by_start(found, model)
    items: list[Item] = []
    at = 0
    while at < len(words):
        size, meanings = _best(words, at, lexicon, values)
        digits, amount = _number(question, words, at)
        if amount is not None and digits >= size and not (meanings and meanings[0].kind in _NAMES):
            size, meanings = digits, ()
        else:
            amount = None
        start, end = words[at].start, words[at + size - 1].end
        items.append(Item(start, end, question[start:end], meanings, amount))
        at += size
    return _joined(items, question)


def _by_start(found: Sequence[ValueMatch], model: SemanticModel) -> dict[int, list[tuple[int, Meaning]]]:
    values: dict[int, list[tuple[int, Meaning]]] = {}
    for match in found:
        if match.score >= _SURE:
            for ref in dimensions_of(match, model):
                values.setdefault(match.start, []).append((match.end, Meaning("value", ref, str(match.value))))
    return values


Values = dict[int, list[tuple[int, Meaning]]]
Option = tuple[int, int, tuple[Meaning, ...]]
"""How many words a phrase has, its rank among phrases of that length, and what it may mean."""


def _best(words: list[Word], at: int, lexicon: Lexicon, values: Values) -> tuple[int, tuple[Meaning, ...]]:
    """The longest phrase at a word, or a shorter one where a phrase of the model begins within it and ends after it."""
    options = _options(words, at, lexicon, values)
    size, meanings = _longest(options)
    for cut in range(1, size):
        inner, found = _longest(_options(words, at + cut, lexicon, values))
        shorter = [option for option in options if option[0] == cut and option[2]]
        if shorter and cut + inner > size and found and found[0].kind in _TERMS:
            return _longest(shorter)
    return size, meanings


def _options(words: list[Word], at: int, lexicon: Lexicon, values: Values) -> list[Option]:
    """The phrases at a word; of equal length the model's own rank first, then values, then small words."""
    options: list[Option] = [(1, -1, ())]
    for size, known in lexicon.at(words, at):
        options.append((size, 2 if known[0].kind in _TERMS else 1, tuple(known)))
    for end, meaning in values.get(words[at].start, ()):
        size = sum(1 for word in words[at:] if word.end <= end)
        same = [m for s, rank, ms in options if s == size and rank == 0 for m in ms]
        if size and words[at + size - 1].end == end:
            options.append((size, 0, (*same, meaning)))
    return options


def _longest(options: list[Option]) -> tuple[int, tuple[Meaning, ...]]:
    size, rank, meanings = max(options, key=lambda option: (option[0], option[1], len(option[2])))
    also = [m for other, its, ms in options if other == size and its == 0 and rank == 2 for m in ms]
    return size, tuple(dict.fromkeys([*meanings, *also]))


def _number(question: str, words: list[Word], at: int) -> tuple[int, int | float | None]:
    """How many words a number at `at` has, and the number."""
    low = lowered(question)
    first = words[at]
    if not (first.stem[0].isdigit() or first.chinese or first.stem in ENGLISH):
        return 0, None
    found = re.compile(NUMBER, re.ASCII).match(low, first.start)
    if found is None:
        return 0, None
    return sum(1 for word in words[at:] if word.start < found.end()), number(found[0])


def _joined(items: list[Item], question: str) -> list[Item]:
    """The same with neighbouring words that are not understood made one, so that they are told together."""
    done: list[Item] = []
    for item in items:
        last = done[-1] if done else None
        unknown = not item.meanings and item.number is None
        if last is not None and unknown and not last.meanings and last.number is None and item.start - last.end <= 1:
            done[-1] = Item(last.start, item.end, question[last.start : item.end])
        else:
            done.append(item)
    return done
