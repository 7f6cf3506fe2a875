"""Models that behave in fixed ways, most of them badly. They know nothing but what they are told in words."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from opposable.agent.history import estimated
from opposable.domain.events import ModelPart, Reply, TextDelta
from opposable.domain.messages import Message, assistant
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions
from opposable.tools.registry import size_of

Wanted = tuple[str, dict[str, Any]]
"""A call: a tool's name and its arguments."""

Fault = Literal[
    "none",
    "stubborn",
    "deaf",
    "guessing",
    "cycling",
    "rereading",
    "loyal",
    "discouraged",
    "quoting",
    "silent",
    "forgetful",
]
"""How a model misbehaves; see the classes."""

_STOPPED = re.compile(r"Not run|Do not make it again|nothing new|没有(?:再次)?执行|不要原样重复|不会有新内容")
_FAILED = re.compile(
    r"\berror\b|\bfail|not run|do not fit|cannot|there is no |unavailable|失败|错误|没有执行|没有名为", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Move:
    """One step of a plan: the right call, wrong ones that are made in its place, and what must be told to know better.

    `cue` is a pattern: only once it stands in what the model was told in words does the model know the right call.
    `until` is a pattern of the result with which the step is done, whichever call brought it.
    """

    right: Wanted
    wrong: tuple[Wanted, ...] = ()
    cue: str = ""
    until: str = ""


class Policy:
    """A model with a plan, carried out move by move; this one makes no mistake.

    All of them heed what a tool's description, or the request, adds to its first line, and read no schema.
    """

    def __init__(self, plan: Sequence[Move], answer: str) -> None:
        self.name = type(self).__name__.lower()
        self._plan = plan
        self._answer = answer
        self._at = 0
        self._heard = self._warned = ""
        self._stops = 0
        self._tries = 0
        self._last: Wanted | None = None
        self._visible = ""

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelPart, None]:
        """The next move, or the answer."""
        said = self._said(messages, tools, options)
        read = estimated(messages) + sum(map(size_of, tools)) // 4
        yield Reply(said, "tool_calls" if said.tool_calls else "stop", Usage(read, estimated((said,)), 1))

    async def aclose(self) -> None:
        """Nothing to give back."""

    def _said(self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: ModelOptions) -> Message:
        new = _news(messages)
        self._visible = "\n".join(_whole(message) for message in messages)
        if self._last is None:
            beside = [line for message in messages for line in message.content.splitlines()[1:]]
            self._warned = "\n".join([line for tool in tools for line in tool.description.splitlines()[1:]] + beside)
        self._heard += new
        if self._last is not None:
            self._hear(new)
        if options.tool_choice == "none" or self._at >= len(self._plan):
            return assistant(self.answer(new))
        move = self._plan[self._at]
        warned = bool(move.cue) and re.search(move.cue, self._warned) is not None
        self._last = move.right if warned else self.wanted(move, new)
        self._tries += 1
        return said_as_call(self._last, self._tries)

    def _hear(self, new: str) -> None:
        """Take note of what came of the last move."""
        self._stops += bool(_STOPPED.search(new))
        move = self._plan[self._at] if self._at < len(self._plan) else None
        if move is not None and (move.until or self._last == move.right) and self.is_done(move, new):
            self._at += 1
            self._stops = 0

    def is_done(self, move: Move, new: str) -> bool:
        """Whether a step is done, by the result of its right call."""
        return bool(re.search(move.until, new)) if move.until else not _FAILED.search(new)

    def knows(self, move: Move) -> bool:
        """Whether the model was told what it needs to know for the right call."""
        return re.search(move.cue, self._heard) is not None

    def wanted(self, move: Move, new: str) -> Wanted:
        """The call to make for a move."""
        return move.right

    def answer(self, new: str) -> str:
        """The answer at the end."""
        return self._answer


class Stubborn(Policy):
    """Makes the same wrong call again until it is told to stop, `stops` times; errors alone do not reach it."""

    stops = 1

    def wanted(self, move: Move, new: str) -> Wanted:
        """The wrong call, until it was stopped and knows better."""
        if not move.wrong or (self._stops >= self.stops and self.knows(move)):
            return move.right
        return move.wrong[0]


class Deaf(Stubborn):
    """Is stubborn, and ignores the first word against it too."""

    stops = 2


class Guessing(Policy):
    """Tries one wrong call after the other, round and round, until it is told the right one."""

    def wanted(self, move: Move, new: str) -> Wanted:
        """The next guess."""
        if not move.wrong or (self._tries and self.knows(move)):
            return move.right
        return move.wrong[self._tries % len(move.wrong)]


class Cycling(Stubborn):
    """Goes round in a circle: the wrong call, something harmless, the wrong call, until it is told to stop."""

    def wanted(self, move: Move, new: str) -> Wanted:
        """The next call of the circle."""
        if not move.wrong or (self._stops and self.knows(move)):
            return move.right
        return move.wrong[self._tries % len(move.wrong)]


class Rereading(Policy):
    """Makes a call that worked again and again, until it is told that it brings nothing new."""

    def is_done(self, move: Move, new: str) -> bool:
        """The first step only when it was told so."""
        return bool(self._stops) or self._at > 0


class Loyal(Policy):
    """Keeps to a tool that fails, with ever other arguments, until another tool is named to it."""

    def wanted(self, move: Move, new: str) -> Wanted:
        """The failing tool once more."""
        if not move.wrong or (self._tries and self.knows(move)):
            return move.right
        name, arguments = move.wrong[0]
        return name, {**arguments, **{key: f"{value} {self._tries}" for key, value in arguments.items()}}


class Forgetful(Policy):
    """Tries one thing after the other, and knows what it has tried only as long as it stands in what it is sent."""

    def wanted(self, move: Move, new: str) -> Wanted:
        """The first wrong call that it does not see to have been tried."""
        untried = (wrong for wrong in move.wrong if orjson.dumps(wrong[1]).decode() not in self._visible)
        return next(untried, move.right)


class Discouraged(Policy):
    """Takes one failure for the end, and says that it cannot be done."""

    def _hear(self, new: str) -> None:
        super()._hear(new)
        if _FAILED.search(new) and self._at < len(self._plan):
            self._at = len(self._plan)
            self._answer = "It cannot be done. 无法完成。"


class Quoting(Policy):
    """Answers by quoting what the last result said, whatever it said."""

    def answer(self, new: str) -> str:
        """The answer, with the last result behind it."""
        return f"{self._answer} {new}"


class Silent(Policy):
    """Says nothing when it has all it needs, until it is asked once more."""

    def answer(self, new: str) -> str:
        """Nothing, the first time."""
        self._tries = -1 if self._tries >= 0 else self._tries - 1
        return "" if self._tries == -1 else self._answer


class Written:
    """A model around a policy that writes its calls as text, as many models do."""

    def __init__(self, inner: Policy) -> None:
        self.name = f"{inner.name}, as text"
        self._inner = inner

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelPart, None]:
        """What the policy says, as text alone."""
        async for part in self._inner.stream(messages, tools, options):
            if isinstance(part, Reply):
                calls = "\n".join(_as_text(call) for call in part.message.tool_calls)
                part = Reply(assistant(part.message.content or calls), "stop", part.usage)
                if options.stream:
                    yield TextDelta(part.message.content)
            yield part

    async def aclose(self) -> None:
        """Nothing to give back."""


POLICIES: Mapping[Fault, type[Policy]] = {
    "none": Policy,
    "stubborn": Stubborn,
    "deaf": Deaf,
    "guessing": Guessing,
    "cycling": Cycling,
    "rereading": Rereading,
    "loyal": Loyal,
    "discouraged": Discouraged,
    "quoting": Quoting,
    "silent": Silent,
    "forgetful": Forgetful,
}


def said_as_call(wanted: Wanted, number: int) -> Message:
    """A reply that wants one call."""
    name, arguments = wanted
    return assistant("", (ToolCall(f"call_{number}", name, orjson.dumps(arguments).decode()),))


def _as_text(call: ToolCall) -> str:
    return f'<tool_call>{{"name": "{call.name}", "arguments": {call.arguments}}}</tool_call>'


def _whole(message: Message) -> str:
    return "\n".join((message.content, *(call.arguments for call in message.tool_calls)))


def _news(messages: Sequence[Message]) -> str:
    """What was said since the model last spoke."""
    said: list[str] = []
    for message in reversed(messages):
        if message.role == "assistant":
            break
        if message.role != "system":
            said.append(message.content)
    return "\n".join(reversed(said))
