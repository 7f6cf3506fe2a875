"""The execution context of a run: its calls, their results and the status note."""

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
"""Results of successful calls that are stored, the latest ones."""
MAX_OBSERVATIONS_SHOWN = 2
"""Results shown in the status note when earlier messages are left out."""
MAX_REASONS_SHOWN = 2
"""Failed calls shown with their reason, the latest ones; earlier ones are shown without."""
_MAX_FAILURES_SHOWN = 10
"""Failed calls in the status note."""
_MAX_LINE_CHARACTERS = 160
"""Characters of a line of the status note."""

_STATUS_NOTE_START = re.compile(r"\W*(?:State of this task\W|任务状态\W+共)")
"""The beginning of a status note that a model copied."""

AttemptKey = tuple[str, str]
"""The name of a tool and the arguments as JSON text."""


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A failed call.

    Attributes:
        call: The call.
        reason: Why it failed the last time.
        count: How often the model requested it.
        is_resolved: Whether the tool has succeeded since.
    """

    call: ToolCall
    reason: str
    count: int = 1
    is_resolved: bool = False


@dataclass(slots=True)
class ExecutionContext:
    """The history of a run in terms of its calls. Adding a step takes constant time.

    Attributes:
        task: The request of the user.
        plan: What the model announced before its first calls.
        steps: The finished calls, oldest first.
        observations: The results of the latest successful calls, oldest first.
        success_count: Successful calls.
        known_warnings: Warnings from earlier runs, by the names of tools that failed.
        successes_by_tool: Successful calls of every tool that was called.
    """

    task: str
    plan: str = ""
    steps: list[Step] = field(default_factory=list)
    observations: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_OBSERVATIONS))
    success_count: int = 0
    known_warnings: dict[str, str] = field(default_factory=dict)
    successes_by_tool: dict[str, int] = field(default_factory=dict)
    _failed_attempts: dict[AttemptKey, FailedAttempt] = field(default_factory=dict)
    _unresolved: dict[AttemptKey, None] = field(default_factory=dict)  # failed calls whose tool has not succeeded since
    _unresolved_by_tool: dict[str, list[AttemptKey]] = field(default_factory=dict)  # the same, by tool

    @property
    def failed_attempts(self) -> tuple[FailedAttempt, ...]:
        """The failed calls, each once, the latest last."""
        return tuple(self._failed_attempts.values())

    @property
    def unresolved_count(self) -> int:
        """How many failed calls are not resolved."""
        return len(self._unresolved)

    def iter_attempts(self, *, include_resolved: bool) -> Iterator[FailedAttempt]:
        """Return the failed calls, the latest first."""
        return (
            self._failed_attempts[key]
            for key in reversed(self._failed_attempts if include_resolved else self._unresolved)
        )

    def iter_tool_outputs(self) -> Iterator[str]:
        """Yield what tools returned, without the calls that were blocked."""
        yield from (step.result.content for step in self.steps if step.result.failure != "refused")

    def add_step(self, step: Step) -> None:
        """Add a finished call."""
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
        earlier = self._failed_attempts.pop(key, None)
        keeps_reason = (
            earlier is not None and result.failure == "refused"
        )  # the tool's own reason says more than the guard's
        reason = earlier.reason if keeps_reason and earlier else result.content
        self._failed_attempts[key] = FailedAttempt(call, reason, 1 if earlier is None else earlier.count + 1)
        if key in self._unresolved:
            del self._unresolved[key]
        else:
            self._unresolved_by_tool.setdefault(call.name, []).append(key)
        self._unresolved[key] = None


def format_status_note(
    context: ExecutionContext, language: Language, max_tokens: int, *, advice: str = "", include_all: bool = False
) -> str:
    """Return a summary of the context for the model.

    "" unless two calls have failed or there is advice. Special tokens in the output of tools are escaped.

    Args:
        context: The context to sum up.
        language: The language of the note.
        max_tokens: The length of the note, roughly.
        advice: What the model should do next.
        include_all: Whether to add the plan and the latest results, for a history that was trimmed.
    """
    if not (context.unresolved_count > 1 or advice or (include_all and context.steps)):
        return ""
    return _fit_lines(_iter_status_lines(context, language == "zh", advice, include_all), max_tokens)


def is_status_note(text: str) -> bool:
    """Return whether a reply of the model is a copy of the status note."""
    return _STATUS_NOTE_START.match(text) is not None


def _iter_status_lines(context: ExecutionContext, is_chinese: bool, advice: str, include_all: bool) -> Iterator[str]:
    total, success_count = len(context.steps), context.success_count
    if is_chinese:
        yield f"【任务状态】共 {total} 次调用，成功 {success_count} 次，失败 {total - success_count} 次。"
    else:
        yield f"[State of this task: {total} calls, {success_count} worked, {total - success_count} failed.]"
    if advice:
        yield advice
    if include_all and context.plan:
        yield f"{'计划' if is_chinese else 'Plan'}: {_truncate_line(context.plan)}"
    shown_tools: set[str] = set()
    for index, attempt in enumerate(islice(context.iter_attempts(include_resolved=include_all), _MAX_FAILURES_SHOWN)):
        if index == 0:
            yield "已失败，不要原样重复：" if is_chinese else "Failed; do not repeat as they were:"
        shown_tools.add(attempt.call.name)
        yield _format_attempt(attempt, index < MAX_REASONS_SHOWN)
    for name, line in context.known_warnings.items():
        if name in shown_tools:
            yield _truncate_line(line)
    if include_all:
        for observation in list(context.observations)[-MAX_OBSERVATIONS_SHOWN:]:
            yield f"{'结果' if is_chinese else 'Result'}: {_truncate_line(observation)}"


def _format_attempt(attempt: FailedAttempt, with_reason: bool) -> str:
    times = f" ({attempt.count}×)" if attempt.count > 1 else ""
    reason = f": {_truncate_line(attempt.reason)}" if with_reason else ""
    return f"- {attempt.call.name}{_truncate_line(attempt.call.arguments_json)}{times}{reason}"


def _truncate_line(text: str) -> str:
    line = " ".join(text[: _MAX_LINE_CHARACTERS * 3].split())
    return escape_special_tokens(line if len(line) <= _MAX_LINE_CHARACTERS else f"{line[:_MAX_LINE_CHARACTERS]}…")


def _fit_lines(lines: Iterable[str], max_tokens: int) -> str:
    """Join the lines that fit; the first one always does."""
    fitting: list[str] = []
    for line in lines:
        max_tokens -= estimate_text_tokens(line) + 1
        if fitting and max_tokens < 0:
            break
        fitting.append(line)
    return "\n".join(fitting)
