"""The output of the parsers: parsed calls, rejected calls and streaming events."""

from dataclasses import dataclass
from typing import Any, Literal

from opposable.domain.events import CallDelta, TextDelta, ThinkingDelta

RejectionReason = Literal["unknown_tool", "truncated", "quoted", "in_thinking", "unreadable", "invented_result"]
"""Why text that looked like a call was rejected (a closed set).

`unknown_tool`: no available tool has this name.
`truncated`: the reply ended inside the arguments.
`quoted`: the call appears in quotes, code, a citation or an explanation.
`in_thinking`: the call is part of the model's reasoning.
`unreadable`: the arguments cannot be parsed without guessing.
`invented_result`: the call follows a tool result that the model made up.
"""


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A tool call parsed from the model's text.

    Attributes:
        id: The id the model gave, or a generated one.
        name: The name of an available tool.
        arguments: The arguments, coerced to the types of the tool's schema.
        parser: The format the call was written in, such as "hermes" or "pythonic".
        repairs: Short descriptions of each repair made to the text.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    parser: str
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RejectedCall:
    """Text that looked like a call but was rejected; `name` may be ""."""

    text: str
    name: str
    reason: RejectionReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ParseResult:
    """A whole parsed reply.

    Attributes:
        text: The text for the user, without call markup.
        thinking: The model's reasoning.
        calls: The calls, in the order in which they were written.
        rejected: The texts that looked like calls but were rejected.
    """

    text: str
    thinking: str
    calls: tuple[ParsedCall, ...]
    rejected: tuple[RejectedCall, ...]


@dataclass(frozen=True, slots=True)
class CallFinished:
    """The last event of a call; `index` matches the `index` of its `CallDelta` events."""

    index: int
    call: ParsedCall


@dataclass(frozen=True, slots=True)
class TextWasThinking:
    """All text and calls emitted so far were reasoning.

    Emitted if the model closes a thinking block that the prompt had opened. A parser created with `thinking=True` never
    emits it.
    """


ParserEvent = TextDelta | ThinkingDelta | CallDelta | CallFinished | TextWasThinking
