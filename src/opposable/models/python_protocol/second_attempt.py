"""The second attempt: continue a likely call that the model did not write."""

import re
from collections.abc import Sequence
from typing import Any

from opposable.domain.events import Token
from opposable.domain.language import split_words
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.python_protocol.call_acceptance import get_no_call_logprob
from opposable.models.python_protocol.prompts import NO_CALL
from opposable.models.python_protocol.request_grounding import find_requested_choices, matches_described_code
from opposable.parsers.schema_coercion import SchemaNode

_COMMAND_NAME_PATTERN = re.compile(
    r"(?:command|cmd|code|script|sql|query|program|statement|expression)(?:_?(?:line|text|string))?"
)
_COMMAND_WORDS_PATTERN = re.compile(
    r"\b(?:commands?|code|scripts?|sql|programs?|statements?|shell)\b|命令|代码|脚本|语句", re.IGNORECASE
)
_MAX_NO_CALL_LOGPROB = -0.45
"""The log-probability of the no-call option from which the model is certain of it."""
_MIN_CALL_LOGPROB = -4.6
"""The log-probability from which a function counts as likely: one percent."""


def get_likely_call_prefix(tokens: Sequence[Token], tools: Sequence[ToolDefinition]) -> str:
    """Return the beginning of a likely call.

    "" if the model is certain of the no-call option.
    """
    if get_no_call_logprob(tokens) > _MAX_NO_CALL_LOGPROB:
        return ""
    alternatives = next((token.alternatives for token in tokens if token.alternatives), ())
    begun = (word.strip() for word, logprob in alternatives if logprob > _MIN_CALL_LOGPROB)
    calls = (word for word in begun if word != NO_CALL and any(tool.name.startswith(word) for tool in tools))
    return next(filter(None, calls), "")


def is_fully_requested(
    calls: Sequence[ToolCall], tools: Sequence[ToolDefinition], request_words: Sequence[str]
) -> bool:
    """Return whether there is one call and the request contains all of its required values.

    A command must have more than one word, and the request must contain more than the command.
    """
    if len(calls) != 1:
        return False
    tool = next((tool for tool in tools if tool.name == calls[0].name), None)
    schema = SchemaNode(tool.parameters if tool else {})
    run = _find_command_parameter(tool.description, schema) if tool else ""
    given = dict(calls[0].arguments)
    return bool(schema.required_names()) and all(
        _is_command_requested(given.get(name), request_words)
        if name == run
        else _is_value_requested(given.get(name), schema.get_property(name), request_words)
        for name in schema.required_names()
    )


def _is_command_requested(value: Any, request_words: Sequence[str]) -> bool:
    held = split_words(value) if isinstance(value, str) else []
    return 1 < len(held) < len(request_words) and set(held) <= set(request_words)


def _is_value_requested(value: Any, schema: SchemaNode, request_words: Sequence[str]) -> bool:
    if type(value) is int:
        return matches_described_code(value, schema.description(), request_words)
    return (
        isinstance(value, str) and value in schema.choices() and value in find_requested_choices([value], request_words)
    )


def _find_command_parameter(description: str, schema: SchemaNode) -> str:
    """Return the required parameter with the command to run; "" for none."""
    for name in schema.required_names():
        about = schema.get_property(name)
        if (
            about.allowed_types() == {"string"}
            and not about.choices()
            and _COMMAND_NAME_PATTERN.fullmatch(name.lower())
        ):
            return name if _COMMAND_WORDS_PATTERN.search(f"{description} {about.description()}") else ""
    return ""
