"""The messages that a run without an answer adds to its conversation."""

from collections.abc import Iterable, Sequence
from typing import Any

from opposable.agent.history import match_results_to_calls
from opposable.domain.messages import Message, assistant_message, tool_message
from opposable.domain.records import RunEvent
from opposable.domain.tools import ToolCall


def list_executed_messages(events: Iterable[RunEvent], replies: Sequence[Message] = ()) -> tuple[Message, ...]:
    """Return the replies with calls and the results of the calls, each call with one; () for a run without calls.

    Args:
        events: The events of the run.
        replies: The replies of the model, if they are known. The events have only their calls.
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
    return tuple(match_results_to_calls(messages))


def _reply_from_event(data: dict[str, Any]) -> Message:
    calls = (ToolCall(call["call_id"], call["name"], call["arguments"]) for call in data["tool_calls"])
    return assistant_message("", tuple(calls))


def _result_from_event(data: dict[str, Any]) -> Message:
    """Return the message with a result, without its images and files: its model may be one that takes none."""
    return tool_message(data["call_id"], data["name"], data["result"], is_error=data["failure"] is not None)
