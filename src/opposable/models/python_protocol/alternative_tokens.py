"""Alternatives to a wrong value, from the token probabilities of a reply."""

from collections.abc import Mapping, Sequence
from typing import Any

from opposable.domain.events import Token

_QUOTES = " \"'"


def get_alternative_prefix(tokens: Sequence[Token], excluded_values: Mapping[str, Any]) -> str:
    """Return how the reply continues without the excluded value.

    "" if it does not contain it. `tokens` start with the value of the argument that `excluded_values` names.
    """
    wrong = next((value for value in excluded_values.values() if isinstance(value, str) and value), "")
    written = "".join(token.text for token in tokens)
    inner = written.lstrip(_QUOTES)
    if not wrong or not inner.startswith(wrong) or inner[len(wrong) : len(wrong) + 1] not in ("'", '"', ""):
        return ""
    so_far = ""
    for token in tokens:
        if len(so_far.lstrip(_QUOTES)) >= len(wrong):
            break
        for word, _ in token.alternatives:
            begun = (so_far + word).lstrip(_QUOTES)
            if word != token.text and _is_other_value(begun, wrong):
                return so_far + word
        so_far += token.text
    return ""


def choose_next_token(alternatives: Sequence[tuple[str, float]], prefix: str, allowed_values: Sequence[str]) -> str:
    """Return the likeliest next token that leads to an allowed value; "" for none."""
    for word, _ in alternatives:
        if word and any(value.startswith(prefix + word) for value in allowed_values):
            return word
    return ""


def _is_other_value(prefix: str, excluded_value: str) -> bool:
    """Return whether a prefix starts neither the excluded value nor an empty one."""
    return (
        bool(prefix.strip(_QUOTES))
        and "\ufffd" not in prefix
        and not (prefix.startswith(excluded_value) or excluded_value.startswith(prefix))
    )
