"""The calls of one reply: each read, made beside the others, and told the moment it ends."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from opposable.domain.call_context import CallContext
from opposable.domain.events import ToolDelta, ToolFinished, ToolStarted
from opposable.domain.language import Language
from opposable.domain.tools import ToolCall, ToolResult, new_call_id
from opposable.parsers import parse_arguments
from opposable.tools import failure_messages as sentences
from opposable.tools.library import ToolLibrary
from opposable.tools.tool_names import to_safe_name


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """A call as it was understood.

    `call` is what stands in the history: a safe name, an id of its own, arguments that are a JSON object, so that no
    provider chokes on it later. `arguments` are to be run, unless `failure` already says why they are not.
    """

    call: ToolCall
    arguments: dict[str, Any]
    failure: ToolResult | None = None


def resolve_calls(calls: Sequence[ToolCall], library: ToolLibrary, language: Language) -> tuple[ResolvedCall, ...]:
    """Understand the calls of a reply; what cannot be read is told, never guessed."""
    return tuple(_resolve_call(call, library, language) for call in assign_unique_ids(calls))


def assign_unique_ids(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls, each with an id that no other of them has."""
    taken: set[str] = set()
    own = []
    for call in calls:
        own.append(call if call.id and call.id not in taken else replace(call, id=new_call_id()))
        taken.add(own[-1].id)
    return tuple(own)


def make_sendable(call: ToolCall, name: str, max_characters: int = 4000) -> ToolCall:
    """Return the call as providers accept it in a history: under `name`, with arguments that are a JSON object.

    Malformed arguments are quoted in an object, cut to `max_characters`.
    """
    if call.has_valid_arguments:
        return replace(call, name=name)
    text = (call.raw or "").encode("utf-8", "replace").decode()[:max_characters]
    return replace(call, name=name, arguments={"unreadable": text}, raw=None)


async def execute_calls(
    resolved_calls: Sequence[ResolvedCall],
    library: ToolLibrary,
    remaining: int | None,
    context: CallContext,
    turn: int = 0,
) -> AsyncGenerator[ToolStarted | ToolDelta | ToolFinished, None]:
    """Make the calls together and yield each one's beginning, what it tells meanwhile and its end as they happen.

    Calls beyond `room` are refused. `turn` tells the idempotency keys of calls apart whose ids recur in a run. Leaving
    early cancels what still runs.
    """
    if remaining is not None:
        told = sentences.call_limit_message(context.language)
        resolved_calls = [
            read if n < remaining else replace(read, failure=ToolResult(read.call.id, read.call.name, told, "refused"))
            for n, read in enumerate(resolved_calls)
        ]
    for read in resolved_calls:
        yield ToolStarted(read.call)
    if len(resolved_calls) == 1 and not library.can_stream(resolved_calls[0].call.name):
        yield ToolFinished(resolved_calls[0].call, await _execute_call(resolved_calls[0], library, context, turn, None))
        return
    told_of: asyncio.Queue[ToolDelta | asyncio.Task[ToolResult]] = asyncio.Queue()
    tasks: dict[asyncio.Task[ToolResult], ToolCall] = {}
    for read in resolved_calls:
        report = _make_reporter(read.call, told_of) if library.can_stream(read.call.name) else None
        task = asyncio.create_task(_execute_call(read, library, context, turn, report))
        task.add_done_callback(told_of.put_nowait)
        tasks[task] = read.call
    try:
        while tasks:
            item = await told_of.get()
            if isinstance(item, ToolDelta):
                yield item
            else:
                yield ToolFinished(tasks.pop(item), item.result())
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def cancel_call(call: ToolCall, language: Language) -> ToolFinished:
    """The end of a call that the run's end cut short."""
    return ToolFinished(
        call, ToolResult(call.id, call.name, sentences.cancelled_call_message(call.name, language), "cancelled")
    )


def _resolve_call(call: ToolCall, library: ToolLibrary, language: Language) -> ResolvedCall:
    tool = library.find_tool(call.name)
    if tool is None:
        name = to_safe_name(call.name or "unnamed")
        message = library.get_unknown_tool_message(call.name, language)
        return _reject_call(call, name, ToolResult(call.id, name, message, "unknown_tool"))
    name = tool.definition.name
    if call.truncated:
        message = sentences.truncated_call_message(name, language)
        return _reject_call(call, name, ToolResult(call.id, name, message, "invalid_arguments"))
    parsed = parse_arguments(dict(call.arguments) if call.has_valid_arguments else call.raw, tool.definition.parameters)
    if parsed.value is None:
        message = sentences.unreadable_arguments_message(name, parsed.problem or "", call.arguments_json, language)
        return _reject_call(call, name, ToolResult(call.id, name, message, "invalid_arguments"))
    if not parsed.repairs and name == call.name:
        return ResolvedCall(call, parsed.value)
    repairs = (*call.repairs, *parsed.repairs)
    return ResolvedCall(replace(call, name=name, arguments=parsed.value, raw=None, repairs=repairs), parsed.value)


def _reject_call(call: ToolCall, name: str, failure: ToolResult) -> ResolvedCall:
    """Return a call that is answered with a failure, with a name and arguments that every provider accepts."""
    return ResolvedCall(make_sendable(call, name), {}, failure)


async def _execute_call(
    resolved_call: ResolvedCall,
    library: ToolLibrary,
    run_context: CallContext,
    turn: int,
    report: Callable[[str], None] | None,
) -> ToolResult:
    if resolved_call.failure is not None:
        return resolved_call.failure
    key = f"{run_context.run_id}-{turn}-{resolved_call.call.id}"
    own = CallContext(
        run_context.run_id,
        resolved_call.call.id,
        run_context.language,
        run_context.trace_id,
        run_context.agent_id,
        run_context.conversation_id,
        key,
        report,
        run_context.approve,
    )
    result = await library.call(resolved_call.call.name, resolved_call.arguments, own)
    return (
        replace(result, repairs=(*resolved_call.call.repairs, *result.repairs))
        if resolved_call.call.repairs
        else result
    )


def _make_reporter(call: ToolCall, queue: "asyncio.Queue[Any]") -> Callable[[str], None]:
    return lambda text: queue.put_nowait(ToolDelta(call, text))
