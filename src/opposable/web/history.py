"""Conversations put in order: every call with its result, every result behind its call."""

from collections.abc import Sequence
from dataclasses import replace

from opposable.domain.messages import Message, tool, user

NO_RESULT = "No result was recorded for this call."


def paired(messages: Sequence[Message]) -> list[Message]:
    """The messages with each reply's calls followed by their results, in the order of the calls.

    A result that came later is moved up to its call, a call without one gets a sentence that says so, and a result
    without a call becomes a user's message: clients that cut or compact their history make such, and a provider
    refuses the whole conversation for one of them.
    """
    said: list[Message] = []
    waiting: dict[str, int] = {}  # the id of a call without a result -> the place of its reply in `said`
    results: dict[tuple[int, str], Message] = {}
    for message in messages:
        if message.role != "tool":
            waiting |= {call.id: len(said) for call in message.tool_calls}
            said.append(message)
        elif (place := waiting.pop(message.call_id, None)) is not None:
            results[place, message.call_id] = message
        elif not any(call_id == message.call_id for _, call_id in results):
            said.append(user(f"Tool result: {message.content}"))
    return [one for place, message in enumerate(said) for one in (message, *_results(place, message, results))]


def _results(place: int, message: Message, results: dict[tuple[int, str], Message]) -> list[Message]:
    out = []
    for call in message.tool_calls:
        result = results.get((place, call.id))
        out.append(replace(result, name=call.name) if result else tool(call.id, call.name, NO_RESULT))
    return out
