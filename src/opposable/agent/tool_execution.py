"""Resolution and concurrent execution of the tool calls of one reply."""

import asyncio
import operator
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from opposable import parsers  # lazy: loaded with the first call to repair
from opposable.domain.call_context import CallContext
from opposable.domain.errors import FieldProblem, InvalidArguments
from opposable.domain.events import CUT_OFF, Reply, ToolDelta, ToolFinished
from opposable.domain.language import Language
from opposable.domain.localized_text import localize
from opposable.domain.messages import Message
from opposable.domain.tools import FailureKind, ToolCall, ToolDefinition, ToolResult, new_call_id
from opposable.tools import failure_messages as sentences
from opposable.tools.invocation import CheckedArguments, check_call, copy_arguments
from opposable.tools.library import ToolLibrary
from opposable.tools.registry import RegisteredTool
from opposable.tools.tool_names import to_safe_name

Resolved = TypeVar("Resolved")


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """A tool call matched to a tool of the library.

    Attributes:
        call: The call for the history: a safe name, a unique id, and arguments that every provider accepts.
        arguments: The arguments to run the tool with, typed by its schema. The tool may change them, so they are a copy.
        failure: The result of a call that cannot be run; None if it can.
        can_stream: Whether the call may report deltas of its result.
        checked: What the validation of `arguments` returned; None if `ToolLibrary.call` has to validate them.
    """

    call: ToolCall
    arguments: dict[str, Any]
    failure: ToolResult | None = None
    requires_approval: bool = False
    can_stream: bool = False
    checked: CheckedArguments | None = None

    def refuse(self, message: str) -> "ResolvedCall":
        """Return the call with a failure in place of its execution."""
        return replace(self, failure=ToolResult(self.call.id, self.call.name, message, "refused", attempts=0))


def resolve_calls(reply: Reply, library: ToolLibrary, language: Language) -> Sequence[ResolvedCall]:
    """Resolve the calls of a reply. One that cannot be resolved, or may be cut off, gets a failure, never a guess."""
    calls = assign_unique_ids(reply.message.tool_calls)
    if reply.finish in CUT_OFF:
        calls = tuple(replace(call, truncated=True) for call in calls)
    return [_resolve_call(call, library, language) for call in calls]


def with_calls(message: Message, resolved_calls: Sequence[ResolvedCall]) -> Message:
    """Return a reply with its calls as they were resolved; the same object where nothing changed."""
    calls = [resolved.call for resolved in resolved_calls]
    is_unchanged = all(map(operator.is_, calls, message.tool_calls))
    return message if is_unchanged else replace(message, tool_calls=tuple(calls))


def assign_unique_ids(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Return the calls, each with an id of its own."""
    used_ids: set[str] = set()
    unique_calls = []
    for call in calls:
        unique_calls.append(call if call.id and call.id not in used_ids else replace(call, id=new_call_id()))
        used_ids.add(unique_calls[-1].id)
    return tuple(unique_calls)


def make_sendable(call: ToolCall, name: str, max_characters: int = 4000) -> ToolCall:
    """Return the call in a form that every provider accepts in a history.

    Malformed arguments are quoted in an object, cut to `max_characters`.
    """
    if call.has_valid_arguments:
        return replace(call, name=name)
    text = (call.raw or "").encode("utf-8", "replace").decode()[:max_characters]
    return replace(call, name=name, arguments={"unreadable": text}, raw=None)


async def execute_calls(
    resolved_calls: Sequence[ResolvedCall], library: ToolLibrary, context: CallContext, turn: int = 0
) -> AsyncGenerator[ToolDelta | ToolFinished, None]:
    """Run the calls of one reply concurrently and yield their events as they happen.

    Closing the iterator cancels the calls that still run. The turn of the run is part of each idempotency key, because
    call ids can recur in a run.
    """
    if len(resolved_calls) == 1 and not resolved_calls[0].can_stream:  # the most frequent case needs no queue
        result = await _execute_call(resolved_calls[0], library, context, turn, None)
        yield ToolFinished(resolved_calls[0].call, result)
        return
    queue: asyncio.Queue[ToolDelta | asyncio.Task[ToolResult]] = asyncio.Queue()
    tasks: dict[asyncio.Task[ToolResult], ToolCall] = {}
    for resolved_call in resolved_calls:
        task = asyncio.create_task(_execute_call(resolved_call, library, context, turn, queue))
        task.add_done_callback(queue.put_nowait)
        tasks[task] = resolved_call.call
    try:
        while tasks:
            item = await queue.get()
            if isinstance(item, ToolDelta):
                yield item
            else:
                yield ToolFinished(tasks.pop(item), item.result())
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def _resolve_call(call: ToolCall, library: ToolLibrary, language: Language) -> ResolvedCall:
    tool = library.find_registered_tool(call.name)
    if tool is None:
        message = library.get_unknown_tool_message(call.name, language)
        return _reject_call(call, to_safe_name(call.name or "unnamed"), message, "unknown_tool")
    resolved = resolve_arguments(call, tool.definition, partial(_check_call, tool), language)
    return resolved if isinstance(resolved, ResolvedCall) else _reject_call(call, tool.name, resolved)


def resolve_arguments(
    call: ToolCall, tool: ToolDefinition, check: Callable[[ToolCall], Resolved], language: Language
) -> Resolved | str:
    """Return what `check` returns for a call, coerced without loss if it raises `InvalidArguments`, else a message."""
    if call.truncated:
        return sentences.truncated_call_message(tool.name, language)
    problems: Sequence[FieldProblem] = ()
    if call.has_valid_arguments:
        try:
            return check(call)
        except InvalidArguments as error:
            problems = error.problems
    given = dict(call.arguments) if call.has_valid_arguments else call.raw
    parsed = parsers.repair_arguments(given, tool.parameters, problems)
    if parsed.value is not None:
        try:
            return check(replace(call, arguments=parsed.value, raw=None, repairs=(*call.repairs, *parsed.repairs)))
        except InvalidArguments as error:
            problems = problems or error.problems
    if problems:
        return sentences.invalid_arguments_message(tool.name, problems, language)
    return sentences.unreadable_arguments_message(tool.name, parsed.problem or "", call.arguments_json, language)


def _check_call(tool: RegisteredTool, call: ToolCall) -> ResolvedCall:
    """Return a call with its validated arguments. Raises: `InvalidArguments`."""
    items = call.arguments.items()  # the tool may change the copy; texts and numbers cannot change
    arguments = {name: copy_arguments(one) if isinstance(one, list | dict) else one for name, one in items}
    checked = check_call(tool, arguments)
    named = call if tool.name == call.name else replace(call, name=tool.name)
    return ResolvedCall(named, arguments, can_stream=tool.streams, checked=checked)


def _reject_call(call: ToolCall, name: str, message: str, failure: FailureKind = "invalid_arguments") -> ResolvedCall:
    """Return a call that is answered with a failure, with a name and arguments that every provider accepts."""
    return ResolvedCall(make_sendable(call, name), dict(call.arguments), ToolResult(call.id, name, message, failure))


async def _execute_call(
    resolved_call: ResolvedCall, library: ToolLibrary, run_context: CallContext, turn: int, queue: Any
) -> ToolResult:
    """Return the result of a call; what the tool reports while it runs goes to the queue."""
    call = resolved_call.call
    if (failure := resolved_call.failure) is not None:
        return replace(failure, content=localize(failure.content, run_context.language))
    context = replace(
        run_context,
        call_id=call.id,
        idempotency_key=f"{run_context.run_id}-{turn}-{call.id}",
        report=(lambda text: queue.put_nowait(ToolDelta(call, text))) if resolved_call.can_stream else None,
        requires_approval=resolved_call.requires_approval,
    )
    result = await library.call(call.name, resolved_call.arguments, context, resolved_call.checked)
    return replace(result, repairs=(*call.repairs, *result.repairs)) if call.repairs else result
