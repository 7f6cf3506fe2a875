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
    """Return the replies with calls, a result of each call in the order of the calls, and the published text after them.

    () for a run without any. The last message says that the run did not end: servers want one of the model before the
    next one of the user.

    Args:
        events: The events of the run.
        replies: The replies of the model, as far as they are known. The events have only their calls.
        language: The language of the conversation.
    """
    known_replies, text = iter(replies), ""
    turns: list[tuple[Message, dict[str, Message]]] = []  # each reply with its results, by call id
    for event in events:
        match event.kind:
            case "text":
                text += event.data["content"]
            case "model_replied":
                reply = next(known_replies, None) or _reply_from_event(event.data)
                if reply.tool_calls:
                    turns.append((reply, {}))
                    text = ""
            case "tool_finished" if turns:
                turns[-1][1][event.data["call_id"]] = _result_from_event(event.data)
    if not turns and not text:
        return ()
    messages = [
        message
        for reply, results in turns
        for message in (reply, *(results[call.id] for call in reply.tool_calls if call.id in results))
    ]
    end = "\n\n".join(filter(None, (text.strip(), localize(_NOT_ENDED, language))))
    return tuple(match_results_to_calls([*messages, assistant_message(end)]))


def _reply_from_event(data: dict[str, Any]) -> Message:
    calls = (ToolCall(call["call_id"], call["name"], call["arguments"]) for call in data["tool_calls"])
    return assistant_message("", tuple(calls))


def _result_from_event(data: dict[str, Any]) -> Message:
    """Return the message with a result, without its images and files: its model may be one that takes none."""
    return tool_message(data["call_id"], data["name"], data["result"], is_error=data["failure"] is not None)
