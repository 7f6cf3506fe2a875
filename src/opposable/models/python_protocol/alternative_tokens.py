"""Another value than one known to be wrong: where a model's reply leaves it, by the words that could have stood there."""

from collections.abc import Mapping, Sequence
from typing import Any

from opposable.domain.events import Token

_QUOTES = " \"'"


def get_alternative_prefix(tokens: Sequence[Token], excluded_values: Mapping[str, Any]) -> str:
    """How the reply would go on had the model not written the value to be avoided; "" where it did not.

    `tokens` begin with the value of the argument that `avoid` has. A small model writes a value again that it has just
    been told is wrong; the likeliest word that leads to another one is mostly the beginning of the right one.
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
    """Of the words that may follow, the likeliest that leads to one of some values; "" where none does."""
    for word, _ in alternatives:
        if word and any(value.startswith(prefix + word) for value in allowed_values):
            return word
    return ""


def _is_other_value(prefix: str, excluded_value: str) -> bool:
    """Whether a value so begun is neither the wrong one nor none at all."""
    return (
        bool(prefix.strip(_QUOTES))
        and "\ufffd" not in prefix
        and not (prefix.startswith(excluded_value) or excluded_value.startswith(prefix))
    )
