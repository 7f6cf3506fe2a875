"""Optional values that a model wavered over: where the request does not speak of them, their default stands.

A small model that has begun an optional argument must write something. Where it made the value up, the default was
nearly as likely; where it took the value from the request, in whatever words, the default was not.
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
"""The log-probability from which on the default might have stood there. Of the optional values that requests did not
speak of, measured on the embedded model, it was above -3.9 for all 14 that were wrong, and below -6.5 for the 15 right."""
_AMOUNT_WORDS = frozenset(
    split_words(
        "twenty thirty forty fifty sixty seventy eighty ninety hundred thousand half quarter dozen couple both twice all "
        "十百千万半全"
    )
)
"""Words for amounts besides `numbers_spoken`."""
_DEFAULT_PATTERN = re.compile(
    r"\b[Dd]efaults?(?: value)?(?: is| to|:)? ['\"]?(\w+)|默认(?:值)?[为是：:]? ?['\"“]?(?=[\w])(\w+)"
)
_ARGUMENT_PATTERN = re.compile(r"\b(\w+)\s*=\s*['\"]?")


def drop_uncertain_defaults(
    call: ToolCall, tokens: Sequence[Token], tools: Sequence[ToolDefinition], conversation_words: Sequence[str]
) -> ToolCall:
    """The call without optional values whose default was a rival and that `spoken`, what was said, does not speak of.

    `tokens` are those of a reply with this call alone.
    """
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
    kept = {name: value for name, value in given.items() if name not in wavered}
    return replace_arguments(call, kept, ["optional value left to its default"])


def _get_default(schema: SchemaNode) -> str | None:
    """A parameter's default as it may be written: as declared, or as its description names it."""
    if "default" in schema.node:
        return str(schema.node["default"])
    named = _DEFAULT_PATTERN.search(schema.description())
    default = (named[1] or named[2]) if named else None
    return default.capitalize() if default in ("true", "false") else default


def _is_value_mentioned(name: str, value: Any, schema: SchemaNode, conversation_words: Sequence[str]) -> bool:
    """Whether the request may say a value, or a word of the parameter's name where that is a flag or a choice.

    A number may be meant by any that was spoken of, a text by one in another script.
    """
    if type(value) in (int, float):
        return bool(
            _AMOUNT_WORDS.intersection(conversation_words)
            or extract_numbers(conversation_words)
            or matches_described_code(value, schema.description(), conversation_words)
        )
    said = get_word_overlap(value, conversation_words) if isinstance(value, str) else 0.0
    return said is None or bool(said or get_word_overlap(get_flag_subject(name), conversation_words))


def _iter_value_tokens(tokens: Sequence[Token]) -> Iterator[tuple[str, str, Token]]:
    """Each argument's name, and the token that its value begins in, with what stands of that before the value.

    A name that seems to be given twice may stand within a text: nothing is known of it.
    """
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
    """Whether the default might have stood where the value begins, `before` being what the token has in front of it."""
    for word, logprob in token.alternatives:
        meant = word.removeprefix(token_prefix).rstrip("'\"), \n") if word.startswith(token_prefix) else ""
        if logprob > _MIN_RIVAL_LOGPROB and meant and default.startswith(meant) and not value.startswith(meant):
            return True
    return False
