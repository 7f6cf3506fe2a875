"""What the runtime says about a run, in English and Chinese."""

from collections.abc import Sequence

from opposable.agent.policy import Step
from opposable.domain.events import StopReason
from opposable.domain.language import Language

_LIMIT_NAMES: dict[StopReason, tuple[str, str]] = {
    "turns": ("its number of steps", "步数"),
    "tool_calls": ("its number of tool calls", "工具调用次数"),
    "tokens": ("its number of tokens", "令牌数"),
    "cost": ("what it may cost", "费用额度"),
    "time": ("its time", "时间"),
}


def explain_limit(reason: StopReason, language: Language) -> str:
    """Explain why a run ends at a limit."""
    english, chinese = _LIMIT_NAMES[reason]
    return f"本次任务的{chinese}已用完。" if language == "zh" else f"The task has used up {english}."


def note_last_reply(reason: StopReason, language: Language) -> str:
    """Note in the last result that no more tools can be called."""
    english, chinese = _LIMIT_NAMES[reason]
    if language == "zh":
        return f"注意：本次任务的{chinese}已用完，不能再调用工具。请根据已有结果作答，并说明缺少什么。"
    return (
        f"Note: this task has used up {english}; no more tools can be called. Answer from the results so far, "
        "and say what is missing."
    )


def format_missing_answer(reason: StopReason, steps: Sequence[Step], language: Language) -> str:
    """Return the text of a run whose model gave no answer: why, and the last successful result with its tool."""
    last_success = next(
        ((step.call.name, step.result.content) for step in reversed(steps) if not step.result.failure), None
    )
    english, chinese = _LIMIT_NAMES.get(reason, ("", ""))
    if language == "zh":
        said = f"任务在得出答案之前用完了{chinese}。" if chinese else "模型没有给出答案。"
        return f"{said}以下只是部分结果，来自 {last_success[0]}：{last_success[1][:500]}" if last_success else said
    said = f"The task used up {english} before there was an answer." if english else "The model gave no answer."
    return f"{said} This is only a part, from {last_success[0]}: {last_success[1][:500]}" if last_success else said
