"""The execution context of a run: what was tried, what came of it, what is known; and a short block that tells it."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from opposable.agent.history import estimate_text_tokens
from opposable.agent.policy import Step
from opposable.domain.language import Language
from opposable.domain.tools import ToolCall
from opposable.parsers import escape_special_tokens

MAX_OBSERVATIONS = 10
"""Observations that are kept, the last ones."""
MAX_OBSERVATIONS_SHOWN = 2
"""Observations told again where earlier messages are left out."""
MAX_REASONS_SHOWN = 2
"""Failures whose reasons are told, the last ones; of those before only the calls."""
_MAX_FAILURES_SHOWN = 10
"""Failures in the block at most: what is known of the tools, and what they brought, is to fit too."""
_MAX_LINE_CHARACTERS = 160
"""Characters of a call or of a sentence in the block."""

_STATUS_NOTE_START = re.compile(r"\W*(?:State of this task\W|任务状态\W+共)")
"""How the block begins, as a model may write it."""

AttemptKey = tuple[str, str]
"""A call as it was written: its tool's name and its arguments."""


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A call that failed, with the last reason; `times` counts how often it was wanted.

    It is `over` when the same tool has worked since.
    """

    call: ToolCall
    reason: str
    count: int = 1
    is_resolved: bool = False


@dataclass(slots=True)
class ExecutionContext:
    """What a run has been through. To add a step costs the same however many there are.

    `plan` is what the model said it would do, `observations` what its last calls brought, oldest first, `worked` how
    many of the steps did, `known` what earlier runs warn of, by the names of tools that failed.
    """

    task: str
    plan: str = ""
    steps: list[Step] = field(default_factory=list)
    observations: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_OBSERVATIONS))
    success_count: int = 0
    known_warnings: dict[str, str] = field(default_factory=dict)
    successes_by_tool: dict[str, int] = field(default_factory=dict)
    _failed_attempts: dict[AttemptKey, FailedAttempt] = field(default_factory=dict)
    _unresolved: dict[AttemptKey, None] = field(default_factory=dict)  # what failed and is not over
    _unresolved_by_tool: dict[str, list[AttemptKey]] = field(default_factory=dict)  # the same, by tool

    @property
    def failed_attempts(self) -> tuple[FailedAttempt, ...]:
        """The calls that failed, each once, the last of it last."""
        return tuple(self._failed_attempts.values())

    @property
    def unresolved_count(self) -> int:
        """How many calls failed that are not over."""
        return len(self._unresolved)

    def iter_attempts(self, *, include_resolved: bool) -> Iterator[FailedAttempt]:
        """The calls that failed, the last first; those that are over only where asked for."""
        return (
            self._failed_attempts[key]
            for key in reversed(self._failed_attempts if include_resolved else self._unresolved)
        )

    def iter_tool_outputs(self) -> Iterator[str]:
        """What tools said."""
        yield from (step.result.content for step in self.steps if step.result.failure != "refused")

    def add_step(self, step: Step) -> None:
        """Take note of a call that ended."""
        self.steps.append(step)
        self.successes_by_tool[step.call.name] = self.successes_by_tool.get(step.call.name, 0) + (
            step.result.failure is None
        )
        if step.result.failure is None:
            self._add_success(step)
        else:
            self._add_failure(step)

    def _add_success(self, step: Step) -> None:
        name = step.call.name
        self.success_count += 1
        self.observations.append(step.result.content)
        if not self._failed_attempts:
            return
        self._failed_attempts.pop((name, step.call.arguments_json), None)
        for key in self._unresolved_by_tool.pop(name, ()):
            del self._unresolved[key]
            if key in self._failed_attempts:
                self._failed_attempts[key] = replace(self._failed_attempts[key], is_resolved=True)

    def _add_failure(self, step: Step) -> None:
        call, result = step.call, step.result
        key = (call.name, call.arguments_json)
        before = self._failed_attempts.pop(key, None)
        keeps = before is not None and result.failure == "refused"  # the guard's word adds nothing to the tool's own
        reason = before.reason if keeps and before else result.content
        self._failed_attempts[key] = FailedAttempt(call, reason, 1 if before is None else before.count + 1)
        if key in self._unresolved:
            del self._unresolved[key]
        else:
            self._unresolved_by_tool.setdefault(call.name, []).append(key)
        self._unresolved[key] = None


def format_status_note(
    context: ExecutionContext, language: Language, max_tokens: int, *, advice: str = "", include_all: bool = False
) -> str:
    """The context in a few lines of at most about `tokens` tokens; "" where it has nothing to say.

    It has when two calls have failed, or there is advice. `all_of_it` tells the plan and the last observations too, as
    where earlier messages were left out. What tools said is quoted, and its markup broken.
    """
    if not (context.unresolved_count > 1 or advice or (include_all and context.steps)):
        return ""
    return _fit_lines(_iter_status_lines(context, language == "zh", advice, include_all), max_tokens)


def is_status_note(text: str) -> bool:
    """Whether what a model said is the block told once more."""
    return _STATUS_NOTE_START.match(text) is not None


def _iter_status_lines(context: ExecutionContext, is_chinese: bool, advice: str, include_all: bool) -> Iterator[str]:
    total, worked = len(context.steps), context.success_count
    if is_chinese:
        yield f"【任务状态】共 {total} 次调用，成功 {worked} 次，失败 {total - worked} 次。"
    else:
        yield f"[State of this task: {total} calls, {worked} worked, {total - worked} failed.]"
    if advice:
        yield advice
    if include_all and context.plan:
        yield f"{'计划' if is_chinese else 'Plan'}: {_truncate_line(context.plan)}"
    names: set[str] = set()
    for n, one in enumerate(islice(context.iter_attempts(include_resolved=include_all), _MAX_FAILURES_SHOWN)):
        if n == 0:
            yield "已失败，不要原样重复：" if is_chinese else "Failed; do not repeat as they were:"
        names.add(one.call.name)
        yield _format_attempt(one, n < MAX_REASONS_SHOWN)
    for name, line in context.known_warnings.items():
        if name in names:
            yield _truncate_line(line)
    if include_all:
        for brought in list(context.observations)[-MAX_OBSERVATIONS_SHOWN:]:
            yield f"{'结果' if is_chinese else 'Result'}: {_truncate_line(brought)}"


def _format_attempt(attempt: FailedAttempt, with_reason: bool) -> str:
    times = f" ({attempt.count}×)" if attempt.count > 1 else ""
    reason = f": {_truncate_line(attempt.reason)}" if with_reason else ""
    return f"- {attempt.call.name}{_truncate_line(attempt.call.arguments_json)}{times}{reason}"


def _truncate_line(text: str) -> str:
    line = " ".join(text[: _MAX_LINE_CHARACTERS * 3].split())
    return escape_special_tokens(line if len(line) <= _MAX_LINE_CHARACTERS else f"{line[:_MAX_LINE_CHARACTERS]}…")


def _fit_lines(lines: Iterable[str], max_tokens: int) -> str:
    """The lines that fit, the first one always."""
    kept: list[str] = []
    for line in lines:
        max_tokens -= estimate_text_tokens(line) + 1
        if kept and max_tokens < 0:
            break
        kept.append(line)
    return "\n".join(kept)
