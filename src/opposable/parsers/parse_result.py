"""The output of the parsers: parsed calls, rejected calls and streaming events."""

from dataclasses import dataclass
from typing import Literal

from opposable.domain.events import CallDelta, TextDelta, ThinkingDelta
from opposable.domain.tools import ToolCall

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
        calls: The calls of available tools, in the order in which they were written. The arguments have the types of the
            tool's schema. The `dialect` is the format that a call was written in, such as "hermes" or "pythonic".
        rejected: The texts that looked like calls but were rejected.
    """

    text: str
    thinking: str
    calls: tuple[ToolCall, ...]
    rejected: tuple[RejectedCall, ...]


@dataclass(frozen=True, slots=True)
class CallFinished:
    """The last event of a call; `index` matches the `index` of its `CallDelta` events."""

    index: int
    call: ToolCall


@dataclass(frozen=True, slots=True)
class TextWasThinking:
    """All text and calls emitted so far were reasoning.

    Emitted if the model closes a thinking block that the prompt had opened. A parser created with `thinking=True` never
    emits it.
    """


ParserEvent = TextDelta | ThinkingDelta | CallDelta | CallFinished | TextWasThinking
