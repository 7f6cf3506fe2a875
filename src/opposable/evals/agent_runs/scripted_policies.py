"""Models that behave in fixed ways, most of them badly. They know nothing but what they are told in words."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from opposable.agent.history import estimate_tokens
from opposable.domain.events import ModelEvent, Reply, TextDelta
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions
from opposable.tools.registry import count_definition_bytes

PlannedCall = tuple[str, dict[str, Any]]
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

_STOP_PATTERN = re.compile(r"Not run|Do not make it again|nothing new|没有(?:再次)?执行|不要原样重复|不会有新内容")
_FAILURE_PATTERN = re.compile(
    r"\berror\b|\bfail|not run|do not fit|cannot|there is no |unavailable|失败|错误|没有执行|没有名为", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """One step of a plan: the right call, wrong ones that are made in its place, and what must be told to know better.

    `cue` is a pattern: only once it stands in what the model was told in words does the model know the right call.
    `until` is a pattern of the result with which the step is done, whichever call brought it.
    """

    right_call: PlannedCall
    wrong_calls: tuple[PlannedCall, ...] = ()
    cue_pattern: str = ""
    done_pattern: str = ""


class ScriptedPolicy:
    """A model with a plan, carried out move by move; this one makes no mistake.

    All of them heed what a tool's description, or the request, adds to its first line, and read no schema.
    """

    def __init__(self, plan: Sequence[PlannedMove], answer: str) -> None:
        self.name = type(self).__name__.removesuffix("Policy").lower()
        self._plan = plan
        self._answer = answer
        self._move_index = 0
        self._received_text = self._initial_text = ""
        self._stop_count = 0
        self._attempt_count = 0
        self._last_call: PlannedCall | None = None
        self._visible_text = ""

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """The next move, or the answer."""
        said = self._build_message(messages, tools, options)
        read = estimate_tokens(messages) + sum(map(count_definition_bytes, tools)) // 4
        yield Reply(said, "tool_calls" if said.tool_calls else "stop", Usage(read, estimate_tokens((said,)), 1))

    async def aclose(self) -> None:
        """Nothing to give back."""

    def _build_message(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: ModelOptions
    ) -> Message:
        new = _get_new_text(messages)
        self._visible_text = "\n".join(_get_message_text(message) for message in messages)
        if self._last_call is None:
            beside = [line for message in messages for line in message.content.splitlines()[1:]]
            self._initial_text = "\n".join(
                [line for tool in tools for line in tool.description.splitlines()[1:]] + beside
            )
        self._received_text += new
        if self._last_call is not None:
            self._observe_result(new)
        if options.tool_choice == "none" or self._move_index >= len(self._plan):
            return assistant_message(self.get_answer(new))
        move = self._plan[self._move_index]
        warned = bool(move.cue_pattern) and re.search(move.cue_pattern, self._initial_text) is not None
        self._last_call = move.right_call if warned else self.choose_call(move, new)
        self._attempt_count += 1
        return make_call_message(self._last_call, self._attempt_count)

    def _observe_result(self, new_text: str) -> None:
        """Take note of what came of the last move."""
        self._stop_count += bool(_STOP_PATTERN.search(new_text))
        move = self._plan[self._move_index] if self._move_index < len(self._plan) else None
        if (
            move is not None
            and (move.done_pattern or self._last_call == move.right_call)
            and self.is_done(move, new_text)
        ):
            self._move_index += 1
            self._stop_count = 0

    def is_done(self, move: PlannedMove, new_text: str) -> bool:
        """Whether a step is done, by the result of its right call."""
        return (
            bool(re.search(move.done_pattern, new_text)) if move.done_pattern else not _FAILURE_PATTERN.search(new_text)
        )

    def knows_right_call(self, move: PlannedMove) -> bool:
        """Whether the model was told what it needs to know for the right call."""
        return re.search(move.cue_pattern, self._received_text) is not None

    def choose_call(self, move: PlannedMove, new_text: str) -> PlannedCall:
        """The call to make for a move."""
        return move.right_call

    def get_answer(self, new_text: str) -> str:
        """The answer at the end."""
        return self._answer


class StubbornPolicy(ScriptedPolicy):
    """Makes the same wrong call again until it is told to stop, `stops` times; errors alone do not reach it."""

    required_stop_count = 1

    def choose_call(self, move: PlannedMove, new_text: str) -> PlannedCall:
        """The wrong call, until it was stopped and knows better."""
        if not move.wrong_calls or (self._stop_count >= self.required_stop_count and self.knows_right_call(move)):
            return move.right_call
        return move.wrong_calls[0]


class DeafPolicy(StubbornPolicy):
    """Is stubborn, and ignores the first word against it too."""

    required_stop_count = 2


class GuessingPolicy(ScriptedPolicy):
    """Tries one wrong call after the other, round and round, until it is told the right one."""

    def choose_call(self, move: PlannedMove, new_text: str) -> PlannedCall:
        """The next guess."""
        if not move.wrong_calls or (self._attempt_count and self.knows_right_call(move)):
            return move.right_call
        return move.wrong_calls[self._attempt_count % len(move.wrong_calls)]


class CyclingPolicy(StubbornPolicy):
    """Goes round in a circle: the wrong call, something harmless, the wrong call, until it is told to stop."""

    def choose_call(self, move: PlannedMove, new_text: str) -> PlannedCall:
        """The next call of the circle."""
        if not move.wrong_calls or (self._stop_count and self.knows_right_call(move)):
            return move.right_call
        return move.wrong_calls[self._attempt_count % len(move.wrong_calls)]


class RereadingPolicy(ScriptedPolicy):
    """Makes a call that worked again and again, until it is told that it brings nothing new."""

    def is_done(self, move: PlannedMove, new_text: str) -> bool:
        """The first step only when it was told so."""
        return bool(self._stop_count) or self._move_index > 0


class LoyalPolicy(ScriptedPolicy):
    """Keeps to a tool that fails, with ever other arguments, until another tool is named to it."""

    def choose_call(self, move: PlannedMove, new_text: str) -> PlannedCall:
        """The failing tool once more."""
        if not move.wrong_calls or (self._attempt_count and self.knows_right_call(move)):
            return move.right_call
        name, arguments = move.wrong_calls[0]
        return name, {**arguments, **{key: f"{value} {self._attempt_count}" for key, value in arguments.items()}}


class ForgetfulPolicy(ScriptedPolicy):
    """Tries one thing after the other, and knows what it has tried only as long as it stands in what it is sent."""

    def choose_call(self, move: PlannedMove, new_text: str) -> PlannedCall:
        """The first wrong call that it does not see to have been tried."""
        untried = (wrong for wrong in move.wrong_calls if orjson.dumps(wrong[1]).decode() not in self._visible_text)
        return next(untried, move.right_call)


class DiscouragedPolicy(ScriptedPolicy):
    """Takes one failure for the end, and says that it cannot be done."""

    def _observe_result(self, new_text: str) -> None:
        super()._observe_result(new_text)
        if _FAILURE_PATTERN.search(new_text) and self._move_index < len(self._plan):
            self._move_index = len(self._plan)
            self._answer = "It cannot be done. 无法完成。"


class QuotingPolicy(ScriptedPolicy):
    """Answers by quoting what the last result said, whatever it said."""

    def get_answer(self, new_text: str) -> str:
        """The answer, with the last result behind it."""
        return f"{self._answer} {new_text}"


class SilentPolicy(ScriptedPolicy):
    """Says nothing when it has all it needs, until it is asked once more."""

    def get_answer(self, new_text: str) -> str:
        """Nothing, the first time."""
        self._attempt_count = -1 if self._attempt_count >= 0 else self._attempt_count - 1
        return "" if self._attempt_count == -1 else self._answer


class TextCallingModel:
    """A model around a policy that writes its calls as text, as many models do."""

    def __init__(self, policy: ScriptedPolicy) -> None:
        self.name = f"{policy.name}, as text"
        self._policy = policy

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """What the policy says, as text alone."""
        async for part in self._policy.stream(messages, tools, options):
            if isinstance(part, Reply):
                calls = "\n".join(_format_call_as_text(call) for call in part.message.tool_calls)
                part = Reply(assistant_message(part.message.content or calls), "stop", part.usage)
                if options.stream:
                    yield TextDelta(part.message.content)
            yield part

    async def aclose(self) -> None:
        """Nothing to give back."""


POLICIES: Mapping[Fault, type[ScriptedPolicy]] = {
    "none": ScriptedPolicy,
    "stubborn": StubbornPolicy,
    "deaf": DeafPolicy,
    "guessing": GuessingPolicy,
    "cycling": CyclingPolicy,
    "rereading": RereadingPolicy,
    "loyal": LoyalPolicy,
    "discouraged": DiscouragedPolicy,
    "quoting": QuotingPolicy,
    "silent": SilentPolicy,
    "forgetful": ForgetfulPolicy,
}


def make_call_message(planned_call: PlannedCall, number: int) -> Message:
    """A reply that wants one call."""
    name, arguments = planned_call
    return assistant_message("", (ToolCall(f"call_{number}", name, orjson.dumps(arguments).decode()),))


def _format_call_as_text(call: ToolCall) -> str:
    return f'<tool_call>{{"name": "{call.name}", "arguments": {call.arguments}}}</tool_call>'


def _get_message_text(message: Message) -> str:
    return "\n".join((message.content, *(call.arguments for call in message.tool_calls)))


def _get_new_text(messages: Sequence[Message]) -> str:
    """What was said since the model last spoke."""
    said: list[str] = []
    for message in reversed(messages):
        if message.role == "assistant":
            break
        if message.role != "system":
            said.append(message.content)
    return "\n".join(reversed(said))
