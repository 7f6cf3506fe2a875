"""Rule: sum up the failed calls of the run in the last message that the model reads."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from opposable.agent.assistance.rule import AssistanceRule, AssistedRun
from opposable.agent.history import OMITTED_RESULT, estimate_text_tokens
from opposable.agent.policy import Step
from opposable.domain.localized_text import localize
from opposable.domain.messages import Message
from opposable.domain.text_normalization import shorten_text
from opposable.parsers import escape_special_tokens

MAX_NOTE_TOKENS = 300
"""The length of the status note."""
MAX_OBSERVATIONS_SHOWN = 2
"""Results shown in the status note when earlier messages are left out."""
MAX_REASONS_SHOWN = 2
"""Failed calls shown with their reason, the latest ones; earlier ones are shown without."""
_MAX_FAILURES_SHOWN = 10
"""Failed calls in the status note."""
_MAX_LINE_CHARACTERS = 160
"""Characters of a line of the status note."""


class StatusNote(AssistanceRule):
    """Append the status note after a failed turn, with advice, or where earlier messages are left out."""

    def extend_request(self, messages: list[Message]) -> list[Message]:
        """Append the note to the last message. The history stays without it."""
        if note := self._format_note(messages):
            return [*messages[:-1], replace(messages[-1], content=f"{messages[-1].content}\n\n{note}")]
        return messages

    def _format_note(self, messages: Sequence[Message]) -> str:
        run = self.run
        if not run.steps:
            return ""
        shown_ids = {message.call_id for message in messages if message.content not in OMITTED_RESULT.values()}
        is_trimmed = run.steps[0].call.id not in shown_ids
        has_failed = any(step.result.failure is not None for step in run.turn_steps)
        return format_status_note(run, include_all=is_trimmed) if run.advice or has_failed or is_trimmed else ""


def list_failed_attempts(steps: Iterable[Step], *, include_resolved: bool) -> list[list[Step]]:
    """Return the failures of each failed call, the latest call first.

    A call that succeeded later is not among them, nor one whose tool did, unless `include_resolved` is set.
    """
    attempts: dict[tuple[str, str], list[Step]] = {}
    resolved: set[tuple[str, str]] = set()
    for step in steps:
        key = (step.call.name, step.call.arguments_json)
        failures = attempts.pop(key, [])
        if step.result.failure is not None:
            attempts[key] = [*failures, step]
            resolved.discard(key)
        else:
            resolved |= {other for other in attempts if other[0] == step.call.name}
    return [attempts[key] for key in reversed(attempts) if include_resolved or key not in resolved]


def format_status_note(run: AssistedRun, *, include_all: bool = False) -> str:
    """Return a summary of a run for the model.

    "" unless two calls have failed or there is advice. Special tokens in the output of tools are escaped.

    Args:
        run: The run to sum up.
        include_all: Whether to add the plan and the latest results, for a history that was trimmed.
    """
    attempts = list_failed_attempts(run.steps, include_resolved=include_all)
    if not (len(attempts) > 1 or run.advice or include_all):
        return ""
    return _fit_lines(_iter_status_lines(run, attempts, include_all), MAX_NOTE_TOKENS)


def _iter_status_lines(run: AssistedRun, attempts: Sequence[Sequence[Step]], include_all: bool) -> Iterator[str]:
    is_chinese = run.language == "zh"
    total, observations = len(run.steps), [step.result.content for step in run.steps if step.result.failure is None]
    failed_count = total - len(observations)
    if is_chinese:
        yield f"【任务状态】共 {total} 次调用，成功 {len(observations)} 次，失败 {failed_count} 次。"
    else:
        yield f"[State of this task: {total} calls, {len(observations)} worked, {failed_count} failed.]"
    if run.advice:
        yield localize(run.advice, run.language)
    if include_all and run.plan:
        yield f"{'计划' if is_chinese else 'Plan'}: {_truncate_line(run.plan)}"
    if shown := attempts[:_MAX_FAILURES_SHOWN]:
        yield "已失败，不要原样重复：" if is_chinese else "Failed; do not repeat as they were:"
    yield from (_format_attempt(attempt, index < MAX_REASONS_SHOWN) for index, attempt in enumerate(shown))
    if include_all:
        for observation in observations[-MAX_OBSERVATIONS_SHOWN:]:
            yield f"{'结果' if is_chinese else 'Result'}: {_truncate_line(observation)}"


def _format_attempt(failures: Sequence[Step], with_reason: bool) -> str:
    call, times = failures[-1].call, f" ({len(failures)}×)" if len(failures) > 1 else ""
    # the tool's own reason says more than that of a blocked call
    own = [step for step in failures if step.result.failure != "refused"] or failures[:1]
    reason = f": {_truncate_line(own[-1].result.content)}" if with_reason else ""
    return f"- {call.name}{_truncate_line(call.arguments_json)}{times}{reason}"


def _truncate_line(text: str) -> str:
    return escape_special_tokens(shorten_text(" ".join(text[: _MAX_LINE_CHARACTERS * 3].split()), _MAX_LINE_CHARACTERS))


def _fit_lines(lines: Iterable[str], max_tokens: int) -> str:
    """Join the lines that fit; the first one always does."""
    fitting: list[str] = []
    for line in lines:
        max_tokens -= estimate_text_tokens(line) + 1
        if fitting and max_tokens < 0:
            break
        fitting.append(line)
    return "\n".join(fitting)
