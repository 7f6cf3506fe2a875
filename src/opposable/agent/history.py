"""Preparation of a message history for a request: matched results, bounded length."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from opposable.domain.content import TextPart
from opposable.domain.language import Language, detect_language
from opposable.domain.messages import Message, add_instructions, tool_message
from opposable.domain.tools import ToolResult
from opposable.tools.result_store import truncate_result

MISSING_RESULT = {
    "en": "There is no result: the call was not finished, but it may have taken effect.",
    "zh": "没有结果：该调用没有完成，但可能已经生效。",
}
"""The content of a missing result. It names no cause, so that the model draws no conclusion from it."""

OMITTED_RESULT = {"en": "[This result was left out to make room.]", "zh": "[为节省空间，此结果已省略。]"}

OMITTED_MESSAGES_NOTE = {
    "en": "[Earlier messages were left out here to make room.]",
    "zh": "[为节省空间，此处省略了较早的消息。]",
}


def detect_conversation_language(messages: Sequence[Message]) -> Language:
    """Return the language of the last user message."""
    return next((detect_language(message.content) for message in reversed(messages) if message.role == "user"), "en")


def match_results_to_calls(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with every call followed by its result.

    Providers reject a conversation that breaks either rule. A call without a result gets one that says so. A result
    without a call, or a second one, is dropped. A late result moves to its call.
    """
    groups: list[list[Message]] = []  # every message that is no result, with its results
    unanswered: dict[str, list[list[Message]]] = {}  # the groups that lack a result, by the id of its call
    for message in messages:
        if message.role != "tool":
            groups.append([message])
            unanswered |= {call.id: [] for call in message.tool_calls}
            for call in message.tool_calls:
                unanswered[call.id].append(groups[-1])
        elif unanswered.get(message.call_id):
            unanswered[message.call_id].pop().append(message)
    return [message for group in groups for message in _add_missing_results(*group)]


def to_result_message(result: ToolResult, takes_media: bool) -> Message:
    """Return the message with a result, and with its images and files if the model takes them."""
    parts = (TextPart(result.content), *result.media) if result.media and takes_media else ()
    return tool_message(result.call_id, result.name, result.content, parts, is_error=result.failure is not None)


def trim_messages(messages: list[Message], max_tokens: int | None) -> list[Message]:
    """Return the messages that fit into about `max_tokens`, without the oldest ones; None keeps all.

    First the results of earlier exchanges are left out, then whole exchanges: a request never stays without what was
    done for it. System messages and the last user message always stay. What follows it goes only when nothing else is
    left: first the results, then the calls, the oldest first. At last, the latest results are cut, the longest first.
    The first system message says that messages were left out.
    """
    if max_tokens is None:
        return messages
    units = _split_into_units(messages)
    last = next((n for n in reversed(range(len(units))) if messages[units[n][0]].role == "user"), -1)
    parts = (units[: max(last, 0)], units[last + 1 : -1])
    steps = [(unit, is_whole) for part in parts for is_whole in (False, True) for unit in part]
    steps += [([n], False) for unit in units[-1:] for n in sorted(unit, key=lambda n: -len(messages[n].content))]
    remaining: list[Message | None] = [*messages]
    excess_tokens = estimate_tokens(messages) - max_tokens
    for unit, is_whole in steps:
        if excess_tokens <= 0:
            break
        for n in unit:
            shorter = None if is_whole else _shorten(messages[n], excess_tokens if n in units[-1] else float("inf"))
            excess_tokens -= estimate_tokens(filter(None, [remaining[n]])) - estimate_tokens(filter(None, [shorter]))
            remaining[n] = shorter
    trimmed = [message for message in remaining if message is not None]
    if len(trimmed) == len(messages):
        return trimmed
    return add_instructions(trimmed, OMITTED_MESSAGES_NOTE[detect_language(messages[-1].content)])


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Estimate the tokens of messages."""
    return sum(
        8 + estimate_text_tokens(m.content) + sum(8 + estimate_text_tokens(c.arguments_json) for c in m.tool_calls)
        for m in messages
    )


def estimate_text_tokens(text: str) -> int:
    """Estimate the tokens of a text: 4 Latin or 1.5 Chinese characters each."""
    wide = 0 if text.isascii() else sum(character > "\u2e7f" for character in text)
    return (len(text) - wide) // 4 + wide * 2 // 3


def _add_missing_results(reply: Message, *results: Message) -> list[Message]:
    """Return a reply and its results; where some are missing, one for each call in the order of the calls."""
    if len(results) == len(reply.tool_calls):
        return [reply, *results]
    by_id = {result.call_id: result for result in reversed(results)}
    missing = MISSING_RESULT[detect_language(reply.content)]
    calls = reply.tool_calls
    return [reply, *(by_id.pop(c.id) if c.id in by_id else tool_message(c.id, c.name, missing) for c in calls)]


def _split_into_units(messages: Sequence[Message]) -> list[list[int]]:
    """Return the positions of the exchanges before the last user message, and of the replies with their results after it.

    System messages are in none of them.
    """
    last = max((n for n, message in enumerate(messages) if message.role == "user"), default=-1)
    units: list[list[int]] = []
    for n, message in enumerate(messages):
        if message.role == "user" or not units or (message.role == "assistant" and n > last):
            units.append([])
        units[-1] += [n] if message.role != "system" else []
    return [unit for unit in units if unit]


def _shorten(message: Message, cut_tokens: float) -> Message:
    """Return a message with a result, if that is long, cut by some tokens; with a note alone if it has no more."""
    note = OMITTED_RESULT[language := detect_language(message.content)]
    size = len(message.content) * (1 - cut_tokens / estimate_tokens([message])) - 2 * len(note)
    content = truncate_result(message.content, int(size), language)[0] if size >= 1 else note
    is_long = message.role == "tool" and (bool(message.parts) or len(message.content) > len(note))
    return replace(message, content=content, parts=()) if is_long else message
