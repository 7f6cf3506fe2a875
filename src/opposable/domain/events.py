"""What happens in a run, told as it happens. Frozen and light: one is made for every piece of text."""

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

StopReason = Literal["answer", "turns", "tool_calls", "tokens", "cost", "time"]
"""Why a run ended: with the model's answer, or at the limit named."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the text a user should see."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of a reasoning model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A piece of a call being written: `index` counts the calls of a reply from 0.

    `name` and `call_id` come with the first piece of a call and are empty after that; `arguments` is the next piece
    of its JSON text.
    """

    index: int
    call_id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a reply, and what else could have stood there: words with their log-probabilities, likeliest first."""

    text: str
    alternatives: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's whole reply: the last thing its stream yields.

    `message` has role "assistant"; `tokens` are there where they were asked for and the server gives them. `waiting`
    are calls that the model wrote too and that need what those of the message bring: with the arguments that are known. `held`
    are calls it wrote that were not taken for meant, so that it answered.
    """

    message: Message
    finish: FinishReason = "stop"
    usage: Usage = NO_USAGE
    tokens: tuple[Token, ...] = ()
    deferred_calls: tuple[ToolCall, ...] = ()
    withheld_calls: tuple[ToolCall, ...] = ()


ModelEvent = TextDelta | ThinkingDelta | CallDelta | Reply


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins. `run_id` is unique."""

    run_id: str


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """The model finished one reply; `turn` counts from 1."""

    turn: int
    message: Message
    finish: FinishReason
    usage: Usage


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call is about to be made."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolDelta:
    """A piece of what a streamable tool brings, or a word on how far it has come, while it runs."""

    call: ToolCall
    text: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A call ended, well or not; sent the moment that call ends."""

    call: ToolCall
    result: ToolResult


DecisionAction = Literal["execute", "replan", "switch_tool", "complete"]
"""How a run goes on."""


@dataclass(frozen=True, slots=True)
class DecisionMade:
    """What is done next, and why.

    In a run `action` is execute, replan, switch_tool or complete; in the team that answers questions about data it is
    the member whose turn it is, finish, or give_up.
    """

    action: str
    reason: str


@dataclass(frozen=True, slots=True)
class DataAnswered:
    """A question about data was answered; the run's end follows."""

    answer: DataAnswer


@dataclass(frozen=True, slots=True)
class RunFinished:
    """A run ended. `text` is its answer and never empty; `messages` are those this run added, in order.

    `cost` is in the currency of the limits' price, None where there is none.
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
