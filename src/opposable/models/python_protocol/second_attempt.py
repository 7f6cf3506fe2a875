"""A second look where the model wrote no call, but leaned towards one: it may be made all the same.

A small model does not think that a function that runs commands is one that lists files, and takes the way out.
"""

import re
from collections.abc import Sequence
from typing import Any

from opposable.domain.events import Token
from opposable.domain.language import words
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.python_protocol.call_acceptance import way_out
from opposable.models.python_protocol.prompts import NOTHING
from opposable.models.python_protocol.request_grounding import choices_said, stands_for
from opposable.parsers.lenient_json import strict
from opposable.parsers.schema_coercion import Schema

_NAME = re.compile(r"(?:command|cmd|code|script|sql|query|program|statement|expression)(?:_?(?:line|text|string))?")
_ABOUT = re.compile(
    r"\b(?:commands?|code|scripts?|sql|programs?|statements?|shell)\b|命令|代码|脚本|语句", re.IGNORECASE
)
_SURELY_OUT = -0.45
"""The log-probability of the way out from which on the model is sure of it."""
_LEANING = -4.6
"""The log-probability of a word from which on the model leans towards it: one in a hundred."""


def leaning(tokens: Sequence[Token], tools: Sequence[ToolDefinition]) -> str:
    """How a call would have begun that the model leaned towards, though it wrote none; "" where it was sure of the way out."""
    if way_out(tokens) > _SURELY_OUT:
        return ""
    alternatives = next((token.alternatives for token in tokens if token.alternatives), ())
    begun = (word.strip() for word, logprob in alternatives if logprob > _LEANING)
    calls = (word for word in begun if word != NOTHING and any(tool.name.startswith(word) for tool in tools))
    return next(filter(None, calls), "")


def is_said_whole(calls: Sequence[ToolCall], tools: Sequence[ToolDefinition], asked: Sequence[str]) -> bool:
    """Whether there is one call, and `asked`, the words of the request, say all that its function requires.

    What is to be run is said in more than one word, a choice as it is, a number as its description explains it. A request
    that holds nothing but a text is no request to run it: "shut up" is no command line.
    """
    if len(calls) != 1:
        return False
    tool = next((tool for tool in tools if tool.name == calls[0].name), None)
    schema = Schema(tool.parameters if tool else {})
    run = _run_by(tool.description, schema) if tool else ""
    given = strict(calls[0].arguments)
    return bool(schema.required()) and all(
        _is_said_to_run(given.get(name), asked)
        if name == run
        else _is_said(given.get(name), schema.property(name), asked)
        for name in schema.required()
    )


def _is_said_to_run(value: Any, asked: Sequence[str]) -> bool:
    held = words(value) if isinstance(value, str) else []
    return 1 < len(held) < len(asked) and set(held) <= set(asked)


def _is_said(value: Any, about: Schema, asked: Sequence[str]) -> bool:
    if type(value) is int:
        return stands_for(value, about.description(), asked)
    return isinstance(value, str) and value in about.choices() and value in choices_said([value], asked)


def _run_by(description: str, schema: Schema) -> str:
    """The required parameter that takes what a tool is to run; "" where it has none."""
    for name in schema.required():
        about = schema.property(name)
        if about.kinds() == {"string"} and not about.choices() and _NAME.fullmatch(name.lower()):
            return name if _ABOUT.search(f"{description} {about.description()}") else ""
    return ""
