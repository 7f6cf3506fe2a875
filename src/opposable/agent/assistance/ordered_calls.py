"""Rule: make the calls of several tools one tool at a time, each written with the results before it."""

import re
from collections.abc import Sequence

from opposable.agent.assistance import prompts
from opposable.agent.assistance.rule import AssistanceRule, AssistedRun
from opposable.agent.failure_fingerprints import format_arguments
from opposable.agent.policy import Directive, Step
from opposable.domain.messages import Message
from opposable.domain.tools import ToolCall, ToolDefinition

CODE_PATTERN = re.compile(r"(?=.*[\d._@/])[\w.@/:-]+", re.ASCII)
"""A code, an address, or the name of a file."""
MAX_WAITS = 10
"""Calls of one run that are planned again because they were made too early."""


class OrderedCalls(AssistanceRule):
    """Make the first tool's calls of a reply, and request those of its other tools once their turn has come.

    Small models write calls that depend on each other in one reply, with invented values in the later ones. The reply
    is their plan: each further tool is requested with the results before it, for as many calls as were planned, so no
    call is added. A call that changes something is never forced: the results may speak against it. A planned call is
    made as it is if the new one lacks a code that the user said; a model that answers in its place is asked once. While
    a call is failed, the plan waits. A call that fails right after a polled tool was made too early, and is planned again.
    """

    def __init__(self, run: AssistedRun) -> None:
        super().__init__(run)
        self._planned: list[ToolCall] = []
        self._polled_name, self._waits, self._is_requested = "", MAX_WAITS, False

    def extend_definitions(self, definitions: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
        """Offer the planned tool when it is requested, and the tool just called if its spec says that it is polled."""
        if not self._is_requested:
            return definitions
        names = {self._planned[0].name, self._polled_name}
        return tuple(tool for tool in definitions if tool.name in names) or definitions

    def select_calls(self, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
        """Return the calls of the first tool, and plan those of the others."""
        planned_count, count = _count_first(self._planned), _count_first(calls)
        if count < len(calls) and not self._is_requested:
            self._planned = list(calls[count:])
        elif calls and self._planned and calls[0].name == self._planned[0].name:
            planned, self._planned = self._planned[:planned_count], self._planned[planned_count:]
            calls = self._choose(planned, calls[: min(count, planned_count)]) if self._is_requested else calls
        else:  # calls that are made before their turn
            self._planned = _remove_equal_calls(self._planned, calls[:count])
        self._is_requested = False
        return calls[:count]

    async def after_turn(self, steps: Sequence[Step]) -> Directive | None:
        """Request the next planned tool if no call of the turn failed, or if the failed one was made too early."""
        run, (before, last) = self.run, ["", *(step.call.name for step in self.run.steps)][-2:]
        failures = {step.result.failure for step in run.turn_steps} - {None}
        is_wrong = failures in ({"failed"}, {"refused"})
        if is_wrong and self._waits and run.is_polled(before) and not run.is_polled(last):  # it was too early
            self._waits -= 1
            self._planned = [run.steps[-1].call, *self._planned]
            last, failures = before, set()
        self._polled_name = last if run.is_polled(last) else ""
        self._is_requested = bool(self._planned) and not failures
        if self._is_requested and run.is_read_only(self._planned[0].name):
            run.next_tool_choice = "required"
        return None

    def before_answer(self, reply: Message, steps: Sequence[Step]) -> Directive | None:
        """Name the planned calls to a model that answers in their place, once."""
        if not self._planned or any(step.result.failure for step in self.run.turn_steps):
            return None
        calls = [f"{call.name}({format_arguments(call.arguments.items())})" for call in self._planned]
        self._planned = []
        text = prompts.PLANNED_CALLS.format(calls="; ".join(calls))
        return Directive("replan", text, text)

    def _choose(self, planned: Sequence[ToolCall], written: Sequence[ToolCall]) -> list[ToolCall]:
        """Return the written calls; one that was not planned may be replaced by a planned one that was not written."""
        unwritten, unplanned = iter(_remove_equal_calls(planned, written)), _remove_equal_calls(written, planned)
        return [self._choose_one(next(unwritten, one), one) if one in unplanned else one for one in written]

    def _choose_one(self, planned: ToolCall, written: ToolCall) -> ToolCall:
        """Return the planned call if the written one lacks a code that the user said, and has no other one in its place."""
        used = {str(value) for step in self.run.steps for value in step.call.arguments.values()}
        texts = map(str, (*planned.arguments.values(), *written.arguments.values()))
        said = {text for text in texts if CODE_PATTERN.fullmatch(text) and text in self.run.task and text not in used}
        pairs = [(value, str(written.arguments.get(key))) for key, value in planned.arguments.items()]
        is_lost = any(isinstance(old, str) and old in said and old not in new and new not in said for old, new in pairs)
        return planned if is_lost else written


def _count_first(calls: Sequence[ToolCall]) -> int:
    """Return how many calls in a row are of the first tool."""
    return next((n for n, call in enumerate(calls) if call.name != calls[0].name), len(calls))


def _remove_equal_calls(calls: Sequence[ToolCall], others: Sequence[ToolCall]) -> list[ToolCall]:
    """Return the calls that have another tool or other arguments than all others."""
    keys = [(call.name, call.arguments) for call in others]
    return [call for call in calls if (call.name, call.arguments) not in keys]
