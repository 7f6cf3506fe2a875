"""Selects the confirmed questions that are similar to a question."""

from collections.abc import Awaitable, Callable, Sequence

from opposable.domain.records import QueryExample
from opposable.domain.text_normalization import extract_index_words, normalize_text, singularize

MAX_EXAMPLES = 3
MIN_SIMILARITY = 0.25
"""Reached by 90 % of 433 pairs of questions with the same SQL but for values, and by 24 % of 27,710 other pairs of a
database (40 databases of Spider's training set)."""

LoadExamples = Callable[[], Awaitable[Sequence[QueryExample]]]
"""Returns the confirmed questions of a database."""


def select_examples(question: str, examples: Sequence[QueryExample]) -> tuple[QueryExample, ...]:
    """Return up to three similar questions, the most similar last, next to the question in the prompt.

    The similarity is the share of common words (Jaccard index); Chinese is compared by pairs of characters.
    """
    words = _get_words(question)
    others = [(_get_words(example.question), example) for example in examples]
    scored = [(len(words & other) / max(1, len(words | other)), example) for other, example in others]
    similar = sorted((pair for pair in scored if pair[0] >= MIN_SIMILARITY), key=lambda pair: pair[0])
    return tuple(example for _, example in similar[-MAX_EXAMPLES:])


def _get_words(text: str) -> frozenset[str]:
    return frozenset(singularize(word) for word in extract_index_words(normalize_text(text)))
