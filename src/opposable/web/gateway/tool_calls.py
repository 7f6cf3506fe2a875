"""The calls of one reply, sorted: those a client can make, and those the model must be told are wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import orjson

from opposable.agent.history import spoken
from opposable.agent.tool_execution import with_own_ids
from opposable.domain.events import Reply
from opposable.domain.language import Language
from opposable.domain.messages import Message, assistant, tool, user
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.base import Named
from opposable.parsers import read_arguments
from opposable.tools import failure_messages as sentences
from opposable.tools.tool_names import folded, nearest, safe_name
from opposable.web.gateway.request import ChatRequest


@dataclass(frozen=True, slots=True)
class Sorted:
    """The calls of one reply.

    `good` can be handed to the client: tools it offered, arguments that are JSON objects typed by their schemas, ids
    of their own. `bad` pairs a call with the sentence that tells the model what is wrong. `cut` is true where the
    reply's end cut a call off. `missing` is true where a call was demanded and none was tried.
    """

    good: tuple[ToolCall, ...]
    bad: tuple[tuple[ToolCall, str], ...] = ()
    cut: bool = False
    missing: bool = False


def sort_calls(reply: Reply, request: ChatRequest) -> Sorted:
    """Sort the calls of `reply` by what `request` offers."""
    choice = request.options.tool_choice
    calls = reply.message.tool_calls if choice != "none" else ()
    language = spoken(request.messages)
    good: list[ToolCall] = []
    bad: list[tuple[ToolCall, str]] = []
    cut = False
    for n, call in enumerate(calls):
        last = reply.finish == "length" and n == len(calls) - 1
        result = None if call.truncated else _read(call, request, last, language)
        if result is None:
            cut = True
        elif isinstance(result, str):
            bad.append((call, result))
        else:
            good.append(result)
    return Sorted(with_own_ids(good), tuple(bad), cut, not calls and choice not in ("auto", "none"))


def correction(reply: Reply, found: Sorted, request: ChatRequest) -> list[Message]:
    """What is said to the model after a reply whose calls are wrong or missing."""
    language = spoken(request.messages)
    if not found.bad:
        choice = request.options.tool_choice
        names = [choice.name] if isinstance(choice, Named) else [tool.name for tool in request.tools]
        return [assistant(reply.message.content), user(_call_now(names, language))]
    calls = with_own_ids([_harmless(call) for call, _ in found.bad])
    told = [tool(call.id, call.name, problem) for call, (_, problem) in zip(calls, found.bad, strict=True)]
    return [assistant(reply.message.content, calls, reply.message.thinking), *told]


def _read(call: ToolCall, request: ChatRequest, last: bool, language: Language) -> ToolCall | str | None:
    """The call as it can be made, the sentence that tells what is wrong with it, or None where it was cut off."""
    found = _find(call.name, request.tools)
    if found is None:
        names = [tool.name for tool in request.tools]
        return sentences.unknown_tool(call.name, nearest(call.name, names), names, language)
    choice = request.options.tool_choice
    if isinstance(choice, Named) and found.name != choice.name:
        return _call_now([choice.name], language)
    read = read_arguments(call.arguments, found.parameters, last)
    if read.value is None:
        cut = last and read.cut
        return None if cut else sentences.unreadable(found.name, read.problem or "", call.arguments, language)
    if found.name == call.name and not read.repairs and call.arguments.lstrip()[:1] == "{":
        return call
    return replace(call, name=found.name, arguments=orjson.dumps(read.value).decode())


def _find(name: str, tools: Sequence[ToolDefinition]) -> ToolDefinition | None:
    """The tool called `name`, or the only one that differs from it in case, dots, dashes or a prefix."""
    for offered in tools:
        if offered.name == name:
            return offered
    like = [offered for offered in tools if folded(offered.name) == folded(name)]
    return like[0] if len(like) == 1 else None


def _harmless(call: ToolCall) -> ToolCall:
    """A wrong call as it can stand in a conversation: a name and arguments that every provider takes."""
    try:
        whole = isinstance(orjson.loads(call.arguments), dict)
    except orjson.JSONDecodeError:
        whole = False
    shown = call.arguments.encode("utf-8", "replace").decode()[:2000]
    arguments = call.arguments if whole else orjson.dumps({"unreadable": shown}).decode()
    return replace(call, name=safe_name(call.name or "unnamed"), arguments=arguments)


def _call_now(names: Sequence[str], language: Language) -> str:
    if language == "zh":
        return f"现在必须调用工具：{'、'.join(names[:20])}。不要用文字回答。"
    return f"You must call a tool now: {', '.join(names[:20])}. Do not answer in words."
