"""Another value than one known to be wrong: where a model's reply leaves it, by the words that could have stood there."""

from collections.abc import Mapping, Sequence
from typing import Any

from opposable.domain.events import Token

_QUOTES = " \"'"


def instead(tokens: Sequence[Token], avoid: Mapping[str, Any]) -> str:
    """How the reply would go on had the model not written the value to be avoided; "" where it did not.

    `tokens` begin with the value of the argument that `avoid` has. A small model writes a value again that it has just
    been told is wrong; the likeliest word that leads to another one is mostly the beginning of the right one.
    """
    wrong = next((value for value in avoid.values() if isinstance(value, str) and value), "")
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
            if word != token.text and _leads_on(begun, wrong):
                return so_far + word
        so_far += token.text
    return ""


def towards(alternatives: Sequence[tuple[str, float]], begun: str, among: Sequence[str]) -> str:
    """Of the words that may follow, the likeliest that leads to one of some values; "" where none does."""
    for word, _ in alternatives:
        if word and any(value.startswith(begun + word) for value in among):
            return word
    return ""


def _leads_on(begun: str, wrong: str) -> bool:
    """Whether a value so begun is neither the wrong one nor none at all."""
    return (
        bool(begun.strip(_QUOTES))
        and "\ufffd" not in begun
        and not (begun.startswith(wrong) or wrong.startswith(begun))
    )
