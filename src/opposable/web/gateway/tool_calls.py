"""The calls of one reply, sorted: those a client can make, and those the model must be told are wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from opposable.agent.history import detect_conversation_language
from opposable.agent.tool_execution import assign_unique_ids, make_sendable
from opposable.domain.events import Reply
from opposable.domain.language import Language
from opposable.domain.messages import Message, assistant_message, tool_message, user_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.base import ForcedTool
from opposable.parsers import parse_arguments
from opposable.tools import failure_messages as sentences
from opposable.tools.tool_names import find_nearest_names, normalize_name, to_safe_name
from opposable.web.gateway.request import CompletionRequest


@dataclass(frozen=True, slots=True)
class CallTriage:
    """The calls of one reply.

    `good` can be handed to the client: tools it offered, arguments that are JSON objects typed by their schemas, ids
    of their own. `bad` pairs a call with the sentence that tells the model what is wrong. `cut` is true where the
    reply's end cut a call off. `missing` is true where a call was demanded and none was tried.
    """

    valid_calls: tuple[ToolCall, ...]
    invalid_calls: tuple[tuple[ToolCall, str], ...] = ()
    is_cut_off: bool = False
    is_call_missing: bool = False


def triage_calls(reply: Reply, request: CompletionRequest) -> CallTriage:
    """Sort the calls of `reply` by what `request` offers."""
    choice = request.options.tool_choice
    calls = reply.message.tool_calls if choice != "none" else ()
    language = detect_conversation_language(request.messages)
    good: list[ToolCall] = []
    bad: list[tuple[ToolCall, str]] = []
    cut = False
    for n, call in enumerate(calls):
        last = reply.finish == "length" and n == len(calls) - 1
        result = None if call.truncated else _validate_call(call, request, last, language)
        if result is None:
            cut = True
        elif isinstance(result, str):
            bad.append((call, result))
        else:
            good.append(result)
    return CallTriage(assign_unique_ids(good), tuple(bad), cut, not calls and choice not in ("auto", "none"))


def build_correction_messages(reply: Reply, triage: CallTriage, request: CompletionRequest) -> list[Message]:
    """What is said to the model after a reply whose calls are wrong or missing."""
    language = detect_conversation_language(request.messages)
    if not triage.invalid_calls:
        choice = request.options.tool_choice
        names = [choice.name] if isinstance(choice, ForcedTool) else [tool.name for tool in request.tools]
        return [assistant_message(reply.message.content), user_message(_build_call_demand(names, language))]
    calls = assign_unique_ids([_make_history_safe(call) for call, _ in triage.invalid_calls])
    told = [
        tool_message(call.id, call.name, problem)
        for call, (_, problem) in zip(calls, triage.invalid_calls, strict=True)
    ]
    return [assistant_message(reply.message.content, calls, reply.message.thinking), *told]


def _validate_call(
    call: ToolCall, request: CompletionRequest, is_last: bool, language: Language
) -> ToolCall | str | None:
    """The call as it can be made, the sentence that tells what is wrong with it, or None where it was cut off."""
    found = _find_tool(call.name, request.tools)
    if found is None:
        names = [tool.name for tool in request.tools]
        return sentences.unknown_tool_message(call.name, find_nearest_names(call.name, names), names, language)
    choice = request.options.tool_choice
    if isinstance(choice, ForcedTool) and found.name != choice.name:
        return _build_call_demand([choice.name], language)
    read = parse_arguments(dict(call.arguments) if call.has_valid_arguments else call.raw, found.parameters, is_last)
    if read.value is None:
        cut = is_last and read.is_cut_off
        return (
            None
            if cut
            else sentences.unreadable_arguments_message(found.name, read.problem or "", call.arguments_json, language)
        )
    if found.name == call.name and not read.repairs and call.has_valid_arguments:
        return call
    return replace(call, name=found.name, arguments=read.value, raw=None)


def _find_tool(name: str, tools: Sequence[ToolDefinition]) -> ToolDefinition | None:
    """The tool called `name`, or the only one that differs from it in case, dots, dashes or a prefix."""
    for offered in tools:
        if offered.name == name:
            return offered
    like = [offered for offered in tools if normalize_name(offered.name) == normalize_name(name)]
    return like[0] if len(like) == 1 else None


def _make_history_safe(call: ToolCall) -> ToolCall:
    """A wrong call as it can stand in a conversation: a name and arguments that every provider takes."""
    return make_sendable(call, to_safe_name(call.name or "unnamed"), max_characters=2000)


def _build_call_demand(names: Sequence[str], language: Language) -> str:
    if language == "zh":
        return f"现在必须调用工具：{'、'.join(names[:20])}。不要用文字回答。"
    return f"You must call a tool now: {', '.join(names[:20])}. Do not answer in words."
