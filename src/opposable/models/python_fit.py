"""Whether a call that was written is to be made: how sure the model was, and whether the conversation bears it out."""

import math
from collections.abc import Sequence
from typing import Any

import orjson

from opposable.domain.events import Token
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models import python_texts as texts
from opposable.models.python_calls import words

UNSEEN = -12.0
"""The log-probability taken for a word that is not among the alternatives."""

_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


LEAST = 2.2
UNSAID = 2.0
"""A call is made where -log p(way out) is `LEAST`, and `UNSAID` more where nothing of a required text was said."""


def fits(tokens: Sequence[Token], calls: Sequence[ToolCall], tools: Sequence[ToolDefinition], said: str) -> bool:
    """Whether the calls in a reply are to be made; `said` is all the text of the conversation."""
    return -way_out(tokens) >= LEAST + UNSAID * (1 - borne_out(calls, tools, said))


def way_out(tokens: Sequence[Token]) -> float:
    """The log-probability that the reply begins with the way out."""
    first = next((token for token in tokens if token.alternatives), None)
    if first is None:
        return UNSEEN
    mass = sum(math.exp(lp) for word, lp in first.alternatives if word.strip().startswith((texts.NOTHING, "#")))
    return math.log(mass) if mass > 0 else UNSEEN


def borne_out(calls: Sequence[ToolCall], tools: Sequence[ToolDefinition], said: str) -> float:
    """The smallest share of a required text's words that the conversation has; 1 where no text is required.

    Choices are meant rather than said, and numbers worked out: neither counts.
    """
    spoken = words(said)
    schemas = {tool.name: tool.parameters for tool in tools}
    return min((share for call in calls for share in _shares(call, schemas.get(call.name, {}), spoken)), default=1.0)


def _share(value: str, spoken: Sequence[str]) -> float | None:
    """The share of a value's words that were spoken, also by their beginning or initials; None where it has none."""
    held = words(value)
    if not held:
        return None
    exact = {*spoken, *(str(_NUMBERS.index(word)) for word in spoken if word in _NUMBERS)}
    starts = {word[:4] for word in exact if len(word) > 3}
    initials = "".join(word[0] for word in spoken)
    return sum(
        word in exact or word[:4] in starts or (len(word) <= 3 and word.isalpha() and _short(word, spoken, initials))
        for word in held
    ) / len(held)


def _short(word: str, spoken: Sequence[str], initials: str) -> bool:
    return (len(word) > 1 and word in initials) or any(each.startswith(word) for each in spoken)


def _shares(call: ToolCall, schema: dict[str, Any], spoken: Sequence[str]) -> list[float]:
    given: dict[str, Any] = orjson.loads(call.arguments)
    shares = []
    for name in schema.get("required") or ():
        about = (schema.get("properties") or {}).get(name) or {}
        if isinstance(given.get(name), str) and "enum" not in about:
            shares.append(_share(given[name], spoken))
    return [share for share in shares if share is not None]
