"""Acceptance of written calls, by the confidence of the model and the grounding in the request."""

import math
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from opposable.domain.events import Token
from opposable.domain.language import extract_numbers, split_words
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.python_protocol import prompts as texts
from opposable.models.python_protocol.dates import MONTH_ABBREVIATIONS, parse_unambiguous_date
from opposable.models.python_protocol.request_grounding import get_word_overlap
from opposable.parsers.schema_coercion import SchemaNode

UNSEEN_LOGPROB = -12.0
"""The log-probability of a token that is not among the alternatives."""

_EVEN_ODDS_LOGPROB = math.log(0.5)
_NUMBER_PATTERN = re.compile(r"\d[\d.,]*\d|\d")

_NO_CALL_WEIGHT, _CONFIDENCE_WEIGHT, _GROUNDING_WEIGHT, _UNGROUNDED_NUMBER_WEIGHT, _BIAS = 0.8, 16.0, 2.0, 3.0, -0.7
_CLEAR_CALL_LOGPROB, _MIN_CLEAR_CONFIDENCE = 2.5, -0.14
"""From a logistic regression over 300 replies of the embedded model that hold calls, to requests with and without a
fitting tool; of weights that do as well there, those that also make the calls of 15 tasks with several steps.

A model that far from the way out surely wants a call: its wavering counts for so much at most, since it may waver
between 上海 and Shanghai. No right call held an invented number: the weight of those is set by hand.
"""
_SECOND_ATTEMPT_BIAS = -1.1
"""Of 79 replies that held no call until the model was made to go on with the name it leaned towards, this bias makes
16 of 26 calls that are right, and 5 of 53 that are not."""


def accepts_calls(
    tokens: Sequence[Token],
    calls: Sequence[ToolCall],
    tools: Sequence[ToolDefinition],
    conversation: str,
    second_tokens: Sequence[Token] | None = None,
) -> bool:
    """Return whether to make the calls of a reply.

    Args:
        tokens: The tokens of the reply.
        calls: The calls in it.
        tools: The tools offered.
        conversation: The text of the conversation.
        second_tokens: The tokens of the second attempt, if the calls are from one.
    """
    if any(lacks_required_argument(call, tools) for call in calls):
        return False
    no_call_distance = min(6.0, -get_no_call_logprob(tokens))
    confidence = get_mean_logprob(tokens if second_tokens is None else second_tokens)
    confidence = max(confidence, _MIN_CLEAR_CONFIDENCE) if no_call_distance >= _CLEAR_CALL_LOGPROB else confidence
    score = (
        _NO_CALL_WEIGHT * no_call_distance
        + _CONFIDENCE_WEIGHT * confidence
        + _GROUNDING_WEIGHT * get_grounding_score(calls, tools, conversation)
    )
    return (
        score
        - _UNGROUNDED_NUMBER_WEIGHT * min(2, count_ungrounded_numbers(calls, conversation))
        + (_BIAS if second_tokens is None else _SECOND_ATTEMPT_BIAS)
        >= 0
    )


def lacks_required_argument(call: ToolCall, tools: Sequence[ToolDefinition]) -> bool:
    """Return whether a call lacks a required argument."""
    return not all(name in call.arguments for name in texts.get_schema(call, tools).required_names())


def find_doubtful_lines(tokens: Sequence[Token]) -> frozenset[int]:
    """Return the lines, from 1, whose first token had a probability below one half."""
    lines: set[int] = set()
    line, fresh = 1, True
    for token in tokens:
        if fresh and token.text.strip():
            chosen = next((lp for word, lp in token.alternatives if word == token.text), 0.0)
            lines |= {line} if chosen < _EVEN_ODDS_LOGPROB else set()
            fresh = False
        line += token.text.count("\n")
        fresh = fresh or token.text.endswith("\n")
    return frozenset(lines)


def get_no_call_logprob(tokens: Sequence[Token]) -> float:
    """Return the log-probability that the reply begins with the no-call option."""
    first = next((token for token in tokens if token.alternatives), None)
    if first is None:
        return UNSEEN_LOGPROB
    mass = sum(math.exp(lp) for word, lp in first.alternatives if word.strip().startswith((texts.NO_CALL, "#")))
    return math.log(mass) if mass > 0 else UNSEEN_LOGPROB


def get_mean_logprob(tokens: Sequence[Token]) -> float:
    """Return the mean log-probability of the likeliest token at each position."""
    likeliest = [token.alternatives[0][1] for token in tokens if token.alternatives]
    return sum(likeliest) / len(likeliest) if likeliest else UNSEEN_LOGPROB


def count_ungrounded_numbers(calls: Sequence[ToolCall], conversation: str) -> int:
    """Count the numbers of three or more significant digits that the conversation does not contain.

    Shorter numbers can be computed. The year of a day named without one does not count.
    """
    spoken, heard = (
        {_get_significant_digits(number) for number in _NUMBER_PATTERN.findall(conversation)},
        set(split_words(conversation)),
    )
    values = [_without_implied_year(value, heard) for call in calls for value in _iter_scalars(dict(call.arguments))]
    numbers = [_get_significant_digits(number) for value in values for number in _NUMBER_PATTERN.findall(value)]
    return sum(len(number) >= 3 and not any(number in other for other in spoken) for number in numbers)


def get_grounding_score(calls: Sequence[ToolCall], tools: Sequence[ToolDefinition], conversation: str) -> float:
    """Return the smallest share of the words of a required text or list that the conversation contains.

    Choices and numbers do not count. The result is 1 if no text is required.
    """
    spoken = split_words(conversation)
    return min(
        (share for call in calls for share in _get_grounded_shares(call, texts.get_schema(call, tools), spoken)),
        default=1.0,
    )


def _get_grounded_shares(call: ToolCall, schema: SchemaNode, conversation_words: Sequence[str]) -> list[float]:
    given: dict[str, Any] = dict(call.arguments)
    shares = []
    for name in schema.required_names():
        about, value = schema.get_property(name), given.get(name)
        if isinstance(value, str) and not about.choices():
            shares.append(get_word_overlap(value, conversation_words))
        elif isinstance(value, list) and not about.get_alternative("array").get_item_schema(0).choices():
            shares.append(_get_list_share(value, conversation_words))
    return [share for share in shares if share is not None]


def _get_list_share(items: Sequence[Any], conversation_words: Sequence[str]) -> float | None:
    """Return the share of the texts of a list that the conversation contains."""
    if items and all(type(item) is int for item in items):
        return 1.0 if extract_numbers(conversation_words) else 0.0
    return (
        get_word_overlap(" ".join(items), conversation_words) if all(isinstance(item, str) for item in items) else None
    )


def _without_implied_year(value: str, conversation_words: Collection[str]) -> str:
    """Return the value without the year of a day that was named by month and day."""
    day = parse_unambiguous_date(value)
    if day is None or str(day.day) not in conversation_words or not _is_month_named(day.month, conversation_words):
        return value
    return value.replace(str(day.year), "")


def _is_month_named(month: int, conversation_words: Collection[str]) -> bool:
    return str(month) in conversation_words or any(
        word.startswith(MONTH_ABBREVIATIONS[month - 1]) for word in conversation_words
    )


def _get_significant_digits(number: str) -> str:
    return re.sub(r"\D", "", number).strip("0")


def _iter_scalars(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in a value, as text."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _iter_scalars(inner)
    elif isinstance(value, str | float | int):
        yield str(value)
