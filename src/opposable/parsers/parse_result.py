"""What a reading gives: calls, what was refused to be one, and the parts told while a reply streams."""

from dataclasses import dataclass
from typing import Any, Literal

from opposable.domain.events import CallDelta, TextDelta, ThinkingDelta

RejectionReason = Literal["unknown_tool", "truncated", "quoted", "in_thinking", "unreadable", "invented_result"]
"""Why something that looked like a call was not promoted: a closed set.

`unknown_tool`: the tool is not offered. `truncated`: the reply ended in the middle of the arguments. `quoted`: it
stands in quotes, code, a citation or an explanation. `in_thinking`: the model was only thinking of it. `unreadable`:
its arguments cannot be read faithfully. `invented_result`: it follows a tool result that the model made up.
"""


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call the model made in its text.

    `arguments` are typed by the tool's schema. `dialect` names the wire form it was written in, and `repairs` says
    in short phrases what had to be mended to read it.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    parser: str
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RejectedCall:
    """A piece of text that looked like a call and is not one; `name` is "" where none could be read."""

    text: str
    name: str
    reason: RejectionReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ParseResult:
    """A whole reply, read.

    `text` is what a user should see, without markup; `thinking` is the model's reasoning; `calls` are in the order
    in which they were written.
    """

    text: str
    thinking: str
    calls: tuple[ParsedCall, ...]
    rejected: tuple[RejectedCall, ...]


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A call is complete: the last part of it. `index` is the one its `CallDelta` parts had."""

    index: int
    call: ParsedCall


@dataclass(frozen=True, slots=True)
class TextWasThinking:
    """All text and calls told so far were reasoning: the model closed a thinking block that its prompt had opened.

    It never comes where the reader was told so beforehand (`Reader(tools, thinking=True)`).
    """


ParserEvent = TextDelta | ThinkingDelta | CallDelta | CallFinished | TextWasThinking
