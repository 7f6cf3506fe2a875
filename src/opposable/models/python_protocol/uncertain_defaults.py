"""Optional values that a model was uncertain of: the default is used unless the request mentions them.

A small model that begins an optional argument must write a value. If it is made up, the default was nearly as likely.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from opposable.domain.events import Token
from opposable.domain.language import extract_numbers, split_words
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.python_protocol.call_builder import replace_arguments
from opposable.models.python_protocol.prompts import get_schema
from opposable.models.python_protocol.request_grounding import (
    get_flag_subject,
    get_word_overlap,
    matches_described_code,
)
from opposable.parsers.schema_coercion import SchemaNode

_MIN_RIVAL_LOGPROB = -4.0
"""The log-probability from which the default is a rival. Of the optional values that requests did not mention,
measured on the embedded model, it was above -3.9 for all 14 wrong ones, and below -6.5 for the 15 right ones.
"""
_AMOUNT_WORDS = frozenset(
    split_words(
        "twenty thirty forty fifty sixty seventy eighty ninety hundred thousand half quarter dozen couple both twice all "
        "十百千万半全"
    )
)
"""Words for amounts besides number words."""
_DEFAULT_PATTERN = re.compile(
    r"\b[Dd]efaults?(?: value)?(?: is| to|:)? ['\"]?(\w+)|默认(?:值)?[为是：:]? ?['\"“]?(?=[\w])(\w+)"
)
_ARGUMENT_PATTERN = re.compile(r"\b(\w+)\s*=\s*['\"]?")


def drop_uncertain_defaults(
    call: ToolCall, tokens: Sequence[Token], tools: Sequence[ToolDefinition], conversation_words: Sequence[str]
) -> ToolCall:
    """Return the call without optional values that are uncertain and not mentioned."""
    schema = get_schema(call, tools)
    given: dict[str, Any] = dict(call.arguments)
    optional = {name: schema.get_property(name) for name in given if name not in schema.required_names()}
    unsaid = {
        name: (str(given[name]), default)
        for name, about in optional.items()
        if isinstance(given[name], str | bool | int | float)
        and (default := _get_default(about)) not in (None, str(given[name]))
        and not _is_value_mentioned(name, given[name], about, conversation_words)
    }
    wavered = {
        name
        for name, before, token in _iter_value_tokens(tokens)
        if name in unsaid and _is_default_rival(*unsaid[name], before, token)
    }
    if not wavered:
        return call
    certain_arguments = {name: value for name, value in given.items() if name not in wavered}
    return replace_arguments(call, certain_arguments, ["optional value left to its default"])


def _get_default(schema: SchemaNode) -> str | None:
    """Return the default of a parameter, from its schema or its description."""
    if "default" in schema.node:
        return str(schema.node["default"])
    named = _DEFAULT_PATTERN.search(schema.description())
    default = (named[1] or named[2]) if named else None
    return default.capitalize() if default in ("true", "false") else default


def _is_value_mentioned(name: str, value: Any, schema: SchemaNode, conversation_words: Sequence[str]) -> bool:
    """Return whether the request may mention a value, or the subject of a flag."""
    if type(value) in (int, float):
        return bool(
            _AMOUNT_WORDS.intersection(conversation_words)
            or extract_numbers(conversation_words)
            or matches_described_code(value, schema.description(), conversation_words)
        )
    said = get_word_overlap(value, conversation_words) if isinstance(value, str) else 0.0
    return said is None or bool(said or get_word_overlap(get_flag_subject(name), conversation_words))


def _iter_value_tokens(tokens: Sequence[Token]) -> Iterator[tuple[str, str, Token]]:
    """Yield each argument with the token its value begins in, and the text before it in the token."""
    text = "".join(token.text for token in tokens)
    found = list(_ARGUMENT_PATTERN.finditer(text))
    times = Counter(match[1] for match in found)
    starts = [(match[1], match.end()) for match in found if times[match[1]] == 1]
    begun = 0
    for token in tokens:
        ended = begun + len(token.text)
        while starts and starts[0][1] < ended:
            name, at = starts.pop(0)
            if at >= begun:
                yield name, text[begun:at], token
        begun = ended


def _is_default_rival(value: str, default: str, token_prefix: str, token: Token) -> bool:
    """Return whether the default was a likely alternative at the beginning of the value."""
    for word, logprob in token.alternatives:
        meant = word.removeprefix(token_prefix).rstrip("'\"), \n") if word.startswith(token_prefix) else ""
        if logprob > _MIN_RIVAL_LOGPROB and meant and default.startswith(meant) and not value.startswith(meant):
            return True
    return False
