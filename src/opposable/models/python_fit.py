"""Whether a call that was written is to be made: how sure the model was, and whether the conversation bears it out."""

import math
import re
from collections.abc import Container, Iterator, Sequence
from typing import Any

import orjson

from opposable.domain.events import Token
from opposable.domain.language import words
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models import python_texts as texts
from opposable.models.python_dates import date_of
from opposable.models.python_said import share_said

UNSEEN = -12.0
"""The log-probability taken for a word that is not among the alternatives."""

_EVEN = math.log(0.5)
_NUMBER = re.compile(r"\d[\d.,]*\d|\d")

_KEPT, _SURE, _SAID, _INVENTED, _BIAS = 0.8, 16.0, 2.0, 3.0, -0.5
_SECOND_BIAS = -1.1
_AWAY, _WAVERING = 2.5, -0.14
"""From a logistic regression over 300 replies of the embedded model that hold calls, to requests with and without a
fitting tool; of weights that do as well there, those that also make the calls of 15 tasks with several steps.

Of 79 such replies that held no call until the model was made to go on with the name it leaned towards, the bias for
these makes 16 of 26 calls that are right, and 5 of 53 that are not. A model that far from the way out surely wants a call: its wavering counts for so much at most, since it may waver
between 上海 and Shanghai. No right call held an invented number: the weight of those is set by hand.
"""


def fits(
    tokens: Sequence[Token],
    calls: Sequence[ToolCall],
    tools: Sequence[ToolDefinition],
    said: str,
    second: Sequence[Token] = (),
) -> bool:
    """Whether the calls in a reply are to be made; `said` is all the text of the conversation.

    `second` are the tokens of the calls where the reply itself, of `tokens`, has none (`python_second`).
    """
    kept = min(6.0, -way_out(tokens))
    sure = sureness(second or tokens)
    sure = max(sure, _WAVERING) if kept >= _AWAY else sure
    signs = _KEPT * kept + _SURE * sure + _SAID * borne_out(calls, tools, said)
    return signs - _INVENTED * min(2, invented(calls, said)) + (_SECOND_BIAS if second else _BIAS) >= 0


def doubtful_lines(tokens: Sequence[Token]) -> frozenset[int]:
    """The lines of a reply, counted from 1, whose first token was less likely than all others together."""
    lines: set[int] = set()
    line, fresh = 1, True
    for token in tokens:
        if fresh and token.text.strip():
            chosen = next((lp for word, lp in token.alternatives if word == token.text), 0.0)
            lines |= {line} if chosen < _EVEN else set()
            fresh = False
        line += token.text.count("\n")
        fresh = fresh or token.text.endswith("\n")
    return frozenset(lines)


def way_out(tokens: Sequence[Token]) -> float:
    """The log-probability that the reply begins with the way out."""
    first = next((token for token in tokens if token.alternatives), None)
    if first is None:
        return UNSEEN
    mass = sum(math.exp(lp) for word, lp in first.alternatives if word.strip().startswith((texts.NOTHING, "#")))
    return math.log(mass) if mass > 0 else UNSEEN


def sureness(tokens: Sequence[Token]) -> float:
    """The mean log-probability of a reply's tokens, each the likeliest at its place."""
    likeliest = [token.alternatives[0][1] for token in tokens if token.alternatives]
    return sum(likeliest) / len(likeliest) if likeliest else UNSEEN


def invented(calls: Sequence[ToolCall], said: str) -> int:
    """How many numbers of three or more significant digits stand in the calls that nobody spoke of.

    Shorter ones may be worked out or meant; 0.05 is 5 %, and 1,000,000 one million. The year of a day that was named
    without one is meant, too.
    """
    spoken = {_significant(number) for number in _NUMBER.findall(said)}
    values = [_named(value, spoken) for call in calls for value in _leaves(orjson.loads(call.arguments))]
    numbers = [_significant(number) for value in values for number in _NUMBER.findall(value)]
    return sum(len(number) >= 3 and not any(number in other for other in spoken) for number in numbers)


def borne_out(calls: Sequence[ToolCall], tools: Sequence[ToolDefinition], said: str) -> float:
    """The smallest share of a required text's or list's words that the conversation has; 1 where none is required.

    Choices are meant rather than said, and numbers worked out: neither counts.
    """
    spoken = words(said)
    schemas = {tool.name: tool.parameters for tool in tools}
    return min((share for call in calls for share in _shares(call, schemas.get(call.name, {}), spoken)), default=1.0)


def _shares(call: ToolCall, schema: dict[str, Any], spoken: Sequence[str]) -> list[float]:
    given: dict[str, Any] = orjson.loads(call.arguments)
    shares = []
    for name in schema.get("required") or ():
        about = (schema.get("properties") or {}).get(name) or {}
        value, chosen = given.get(name), "enum" in about
        if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
            value, chosen = " ".join(map(str, value)), chosen or "enum" in (about.get("items") or {})
        if isinstance(value, str) and not chosen:
            shares.append(share_said(value, spoken))
    return [share for share in shares if share is not None]


def _named(value: str, spoken: Container[str]) -> str:
    """The value without the year of a day whose own number was spoken."""
    day = date_of(value)
    return "" if day and _significant(str(day.day)) in spoken else value


def _significant(number: str) -> str:
    return re.sub(r"\D", "", number).strip("0")


def _leaves(value: Any) -> Iterator[str]:
    """The texts and numbers in a value, as text."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    elif isinstance(value, str | float | int):
        yield str(value)
