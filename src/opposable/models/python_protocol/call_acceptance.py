"""Acceptance of written calls, by the confidence of the model and the grounding in the request.

The weights are in `call_acceptance.json`, with the data that they come from.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from opposable.domain.events import Reply
from opposable.domain.language import extract_numbers, split_words
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.python_protocol import prompts as texts
from opposable.parsers.schema_coercion import SchemaNode

UNSEEN_LOGPROB = -12.0
"""The log-probability of a token that is not among the alternatives."""

_DATE_YEAR_PATTERN = re.compile(r"\b\d{4}(?=[-/.]\d\d?[-/.]\d)|(?<=\d[-/.])\d{4}\b")
_NUMBER_PATTERN = re.compile(r"\d[\d.,]*\d|\d")


def drop_dependent_calls(
    calls: Sequence[ToolCall], tools: Sequence[ToolDefinition], conversation: str
) -> Sequence[ToolCall]:
    """Leave out calls of further tools whose values are not in the request: they depend on results of the others."""
    if len({call.name for call in calls}) < 2:
        return calls
    grounded = [
        call
        for call in calls
        if get_grounding_score((call,), tools, conversation) > 0 and not count_ungrounded_numbers((call,), conversation)
    ]
    return grounded or calls


def is_acceptable(
    choice: Reply, reply: Reply, calls: Sequence[ToolCall], tools: Sequence[ToolDefinition], conversation: str
) -> bool:
    """Return whether to make the calls of a reply, after the choice between calls and the no-call option."""
    required_names = {call.name: texts.get_schema(call, tools).required_names() for call in calls}
    if any(name not in call.arguments for call in calls for name in required_names[call.name]):
        return False
    weights = load_weights()
    no_call_distance = min(weights["max_no_call_distance"], -get_no_call_logprob(choice))
    likeliest = [token.alternatives[0][1] for token in reply.tokens if token.alternatives] or [UNSEEN_LOGPROB]
    confidence = sum(likeliest) / len(likeliest)
    if no_call_distance >= weights["clear_no_call_distance"]:
        confidence = max(confidence, weights["min_clear_confidence"])
    score = (
        weights["no_call_distance"] * no_call_distance
        + weights["confidence"] * confidence
        + weights["grounding"] * get_grounding_score(calls, tools, conversation)
        + weights["ungrounded_number"] * min(2, count_ungrounded_numbers(calls, conversation))
        + weights["bias"]
    )
    return score >= 0


@cache
def load_weights() -> dict[str, float]:
    """Return the weights of the features, by their names."""
    weights: dict[str, float] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))["weights"]
    return weights


def get_no_call_logprob(choice: Reply) -> float:
    """Return the log-probability that a reply is the no-call option, by its first token."""
    first = next((token for token in choice.tokens if token.alternatives), None)
    if first is None:
        return 0.0 if texts.NO_CALL in choice.message.content else UNSEEN_LOGPROB
    mass = sum(math.exp(lp) for word, lp in first.alternatives if word.strip().startswith((texts.NO_CALL, "#")))
    return math.log(mass) if mass > 0 else UNSEEN_LOGPROB


def get_total_logprob(reply: Reply) -> float:
    """Return the log-probability of a reply without a grammar, that of a truncated one as -inf."""
    if reply.finish == "length":
        return -math.inf
    return sum(dict(token.alternatives).get(token.text, UNSEEN_LOGPROB) for token in reply.tokens if token.alternatives)


def count_ungrounded_numbers(calls: Sequence[ToolCall], conversation: str) -> int:
    """Count the numbers of three or more significant digits that the conversation does not contain.

    Shorter numbers can be computed, and the year of a date can be implied.
    """
    spoken = {_get_significant_digits(number) for number in _NUMBER_PATTERN.findall(conversation)}
    values = [_DATE_YEAR_PATTERN.sub("", value) for call in calls for value in _iter_scalars(dict(call.arguments))]
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
    shares: list[float | None] = []
    for name in schema.required_names():
        about, value = schema.get_property(name), call.arguments.get(name)
        if isinstance(value, list):
            about = about.get_alternative("array").get_item_schema(0)
            if value and all(type(item) is int for item in value):
                shares.append(float(bool(extract_numbers(conversation_words))))
            value = " ".join(item for item in value if isinstance(item, str))
        if isinstance(value, str) and not about.choices():
            shares.append(_get_word_overlap(value, conversation_words))
    return [share for share in shares if share is not None]


def _get_word_overlap(value: str, text_words: Sequence[str]) -> float | None:
    """Return the share of the words of a value that the text contains, or words that begin alike. None without words."""
    words = split_words(value)
    if not words or _is_other_script(words, text_words):
        return None
    spoken = {*text_words, *extract_numbers(text_words)}
    starts = {word[:4] for word in spoken if len(word) > 3}
    return sum(word in spoken or word[:4] in starts for word in words) / len(words)


def _is_other_script(value_words: Sequence[str], text_words: Sequence[str]) -> bool:
    """Return whether a text is in another script than the request, such as Shanghai for 上海."""
    latin = any(word.isascii() and word.isalpha() for word in value_words)
    foreign = any(not word.isascii() for word in value_words)
    is_foreign_text = any(not word.isascii() for word in text_words)
    return latin != foreign and latin == is_foreign_text and set(value_words).isdisjoint(text_words)


def _get_significant_digits(number: str) -> str:
    return re.sub(r"\D", "", number).strip("0")


def _iter_scalars(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in a value, as text."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _iter_scalars(inner)
    elif isinstance(value, str | float | int):
        yield str(value)
