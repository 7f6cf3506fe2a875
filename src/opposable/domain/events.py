"""Events of a run. The classes are small, since every text delta is an event."""

from dataclasses import dataclass
from typing import Literal

from opposable.domain.answers import DataAnswer
from opposable.domain.messages import Message
from opposable.domain.tools import ToolCall, ToolResult
from opposable.domain.usage import NO_USAGE, Usage

FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "incomplete"]
"""Why a model stopped writing; `incomplete` is a stream that ended without its end."""

CUT_OFF: frozenset[FinishReason] = frozenset({"length", "content_filter", "incomplete"})
"""Reasons for which a reply may be cut off: its calls are never run."""

StopReason = Literal[
    "answer",
    "no_answer",
    "repeats",
    "turns",
    "tool_calls",
    "tokens",
    "cost",
    "time",
    "length",
    "content_filter",
    "incomplete",
]
"""Why a run ended.

With the model's answer or without one, because its calls made no progress ("repeats"), at a limit, or with an answer
that was cut off (see `FinishReason`).
"""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A delta of the text for the user; `is_refusal` as in `Message`."""

    text: str
    is_refusal: bool = False


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A delta of a model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A delta of a tool call.

    `index` counts the calls of a reply from 0. Only the first delta of a call has `name` and `call_id`. `arguments`
    is the next part of the JSON text.
    """

    index: int
    call_id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a reply.

    `alternatives` are texts with their log probabilities, most likely first.
    """

    text: str
    alternatives: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's complete reply, the last item of its stream.

    Attributes:
        message: A message of role "assistant".
        tokens: The tokens, where requested and supported by the server.
    """

    message: Message
    finish: FinishReason = "stop"
    usage: Usage = NO_USAGE
    tokens: tuple[Token, ...] = ()


ModelEvent = TextDelta | ThinkingDelta | CallDelta | Reply


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The start of a run; `run_id` is unique."""

    run_id: str


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """A complete reply of the model; `turn` counts from 1."""

    turn: int
    message: Message
    finish: FinishReason
    usage: Usage


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """The start of a tool call."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolDelta:
    """A delta of a tool's output, or its progress, while it runs."""

    call: ToolCall
    text: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """The end of a tool call, successful or not."""

    call: ToolCall
    result: ToolResult


DecisionAction = Literal["execute", "replan", "switch_tool", "complete"]
"""How a run goes on."""


@dataclass(frozen=True, slots=True)
class DecisionMade:
    """The next action, and the reason.

    In a run `action` is execute, replan, switch_tool or complete. In the team that answers questions about data it
    is the next member, finish or give_up.
    """

    action: str
    reason: str


@dataclass(frozen=True, slots=True)
class DataAnswered:
    """The answer to a question about data; the end of the run follows."""

    answer: DataAnswer


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The end of a run.

    Attributes:
        text: The answer; never empty.
        messages: The messages that this run added, in order.
        cost: In the currency of the model's price, None where no price is set.
    """

    text: str
    reason: StopReason
    usage: Usage
    turns: int
    tool_calls: int
    messages: tuple[Message, ...]
    cost: float | None = None


Event = (
    RunStarted
    | TextDelta
    | ThinkingDelta
    | CallDelta
    | ModelReplied
    | ToolStarted
    | ToolDelta
    | ToolFinished
    | DecisionMade
    | DataAnswered
    | RunFinished
)
