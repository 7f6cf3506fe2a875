"""Suggestions for wrong arguments: the value in an error that is most similar."""

import re
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

from opposable.agent.failure_fingerprints import MIN_SIMILARITY

MAX_VALUE_CHARACTERS = 200
"""Characters of a compared value."""

_MAX_CHARACTERS_READ = 2_000
"""Characters of an error that are read."""
_MAX_VALUES_COMPARED = 300
"""Values of an error that are compared."""
_SEPARATOR_PATTERN = re.compile(r"[,;:：、，；。\n\"'“”‘’()\[\]]|\.(?=\s|$)")
_QUOTE_PAIRS = (("'", "'"), ('"', '"'), ("“", "”"), ("‘", "’"), ("「", "」"), ("《", "》"), ("`", "`"))
_NUMBER_PATTERN = re.compile(r"\d+")
_WORD_PATTERN = re.compile(r"[a-z]+|\d+|[^\x00-\x7f]+")


def suggest_arguments(arguments: dict[str, Any], error_text: str) -> dict[str, str]:
    """Return the most similar value of an error for each argument it quotes.

    A value needs to be the only best one. Ids that differ only in a number are not similar.
    """
    error_text = error_text[:_MAX_CHARACTERS_READ]
    repeated = {
        name: value
        for name, value in arguments.items()
        if isinstance(value, str) and len(value) <= MAX_VALUE_CHARACTERS and is_quoted(error_text, value)
    }
    return {name: near for name, value in repeated.items() if (near := _find_nearest_value(value, error_text))}


def is_quoted(error_text: str, value: str) -> bool:
    """Return whether an error quotes the value."""
    return any(f"{opening}{value}{closing}" in error_text for opening, closing in _QUOTE_PAIRS)


def _find_nearest_value(value: str, error_text: str) -> str:
    for opening, closing in _QUOTE_PAIRS:
        error_text = error_text.replace(f"{opening}{value}{closing}", "\n")
    texts = (text for part in _SEPARATOR_PATTERN.split(error_text) for text in (part.strip(), *part.split()))
    candidates = dict.fromkeys(text for text in texts if len(text) <= MAX_VALUE_CHARACTERS)
    compared = islice((text for text in candidates if text not in ("", value)), _MAX_VALUES_COMPARED)
    similarities = {text: _compute_similarity(value.casefold(), text.casefold()) for text in compared}
    best = max(similarities.values(), default=0.0)
    nearest = [candidate for candidate, likeness in similarities.items() if likeness == best]
    return nearest[0] if best >= MIN_SIMILARITY and len(nearest) == 1 else ""


def _compute_similarity(value: str, candidate: str) -> float:
    """Return the similarity of two lower-case texts. Above 1 if one contains the other."""
    few, many = _WORD_PATTERN.findall(value), _WORD_PATTERN.findall(candidate)
    whole = "".join(few)
    if not few or not many:
        return 0.0
    ends = range(1, len(many) + 1)
    if any("".join(many[start:end]) == whole for end in ends for start in range(end)):
        return 1 + len(whole) / len("".join(many))
    if _NUMBER_PATTERN.sub("", value) == _NUMBER_PATTERN.sub("", candidate):
        return 0.0
    alike = SequenceMatcher(None, candidate, value)
    far = alike.real_quick_ratio() < MIN_SIMILARITY or alike.quick_ratio() < MIN_SIMILARITY
    return 0.0 if far else alike.ratio()
