"""What a run says to the model of its own accord, in English and Chinese."""

from collections.abc import Sequence

from opposable.domain.events import StopReason
from opposable.domain.language import Language
from opposable.domain.messages import Message

_LIMITS: dict[StopReason, tuple[str, str]] = {
    "turns": ("its number of steps", "步数"),
    "tool_calls": ("its number of tool calls", "工具调用次数"),
    "tokens": ("its number of tokens", "令牌数"),
    "cost": ("what it may cost", "费用额度"),
    "time": ("its time", "时间"),
}


def last_chance(reason: StopReason, language: Language) -> str:
    """Asks for the answer when a limit is reached and tools are gone."""
    english, chinese = _LIMITS[reason]
    if language == "zh":
        return (
            f"本次任务的{chinese}已用完，不能再调用工具。请根据以上结果直接给出最终答案；如果不完整，请说明缺少什么。"
        )
    return (
        f"This task has used up {english}; no more tools can be called. Answer now from the results above, "
        "and say what is missing if the answer is not complete."
    )


def empty_reply(language: Language) -> str:
    """Asks again when the model said nothing."""
    return "你的回复是空的。请回答用户的问题。" if language == "zh" else "Your reply was empty. Answer the user."


def no_answer(reason: StopReason, messages: Sequence[Message], language: Language) -> str:
    """The answer of a run whose model gave none: that it stopped, and what the last tool said."""
    results = [message for message in messages if message.role == "tool"]
    english, chinese = _LIMITS.get(reason, ("its end", "结束"))
    if language == "zh":
        said = f"任务在得出答案之前用完了{chinese}。" if reason != "answer" else "模型没有给出答案。"
        return f"{said}最后一个工具结果（{results[-1].name}）：{results[-1].content[:500]}" if results else said
    said = (
        f"The task used up {english} before there was an answer." if reason != "answer" else "The model gave no answer."
    )
    return f"{said} The last tool result ({results[-1].name}): {results[-1].content[:500]}" if results else said
