"""Validation of the calls of a reply, and messages that request corrections."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from opposable.agent.history import detect_conversation_language
from opposable.agent.tool_execution import assign_unique_ids, make_sendable, resolve_arguments
from opposable.domain.errors import BadInput
from opposable.domain.events import CUT_OFF, Reply
from opposable.domain.language import Language
from opposable.domain.messages import Message, add_instructions, assistant_message, tool_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.base import ForcedTool
from opposable.tools.failure_messages import unknown_tool_message
from opposable.tools.json_schema_validation import compile_validator
from opposable.tools.tool_names import find_nearest_names, normalize_name, to_safe_name
from opposable.web.gateway.request import CompletionRequest


@dataclass(frozen=True, slots=True)
class CallTriage:
    """The calls of one reply, sorted by validity.

    Attributes:
        valid_calls: Calls of known tools with unique ids; the arguments are objects with types repaired by the schema.
        invalid_calls: The other calls, each with a message for the model.
        is_cut_off: Whether the end of the reply cut off a call.
        is_call_missing: Whether a call was required and the reply has none.
    """

    valid_calls: tuple[ToolCall, ...]
    invalid_calls: tuple[tuple[ToolCall, str], ...] = ()
    is_cut_off: bool = False
    is_call_missing: bool = False


def triage_calls(reply: Reply, request: CompletionRequest) -> CallTriage:
    """Sort the calls of a reply into valid and invalid ones for this request."""
    choice = request.options.tool_choice
    calls = reply.message.tool_calls if choice != "none" else ()
    if calls and reply.finish in CUT_OFF:
        return CallTriage((), is_cut_off=True)
    language = detect_conversation_language(request.messages)
    valid_calls: list[ToolCall] = []
    invalid_calls: list[tuple[ToolCall, str]] = []
    is_cut_off = False
    for call in calls:
        result = None if call.truncated else _validate_call(call, request, language)
        if result is None:
            is_cut_off = True
        elif isinstance(result, str):
            invalid_calls.append((call, result))
        else:
            valid_calls.append(result)
    is_call_missing = not calls and choice not in ("auto", "none")
    return CallTriage(assign_unique_ids(valid_calls), tuple(invalid_calls), is_cut_off, is_call_missing)


def add_correction(reply: Reply, triage: CallTriage, request: CompletionRequest) -> tuple[Message, ...]:
    """Return the messages that request corrected calls, or demand the required call in the system message."""
    language = detect_conversation_language(request.messages)
    if not triage.invalid_calls:
        choice = request.options.tool_choice
        names = [choice.name] if isinstance(choice, ForcedTool) else [tool.name for tool in request.tools]
        return tuple(add_instructions(request.messages, _build_call_demand(names, language)))
    sendable = [  # in a form that every provider accepts in a conversation
        make_sendable(call, to_safe_name(call.name or "unnamed"), max_characters=2000)
        for call, _ in triage.invalid_calls
    ]
    calls = assign_unique_ids(sendable)
    problems = [
        tool_message(call.id, call.name, problem)
        for call, (_, problem) in zip(calls, triage.invalid_calls, strict=True)
    ]
    return (*request.messages, assistant_message(reply.message.content, calls, reply.message.thinking), *problems)


def resolve_native_calls(calls: Sequence[ToolCall], request: CompletionRequest) -> tuple[ToolCall, ...]:
    """Return the calls of a native reply, with invalid ones repaired if possible."""
    checked = [_validate_call(call, request, "en") for call in calls]
    resolved = (result if isinstance(result, ToolCall) else call for call, result in zip(calls, checked, strict=True))
    return assign_unique_ids(tuple(resolved))


def _validate_call(call: ToolCall, request: CompletionRequest, language: Language) -> ToolCall | str:
    """Return the valid call, or its problem."""
    tool = _find_tool(call.name, request.tools)
    if tool is None:
        names = [tool.name for tool in request.tools]
        return unknown_tool_message(call.name, find_nearest_names(call.name, names), names, language)
    choice = request.options.tool_choice
    if isinstance(choice, ForcedTool) and tool.name != choice.name:
        return _build_call_demand([choice.name], language)
    return resolve_arguments(call, tool, partial(_check_call, tool), language)


def _check_call(tool: ToolDefinition, call: ToolCall) -> ToolCall:
    """Return a call whose arguments fit the schema of the tool, if they can be checked. Raises: `InvalidArguments`."""
    with suppress(BadInput, ValueError):  # of a schema that cannot be used, or arguments that are nested too deeply
        compile_validator(tool.parameters)(dict(call.arguments))
    return call if tool.name == call.name else replace(call, name=tool.name)


def _find_tool(name: str, tools: Sequence[ToolDefinition]) -> ToolDefinition | None:
    """Return the tool with this name or the only similar one.

    A similar name differs in case, dots, dashes or a prefix.
    """
    for tool in tools:
        if tool.name == name:
            return tool
    similar = [tool for tool in tools if normalize_name(tool.name) == normalize_name(name)]
    return similar[0] if len(similar) == 1 else None


def _build_call_demand(names: Sequence[str], language: Language) -> str:
    if language == "zh":
        return f"现在必须调用工具：{'、'.join(names[:20])}。不要用文字回答。"
    return f"You must call a tool now: {', '.join(names[:20])}. Do not answer in words."
