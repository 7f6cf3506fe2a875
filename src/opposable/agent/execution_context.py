"""The execution context of a run: what was tried, what came of it, what is known; and a short block that tells it."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from opposable.agent.history import tokens_in
from opposable.domain.language import Language
from opposable.domain.tools import ToolCall, ToolResult
from opposable.parsers import defuse

OBSERVATIONS = 10
"""Observations that are kept, the last ones."""
OBSERVED = 2
"""Observations told again where earlier messages are left out."""
REASONS = 2
"""Failures whose reasons are told, the last ones; of those before only the calls."""
_LINES = 10
"""Failures in the block at most: what is known of the tools, and what they brought, is to fit too."""
_LINE = 160
"""Characters of a call or of a sentence in the block."""

_BEGINNING = re.compile(r"\W*(?:State of this task\W|任务状态\W+共)")
"""How the block begins, as a model may write it."""

Key = tuple[str, str]
"""A call as it was written: its tool's name and its arguments."""


@dataclass(frozen=True, slots=True)
class Step:
    """A call as it ended."""

    turn: int
    call: ToolCall
    result: ToolResult


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call that failed, with the last reason; `times` counts how often it was wanted.

    It is `over` when the same tool has worked since.
    """

    call: ToolCall
    reason: str
    times: int = 1
    over: bool = False


@dataclass(slots=True)
class ExecutionContext:
    """What a run has been through. To add a step costs the same however many there are.

    `plan` is what the model said it would do, `observations` what its last calls brought, oldest first, `worked` how
    many of the steps did, `known` what earlier runs warn of, by the names of tools that failed.
    """

    task: str
    plan: str = ""
    steps: list[Step] = field(default_factory=list)
    observations: deque[str] = field(default_factory=lambda: deque(maxlen=OBSERVATIONS))
    worked: int = 0
    known: dict[str, str] = field(default_factory=dict)
    tally: dict[str, int] = field(default_factory=dict)
    _failed: dict[Key, Attempt] = field(default_factory=dict)
    _standing: dict[Key, None] = field(default_factory=dict)  # what failed and is not over
    _of_tool: dict[str, list[Key]] = field(default_factory=dict)  # the same, by tool

    @property
    def failed(self) -> tuple[Attempt, ...]:
        """The calls that failed, each once, the last of it last."""
        return tuple(self._failed.values())

    @property
    def standing(self) -> int:
        """How many calls failed that are not over."""
        return len(self._standing)

    def attempts(self, *, over: bool) -> Iterator[Attempt]:
        """The calls that failed, the last first; those that are over only where asked for."""
        return (self._failed[key] for key in reversed(self._failed if over else self._standing))

    def shown(self) -> Iterator[str]:
        """What tools said."""
        yield from (step.result.content for step in self.steps if step.result.failure != "refused")

    def add(self, step: Step) -> None:
        """Take note of a call that ended."""
        self.steps.append(step)
        self.tally[step.call.name] = self.tally.get(step.call.name, 0) + (step.result.failure is None)
        if step.result.failure is None:
            self._add_success(step)
        else:
            self._add_failure(step)

    def _add_success(self, step: Step) -> None:
        name = step.call.name
        self.worked += 1
        self.observations.append(step.result.content)
        if not self._failed:
            return
        self._failed.pop((name, step.call.arguments), None)
        for key in self._of_tool.pop(name, ()):
            del self._standing[key]
            if key in self._failed:
                self._failed[key] = replace(self._failed[key], over=True)

    def _add_failure(self, step: Step) -> None:
        call, result = step.call, step.result
        key = (call.name, call.arguments)
        before = self._failed.pop(key, None)
        keeps = before is not None and result.failure == "refused"  # the guard's word adds nothing to the tool's own
        reason = before.reason if keeps and before else result.content
        self._failed[key] = Attempt(call, reason, 1 if before is None else before.times + 1)
        if key in self._standing:
            del self._standing[key]
        else:
            self._of_tool.setdefault(call.name, []).append(key)
        self._standing[key] = None


def block(
    context: ExecutionContext, language: Language, tokens: int, *, advice: str = "", all_of_it: bool = False
) -> str:
    """The context in a few lines of at most about `tokens` tokens; "" where it has nothing to say.

    It has when two calls have failed, or there is advice. `all_of_it` tells the plan and the last observations too, as
    where earlier messages were left out. What tools said is quoted, and its markup broken.
    """
    if not (context.standing > 1 or advice or (all_of_it and context.steps)):
        return ""
    return _fitting(_lines(context, language == "zh", advice, all_of_it), tokens)


def is_block(said: str) -> bool:
    """Whether what a model said is the block told once more."""
    return _BEGINNING.match(said) is not None


def _lines(context: ExecutionContext, chinese: bool, advice: str, all_of_it: bool) -> Iterator[str]:
    total, worked = len(context.steps), context.worked
    if chinese:
        yield f"【任务状态】共 {total} 次调用，成功 {worked} 次，失败 {total - worked} 次。"
    else:
        yield f"[State of this task: {total} calls, {worked} worked, {total - worked} failed.]"
    if advice:
        yield advice
    if all_of_it and context.plan:
        yield f"{'计划' if chinese else 'Plan'}: {_short(context.plan)}"
    names: set[str] = set()
    for n, one in enumerate(islice(context.attempts(over=all_of_it), _LINES)):
        if n == 0:
            yield "已失败，不要原样重复：" if chinese else "Failed; do not repeat as they were:"
        names.add(one.call.name)
        yield _told(one, n < REASONS)
    for name, line in context.known.items():
        if name in names:
            yield _short(line)
    if all_of_it:
        for brought in list(context.observations)[-OBSERVED:]:
            yield f"{'结果' if chinese else 'Result'}: {_short(brought)}"


def _told(one: Attempt, with_reason: bool) -> str:
    times = f" ({one.times}×)" if one.times > 1 else ""
    reason = f": {_short(one.reason)}" if with_reason else ""
    return f"- {one.call.name}{_short(one.call.arguments)}{times}{reason}"


def _short(text: str) -> str:
    line = " ".join(text[: _LINE * 3].split())
    return defuse(line if len(line) <= _LINE else f"{line[:_LINE]}…")


def _fitting(lines: Iterable[str], tokens: int) -> str:
    """The lines that fit, the first one always."""
    kept: list[str] = []
    for line in lines:
        tokens -= tokens_in(line) + 1
        if kept and tokens < 0:
            break
        kept.append(line)
    return "\n".join(kept)
