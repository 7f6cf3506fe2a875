"""Whether a call that was written is to be made: how sure the model was, and whether the conversation bears it out."""

import math
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from opposable.domain.events import Token
from opposable.domain.language import numbers_spoken, words
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.python_protocol import prompts as texts
from opposable.models.python_protocol.dates import MONTHS, date_of
from opposable.models.python_protocol.request_grounding import share_said
from opposable.parsers.lenient_json import strict
from opposable.parsers.schema_coercion import Schema

UNSEEN = -12.0
"""The log-probability taken for a word that is not among the alternatives."""

_EVEN = math.log(0.5)
_NUMBER = re.compile(r"\d[\d.,]*\d|\d")

_STANDING_IN = re.compile(
    r"\byour[_-]?(?:api|access|secret|auth|client|app|user|account|bearer)?[_-]?(?:key|token|id|password|secret|name)\b"
    r"|<(?:(?:your|insert)[^<>]*|(?:[a-z]+[ _-])+(?:token|key|password|secret)|token)>"
    r"|^(?:https?://)?(?:[\w.+-]+@)?(?:[\w-]+\.)*example\.(?:com|org|net)(?=[/:?#]|$)",
    re.IGNORECASE,
)
"""What stands in for a value that is not known: YOUR_API_KEY, `<token>`, an address at example.com."""

_KEPT, _SURE, _SAID, _INVENTED, _BIAS = 0.8, 16.0, 2.0, 3.0, -0.7
_AWAY, _WAVERING = 2.5, -0.14
"""From a logistic regression over 300 replies of the embedded model that hold calls, to requests with and without a
fitting tool; of weights that do as well there, those that also make the calls of 15 tasks with several steps.

A model that far from the way out surely wants a call: its wavering counts for so much at most, since it may waver
between 上海 and Shanghai. No right call held an invented number: the weight of those is set by hand.
"""
_SECOND_BIAS = -1.1
"""Of 79 replies that held no call until the model was made to go on with the name it leaned towards, this bias makes
16 of 26 calls that are right, and 5 of 53 that are not."""


def fits(
    tokens: Sequence[Token],
    calls: Sequence[ToolCall],
    tools: Sequence[ToolDefinition],
    said: str,
    second: Sequence[Token] | None = None,
) -> bool:
    """Whether the calls in a reply are to be made; `said` is all the text of the conversation.

    `second` are the tokens of the calls where the reply itself, of `tokens`, has none (`python_second`).
    """
    if any(lacks_values(call, tools, said) for call in calls):
        return False
    kept = min(6.0, -way_out(tokens))
    sure = sureness(tokens if second is None else second)
    sure = max(sure, _WAVERING) if kept >= _AWAY else sure
    signs = _KEPT * kept + _SURE * sure + _SAID * borne_out(calls, tools, said)
    return signs - _INVENTED * min(2, invented(calls, said)) + (_BIAS if second is None else _SECOND_BIAS) >= 0


def lacks_values(call: ToolCall, tools: Sequence[ToolDefinition], said: str) -> bool:
    """Whether a call leaves a required argument out, or something that nobody spoke of stands in for a value.

    No right call of 746 did, and 11 of 76 that were made though no function fitted.
    """
    given = strict(call.arguments)
    if not all(name in given for name in texts.schema_of(call, tools).required()):
        return True
    stand_ins = (match[0] for value in _leaves(given) for match in _STANDING_IN.finditer(value))
    return any(found.casefold() not in said.casefold() for found in stand_ins)


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
    spoken, heard = {_significant(number) for number in _NUMBER.findall(said)}, set(words(said))
    values = [_named(value, heard) for call in calls for value in _leaves(strict(call.arguments))]
    numbers = [_significant(number) for value in values for number in _NUMBER.findall(value)]
    return sum(len(number) >= 3 and not any(number in other for other in spoken) for number in numbers)


def borne_out(calls: Sequence[ToolCall], tools: Sequence[ToolDefinition], said: str) -> float:
    """The smallest share of a required text's or list's words that the conversation has; 1 where none is required.

    Choices are meant rather than said, and numbers worked out: neither counts.
    """
    spoken = words(said)
    return min((share for call in calls for share in _shares(call, texts.schema_of(call, tools), spoken)), default=1.0)


def _shares(call: ToolCall, schema: Schema, spoken: Sequence[str]) -> list[float]:
    given: dict[str, Any] = strict(call.arguments)
    shares = []
    for name in schema.required():
        about, value = schema.property(name), given.get(name)
        if isinstance(value, str) and not about.choices():
            shares.append(share_said(value, spoken))
        elif isinstance(value, list) and not about.branch("array").items(0).choices():
            shares.append(_share_of_list(value, spoken))
    return [share for share in shares if share is not None]


def _share_of_list(items: Sequence[Any], spoken: Sequence[str]) -> float | None:
    """How much of a list's texts was said; whole numbers may be worked out, but not where none was spoken of."""
    if items and all(type(item) is int for item in items):
        return 1.0 if numbers_spoken(spoken) else 0.0
    return share_said(" ".join(items), spoken) if all(isinstance(item, str) for item in items) else None


def _named(value: str, spoken: Collection[str]) -> str:
    """The value without the year of a day that was named by its month and number, as in "March 15th"."""
    day = date_of(value)
    if day is None or str(day.day) not in spoken or not _names_month(day.month, spoken):
        return value
    return value.replace(str(day.year), "")


def _names_month(month: int, spoken: Collection[str]) -> bool:
    return str(month) in spoken or any(word.startswith(MONTHS[month - 1]) for word in spoken)


def _significant(number: str) -> str:
    return re.sub(r"\D", "", number).strip("0")


def _leaves(value: Any) -> Iterator[str]:
    """The texts and numbers in a value, as text."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    elif isinstance(value, str | float | int):
        yield str(value)
