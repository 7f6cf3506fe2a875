"""What durable runs say, in English and Chinese."""

from opposable.domain.language import Language

UNKNOWN_OUTCOME_NOTE = "The worker ended during this call. It may have taken effect. Approve it to make it again."


def unknown_outcome_message(tool_id: str, reason: str, language: Language) -> str:
    """Say that the outcome of a call is unknown and that it was not repeated."""
    if language == "zh":
        return f"调用 {tool_id} 时进程中断，结果未知，可能已经生效；未重新执行。{reason}"
    return (
        f"The process ended during this call of {tool_id}. Its outcome is unknown: it may have taken effect. "
        f"It was not made again. {reason}"
    ).strip()
