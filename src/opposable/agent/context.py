"""The execution context of a run: what was tried, what came of it, what is known; and a short block that tells it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from opposable.agent.history import tokens_in
from opposable.dialects import defuse
from opposable.domain.language import Language
from opposable.domain.messages import Message
from opposable.domain.tools import ToolCall, ToolResult

OBSERVED = 2
"""Observations told again where earlier messages are left out."""
REASONS = 2
"""Failures whose reasons are told, the last ones; of those before only the calls."""
_LINE = 160
"""Characters of a call or of a sentence in the block."""


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


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """What a run has been through.

    `plan` is what the model said it would do, `observations` what its calls brought, oldest first, `failed` the calls
    that failed, each once. `known` are warnings from earlier runs about
    the tools that failed, by name.
    """

    task: str
    plan: str
    steps: tuple[Step, ...]
    observations: tuple[str, ...]
    failed: tuple[Attempt, ...]
    known: Mapping[str, str]


def execution_context(
    task: str, messages: Sequence[Message], steps: Sequence[Step], known: Mapping[str, str]
) -> ExecutionContext:
    """The context of a run, from its task, its history, its calls and what is known of the tools."""
    said = (message.content.strip() for message in messages if message.role == "assistant" and message.tool_calls)
    failed = _failed(steps)
    return ExecutionContext(
        task,
        next(filter(None, said), ""),
        tuple(steps),
        tuple(step.result.content for step in steps if step.result.failure is None),
        failed,
        {name: line for name, line in known.items() if any(one.call.name == name for one in failed)},
    )


def _failed(steps: Sequence[Step]) -> tuple[Attempt, ...]:
    """What failed, the last of it last."""
    failed: dict[tuple[str, str], Attempt] = {}
    for step in steps:
        call, result = step.call, step.result
        key = (call.name, call.arguments)
        if result.failure is None:
            failed.pop(key, None)
            for other, one in failed.items():
                if other[0] == call.name and not one.over:
                    failed[other] = replace(one, over=True)
            continue
        before = failed.pop(key, None)
        times = 1 if before is None else before.times + 1
        keeps = before is not None and result.failure == "refused"  # the guard's word adds nothing to the tool's own
        failed[key] = Attempt(call, before.reason if keeps and before else result.content, times)
    return tuple(failed.values())


def block(
    context: ExecutionContext, language: Language, tokens: int, *, advice: str = "", all_of_it: bool = False
) -> str:
    """The context in a few lines of at most about `tokens` tokens; "" where it has nothing to say.

    It has when two calls have failed, or there is advice. `all_of_it` tells the plan and the last observations too, as
    where earlier messages were left out. What tools said is quoted, and its markup broken.
    """
    chinese = language == "zh"
    failed = [one for one in context.failed if all_of_it or not one.over]
    if not (len(failed) > 1 or advice or (all_of_it and context.steps)):
        return ""
    worked = sum(step.result.failure is None for step in context.steps)
    total = len(context.steps)
    lines = [
        f"【任务状态】共 {total} 次调用，成功 {worked} 次，失败 {total - worked} 次。"
        if chinese
        else f"[State of this task: {total} calls, {worked} worked, {total - worked} failed.]"
    ]
    if advice:
        lines.append(advice)
    if all_of_it and context.plan:
        lines.append(f"{'计划' if chinese else 'Plan'}: {_short(context.plan)}")
    if failed:
        lines.append("已失败，不要原样重复：" if chinese else "Failed; do not repeat as they were:")
        lines += [_told(one, n < REASONS) for n, one in enumerate(reversed(failed))]
    lines += [_short(line) for line in context.known.values()]
    if all_of_it:
        lines += [f"{'结果' if chinese else 'Result'}: {_short(one)}" for one in context.observations[-OBSERVED:]]
    return _fitting(lines, tokens)


def _told(one: Attempt, with_reason: bool) -> str:
    times = f" ({one.times}×)" if one.times > 1 else ""
    reason = f": {_short(one.reason)}" if with_reason else ""
    return f"- {one.call.name}{_short(one.call.arguments)}{times}{reason}"


def _short(text: str) -> str:
    line = " ".join(text[: _LINE * 3].split())
    return defuse(line if len(line) <= _LINE else f"{line[:_LINE]}…")


def _fitting(lines: Sequence[str], tokens: int) -> str:
    """The lines that fit, the first one always."""
    kept: list[str] = []
    for line in lines:
        tokens -= tokens_in(line) + 1
        if kept and tokens < 0:
            break
        kept.append(line)
    return "\n".join(kept)
