"""What of a conversation is sent: whole pairs of calls and results, and not more than fits. Pure functions."""

from collections.abc import Iterable, Sequence

from opposable.domain.language import Language, detect_language
from opposable.domain.messages import Message, tool_message
from opposable.domain.tools import ToolCall

MISSING_RESULT = {"en": "There is no result: the call was not finished.", "zh": "没有结果：该调用没有完成。"}
"""What stands for a result that was lost. It blames nobody, so that a model draws no conclusion from it."""

OMITTED_MESSAGES_NOTE = {
    "en": "[Earlier messages were left out here to make room.]",
    "zh": "[为节省空间，此处省略了较早的消息。]",
}


def detect_conversation_language(messages: Sequence[Message]) -> Language:
    """The language of the last thing a user said."""
    return next((detect_language(message.content) for message in reversed(messages) if message.role == "user"), "en")


def match_results_to_calls(messages: Sequence[Message]) -> list[Message]:
    """The messages with every call followed by its result, and no result without its call.

    A provider refuses a conversation that breaks either rule, each time it is sent again. A call without a result gets
    one that says so; a result without a call, or a second one, is dropped; results that come late are put behind
    their calls.
    """
    if _are_results_matched(messages):
        return list(messages)
    results = _index_results(messages)
    mended: list[Message] = []
    for n, message in enumerate(messages):
        if message.role == "tool":
            continue
        mended.append(message)
        mended += [
            results.pop((n, call.id)) if (n, call.id) in results else _make_missing_result(call, message.content)
            for call in message.tool_calls
        ]
    return mended


def trim_messages(messages: Sequence[Message], max_tokens: int) -> list[Message]:
    """The messages that fit into about `tokens`: the oldest go first, calls together with their results.

    What is never dropped: the system's words, the first thing the user said, the last thing the user said and what
    came after it, except the oldest of these calls where nothing else is left to drop.
    """
    groups = _group_messages(messages)
    kept = [True] * len(groups)
    over = estimate_tokens(messages) - max_tokens
    for n in _list_droppable_groups(groups):
        if over <= 0:
            break
        kept[n] = False
        over -= estimate_tokens(groups[n])
    if all(kept):
        return list(messages)
    out: list[Message] = []
    said = False
    for group, stays in zip(groups, kept, strict=True):
        if stays:
            out += group
        elif not said:
            said = True
            out.append(Message("user", OMITTED_MESSAGES_NOTE[detect_language(messages[-1].content)]))
    return out


def estimate_tokens(messages: Iterable[Message]) -> int:
    """About how many tokens messages take: four characters of Latin text or two thirds of a Chinese one each."""
    return sum(
        8 + estimate_text_tokens(m.content) + sum(8 + estimate_text_tokens(c.arguments_json) for c in m.tool_calls)
        for m in messages
    )


def estimate_text_tokens(text: str) -> int:
    """About how many tokens a text takes."""
    wide = 0 if text.isascii() else sum(character > "\u2e7f" for character in text)
    return (len(text) - wide) // 4 + wide * 2 // 3


def _are_results_matched(messages: Sequence[Message]) -> bool:
    """Whether each run of calls is followed by just its results."""
    open_calls: list[str] = []
    for message in messages:
        if message.role == "tool":
            if message.call_id not in open_calls:
                return False
            open_calls.remove(message.call_id)
            continue
        if open_calls:
            return False
        open_calls = [call.id for call in message.tool_calls]
    return not open_calls


def _index_results(messages: Sequence[Message]) -> dict[tuple[int, str], Message]:
    """Results by the place of their call's message and the call's id; ids may come again later in a conversation."""
    found: dict[tuple[int, str], Message] = {}
    asked: dict[str, int] = {}
    for n, message in enumerate(messages):
        for call in message.tool_calls:
            asked[call.id] = n
        if message.role == "tool" and message.call_id in asked:
            found.setdefault((asked[message.call_id], message.call_id), message)
    return found


def _make_missing_result(call: ToolCall, reply_text: str) -> Message:
    return tool_message(call.id, call.name, MISSING_RESULT[detect_language(reply_text)])


def _group_messages(messages: Sequence[Message]) -> list[list[Message]]:
    """Messages that stay or go together: a reply with its results, any other alone."""
    groups: list[list[Message]] = []
    for message in messages:
        if message.role == "tool" and groups:
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


def _list_droppable_groups(groups: Sequence[list[Message]]) -> list[int]:
    """The groups that may go, in the order in which they go."""
    users = [n for n, group in enumerate(groups) if group[0].role == "user"]
    first, last = (users[0], users[-1]) if users else (0, 0)
    before = [n for n in range(len(groups)) if n < last and n != first and groups[n][0].role != "system"]
    after = [n for n in range(last + 1, len(groups) - 1) if groups[n][0].role == "assistant"]
    return before + after
