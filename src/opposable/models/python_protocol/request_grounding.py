"""Grounding of values in the request: which of their words it contains."""

from collections.abc import Sequence

from opposable.domain.language import extract_numbers, split_words


def get_word_overlap(value: str, text_words: Sequence[str]) -> float | None:
    """Return the share of the words of a value that the text contains. None if it has none."""
    held = split_words(value)
    if not held or _is_other_script(held, text_words):
        return None
    exact = {*text_words, *extract_numbers(text_words)}
    starts = {word[:4] for word in exact if len(word) > 3}
    initials = "".join(word[0] for word in text_words)
    return sum(
        word in exact
        or word[:4] in starts
        or (len(word) <= 3 and word.isalpha() and any(each.startswith(word) for each in text_words))
        or (1 < len(word) <= 3 and word.isalpha() and word in initials)
        for word in held
    ) / len(held)


def _is_other_script(value_words: Sequence[str], text_words: Sequence[str]) -> bool:
    """Return whether a text is in another script than the request, such as Shanghai for 上海."""
    latin = any(word.isascii() and word.isalpha() for word in value_words)
    foreign = any(not word.isascii() for word in value_words)
    if latin == foreign or not set(value_words).isdisjoint(text_words):
        return False
    return latin == any(not word.isascii() for word in text_words)
