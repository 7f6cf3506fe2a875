"""A second look where the model wrote no call, but leaned towards one: it may be made all the same.

A small model does not think that a function that runs commands is one that lists files, and takes the way out.
"""

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
"""The log-probability of the way out from which on the model is sure of it."""
_MIN_CALL_LOGPROB = -4.6
"""The log-probability of a word from which on the model leans towards it: one in a hundred."""


def get_likely_call_prefix(tokens: Sequence[Token], tools: Sequence[ToolDefinition]) -> str:
    """How a call would have begun that the model leaned towards, though it wrote none; "" where it was sure of the way out."""
    if get_no_call_logprob(tokens) > _MAX_NO_CALL_LOGPROB:
        return ""
    alternatives = next((token.alternatives for token in tokens if token.alternatives), ())
    begun = (word.strip() for word, logprob in alternatives if logprob > _MIN_CALL_LOGPROB)
    calls = (word for word in begun if word != NO_CALL and any(tool.name.startswith(word) for tool in tools))
    return next(filter(None, calls), "")


def is_fully_requested(
    calls: Sequence[ToolCall], tools: Sequence[ToolDefinition], request_words: Sequence[str]
) -> bool:
    """Whether there is one call, and `asked`, the words of the request, say all that its function requires.

    What is to be run is said in more than one word, a choice as it is, a number as its description explains it. A request
    that holds nothing but a text is no request to run it: "shut up" is no command line.
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
    """The required parameter that takes what a tool is to run; "" where it has none."""
    for name in schema.required_names():
        about = schema.get_property(name)
        if (
            about.allowed_types() == {"string"}
            and not about.choices()
            and _COMMAND_NAME_PATTERN.fullmatch(name.lower())
        ):
            return name if _COMMAND_WORDS_PATTERN.search(f"{description} {about.description()}") else ""
    return ""
