"""Scripted models that follow a plan and misbehave in fixed ways; they know only the text they receive."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence

import orjson

from opposable.agent.history import estimate_tokens
from opposable.domain.events import ModelEvent, Reply
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import Usage
from opposable.evals.agent_runs.scenario import Fault, PlannedCall, PlannedMove
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions
from opposable.tools.registry import count_definition_bytes

_STOP_PATTERN = re.compile(r"Not run|Do not make it again|nothing new|没有(?:再次)?执行|不要原样重复|不会有新内容")
_FAILURE_PATTERN = re.compile(
    r"\berror\b|\bfail|not run|do not fit|cannot|there is no |unavailable|失败|错误|没有执行|没有名为", re.IGNORECASE
)


class ScriptedPolicy:
    """A model that carries out a plan move by move; this base class makes no mistake.

    Every policy reads what a tool description or the request adds after its first line. No policy reads schemas.
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
        """Yield one reply: the next call, or the final answer."""
        message = self._build_message(messages, tools, options)
        prompt_tokens = estimate_tokens(messages) + sum(map(count_definition_bytes, tools)) // 4
        usage = Usage(prompt_tokens, estimate_tokens((message,)), 1)
        yield Reply(message, "tool_calls" if message.tool_calls else "stop", usage)

    async def aclose(self) -> None:
        """Do nothing: no resource is open."""

    def _build_message(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: ModelOptions
    ) -> Message:
        new_text = _get_new_text(messages)
        self._visible_text = "\n".join(_get_message_text(message) for message in messages)
        if self._last_call is None:
            descriptions = [line for tool in tools for line in tool.description.splitlines()[1:]]
            request_notes = [line for message in messages for line in message.content.splitlines()[1:]]
            self._initial_text = "\n".join(descriptions + request_notes)
        self._received_text += new_text
        if self._last_call is not None:
            self._observe_result(new_text)
        if options.tool_choice == "none" or self._move_index >= len(self._plan):
            return assistant_message(self.get_answer(new_text))
        move = self._plan[self._move_index]
        was_warned = bool(move.cue_pattern) and re.search(move.cue_pattern, self._initial_text) is not None
        self._last_call = move.right_call if was_warned else self.choose_call(move, new_text)
        self._attempt_count += 1
        return make_call_message(self._last_call, self._attempt_count)

    def _observe_result(self, new_text: str) -> None:
        """Advance the plan when the last result completes the current move."""
        self._stop_count += bool(_STOP_PATTERN.search(new_text))
        if self._move_index >= len(self._plan):
            return
        move = self._plan[self._move_index]
        if (move.done_pattern or self._last_call == move.right_call) and self.is_done(move, new_text):
            self._move_index += 1
            self._stop_count = 0

    def is_done(self, move: PlannedMove, new_text: str) -> bool:
        """Return whether the result in `new_text` completes the move."""
        if move.done_pattern:
            return bool(re.search(move.done_pattern, new_text))
        return not _FAILURE_PATTERN.search(new_text)

    def knows_right_call(self, move: PlannedMove) -> bool:
        """Return whether the received text contains the cue of the move."""
        return re.search(move.cue_pattern, self._received_text) is not None

    def choose_call(self, move: PlannedMove, new_text: str) -> PlannedCall:
        """Return the call to make for a move."""
        return move.right_call

    def get_answer(self, new_text: str) -> str:
        """Return the final answer."""
        return self._answer


class StubbornPolicy(ScriptedPolicy):
    """Repeats a wrong call until it was stopped `required_stop_count` times; errors alone do not change it."""

    required_stop_count = 1

    def choose_call(self, move: PlannedMove, new_text: str) -> PlannedCall:
        """Return the wrong call until the policy was stopped and knows the right one."""
        if not move.wrong_calls or (self._stop_count >= self.required_stop_count and self.knows_right_call(move)):
            return move.right_call
        return move.wrong_calls[0]


class DeafPolicy(StubbornPolicy):
    """Is stubborn and also ignores the first stop."""

    required_stop_count = 2


class GuessingPolicy(ScriptedPolicy):
    """Tries the wrong calls in turn until it receives the cue of the right one."""

    def choose_call(self, move: PlannedMove, new_text: str) -> PlannedCall:
        """Return the next guess."""
        if not move.wrong_calls or (self._attempt_count and self.knows_right_call(move)):
            return move.right_call
        return move.wrong_calls[self._attempt_count % len(move.wrong_calls)]


class CyclingPolicy(StubbornPolicy):
    """Repeats a cycle of calls, harmless ones included, until it is stopped."""

    def choose_call(self, move: PlannedMove, new_text: str) -> PlannedCall:
        """Return the next call of the cycle."""
        if not move.wrong_calls or (self._stop_count and self.knows_right_call(move)):
            return move.right_call
        return move.wrong_calls[self._attempt_count % len(move.wrong_calls)]


class RereadingPolicy(ScriptedPolicy):
    """Repeats a call that succeeded until it is stopped because the result is not new."""

    def is_done(self, move: PlannedMove, new_text: str) -> bool:
        """Return whether the first move was stopped; every later move is done at once."""
        return bool(self._stop_count) or self._move_index > 0


class LoyalPolicy(ScriptedPolicy):
    """Calls a failing tool again with changed arguments until the text names another tool."""

    def choose_call(self, move: PlannedMove, new_text: str) -> PlannedCall:
        """Return another call of the failing tool."""
        if not move.wrong_calls or (self._attempt_count and self.knows_right_call(move)):
            return move.right_call
        name, arguments = move.wrong_calls[0]
        return name, {**arguments, **{key: f"{value} {self._attempt_count}" for key, value in arguments.items()}}


class ForgetfulPolicy(ScriptedPolicy):
    """Tries calls in turn and forgets those that are no longer in the request's messages."""

    def choose_call(self, move: PlannedMove, new_text: str) -> PlannedCall:
        """Return the first wrong call that the messages do not show."""
        untried_calls = (call for call in move.wrong_calls if orjson.dumps(call[1]).decode() not in self._visible_text)
        return next(untried_calls, move.right_call)


class DiscouragedPolicy(ScriptedPolicy):
    """Gives up after the first failure."""

    def _observe_result(self, new_text: str) -> None:
        super()._observe_result(new_text)
        if _FAILURE_PATTERN.search(new_text) and self._move_index < len(self._plan):
            self._move_index = len(self._plan)
            self._answer = "It cannot be done. 无法完成。"


class QuotingPolicy(ScriptedPolicy):
    """Quotes the last result in its answer, whatever the result contains."""

    def get_answer(self, new_text: str) -> str:
        """Return the answer followed by the last result."""
        return f"{self._answer} {new_text}"


class SilentPolicy(ScriptedPolicy):
    """Returns an empty answer until it is asked again."""

    def get_answer(self, new_text: str) -> str:
        """Return "" the first time, then the answer."""
        self._attempt_count = -1 if self._attempt_count >= 0 else self._attempt_count - 1
        return "" if self._attempt_count == -1 else self._answer


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
    """Return an assistant message with one tool call."""
    name, arguments = planned_call
    return assistant_message("", (ToolCall(f"call_{number}", name, arguments),))


def _get_message_text(message: Message) -> str:
    return "\n".join((message.content, *(call.arguments_json for call in message.tool_calls)))


def _get_new_text(messages: Sequence[Message]) -> str:
    """Return the text of the messages after the last assistant message."""
    contents: list[str] = []
    for message in reversed(messages):
        if message.role == "assistant":
            break
        if message.role != "system":
            contents.append(message.content)
    return "\n".join(reversed(contents))
