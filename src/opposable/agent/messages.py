"""What the runtime says about a run, in English and Chinese."""

from collections.abc import Sequence

from opposable.agent.policy import Step
from opposable.domain.events import StopReason
from opposable.domain.localized_text import LocalizedText

LIMIT_NAMES: dict[StopReason, LocalizedText] = {
    "turns": LocalizedText("its number of steps", "步数"),
    "tool_calls": LocalizedText("its number of tool calls", "工具调用次数"),
    "tokens": LocalizedText("its number of tokens", "令牌数"),
    "cost": LocalizedText("what it may cost", "费用额度"),
    "time": LocalizedText("its time", "时间"),
}
LIMIT_REACHED = LocalizedText("The task has used up {limit}.", "本次任务的{limit}已用完。")
LAST_REPLY = LocalizedText(
    "Note: this task has used up {limit}; no more tools can be called. Answer from the results so far, and say what is "
    "missing.",
    "注意：本次任务的{limit}已用完，不能再调用工具。请根据已有结果作答，并说明缺少什么。",
)
_NO_ANSWER = LocalizedText("The model gave no answer.", "模型没有给出答案。")
_NO_ANSWER_IN_LIMIT = LocalizedText(
    "The task used up {limit} before there was an answer.", "任务在得出答案之前用完了{limit}。"
)
_PARTIAL_RESULT = LocalizedText(
    "{reason} This is only a part, from {name}: {result}", "{reason}以下只是部分结果，来自 {name}：{result}"
)


def format_missing_answer(reason: StopReason, steps: Sequence[Step]) -> LocalizedText:
    """Return the text of a run whose model gave no answer: why, and the last successful result with its tool."""
    limit = LIMIT_NAMES.get(reason)
    text = _NO_ANSWER if limit is None else _NO_ANSWER_IN_LIMIT.format(limit=limit)
    success = next((step for step in reversed(steps) if not step.result.failure), None)
    if success is None:
        return text
    return _PARTIAL_RESULT.format(reason=text, name=success.call.name, result=success.result.content[:500])
