"""The messages that a run without an answer adds to its conversation."""

from collections.abc import Iterable, Sequence
from typing import Any

from opposable.agent.history import match_results_to_calls
from opposable.domain.language import Language
from opposable.domain.localized_text import LocalizedText, localize
from opposable.domain.messages import Message, assistant_message, tool_message
from opposable.domain.records import RunEvent
from opposable.domain.tools import ToolCall

_NOT_ENDED = LocalizedText("[The run ended here without an answer.]", "[运行在此结束，没有给出答案。]")


def list_executed_messages(
    events: Iterable[RunEvent], replies: Sequence[Message], language: Language
) -> tuple[Message, ...]:
    """Return the replies with calls and the results of the calls, each call with one; () for a run without calls.

    The last message says that the run did not end: servers want one of the model before the next one of the user.

    Args:
        events: The events of the run.
        replies: The replies of the model, as far as they are known. The events have only their calls.
        language: The language of the conversation.
    """
    known_replies = iter(replies)
    messages: list[Message] = []
    for event in events:
        match event.kind:
            case "model_replied":
                reply = next(known_replies, None) or _reply_from_event(event.data)
                messages += [reply] if reply.tool_calls else []
            case "tool_finished":
                messages.append(_result_from_event(event.data))
    end = [assistant_message(localize(_NOT_ENDED, language))] if messages else []
    return tuple(match_results_to_calls(messages + end))


def _reply_from_event(data: dict[str, Any]) -> Message:
    calls = (ToolCall(call["call_id"], call["name"], call["arguments"]) for call in data["tool_calls"])
    return assistant_message("", tuple(calls))


def _result_from_event(data: dict[str, Any]) -> Message:
    """Return the message with a result, without its images and files: its model may be one that takes none."""
    return tool_message(data["call_id"], data["name"], data["result"], is_error=data["failure"] is not None)
