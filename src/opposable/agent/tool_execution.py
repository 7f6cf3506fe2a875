"""The calls of one reply: each read, made beside the others, and told the moment it ends."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from opposable.domain.call_context import CallContext
from opposable.domain.events import ToolDelta, ToolFinished, ToolStarted
from opposable.domain.language import Language
from opposable.domain.tools import ToolCall, ToolResult, new_call_id
from opposable.parsers import read_arguments
from opposable.tools import failure_messages as sentences
from opposable.tools.library import ToolLibrary
from opposable.tools.tool_names import safe_name


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A call as it was understood.

    `call` is what stands in the history: a safe name, an id of its own, arguments that are a JSON object, so that no
    provider chokes on it later. `arguments` are to be run, unless `failure` already says why they are not.
    """

    call: ToolCall
    arguments: dict[str, Any]
    failure: ToolResult | None = None


def read_calls(calls: Sequence[ToolCall], library: ToolLibrary, language: Language) -> tuple[ReadCall, ...]:
    """Understand the calls of a reply; what cannot be read is told, never guessed."""
    return tuple(_read(call, library, language) for call in with_own_ids(calls))


def with_own_ids(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls, each with an id that no other of them has."""
    taken: set[str] = set()
    own = []
    for call in calls:
        own.append(call if call.id and call.id not in taken else replace(call, id=new_call_id()))
        taken.add(own[-1].id)
    return tuple(own)


async def make(
    reads: Sequence[ReadCall], library: ToolLibrary, room: int | None, context: CallContext, turn: int = 0
) -> AsyncGenerator[ToolStarted | ToolDelta | ToolFinished, None]:
    """Make the calls together and yield each one's beginning, what it tells meanwhile and its end as they happen.

    Calls beyond `room` are refused. `turn` tells the idempotency keys of calls apart whose ids recur in a run. Leaving
    early cancels what still runs.
    """
    if room is not None:
        told = sentences.call_limit(context.language)
        reads = [
            read if n < room else replace(read, failure=ToolResult(read.call.id, read.call.name, told, "refused"))
            for n, read in enumerate(reads)
        ]
    for read in reads:
        yield ToolStarted(read.call)
    if len(reads) == 1 and not library.streams(reads[0].call.name):
        yield ToolFinished(reads[0].call, await _make_one(reads[0], library, context, turn, None))
        return
    told_of: asyncio.Queue[ToolDelta | asyncio.Task[ToolResult]] = asyncio.Queue()
    tasks: dict[asyncio.Task[ToolResult], ToolCall] = {}
    for read in reads:
        report = _reporting(read.call, told_of) if library.streams(read.call.name) else None
        task = asyncio.create_task(_make_one(read, library, context, turn, report))
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


def cut_short(call: ToolCall, language: Language) -> ToolFinished:
    """The end of a call that the run's end cut short."""
    return ToolFinished(call, ToolResult(call.id, call.name, sentences.cancelled(call.name, language), "cancelled"))


def _read(call: ToolCall, library: ToolLibrary, language: Language) -> ReadCall:
    tool = library.find(call.name)
    if tool is None:
        named = replace(call, name=safe_name(call.name or "unnamed"), arguments=_as_object(call.arguments))
        told = library.unknown(call.name, language)
        return ReadCall(named, {}, ToolResult(call.id, named.name, told, "unknown_tool"))
    name = tool.definition.name
    if call.truncated:
        kept = replace(call, name=name, arguments=_as_object(call.arguments))
        return ReadCall(kept, {}, ToolResult(call.id, name, sentences.truncated(name, language), "invalid_arguments"))
    read = read_arguments(call.arguments, tool.definition.parameters)
    if read.value is None:
        told = sentences.unreadable(name, read.problem or "", call.arguments, language)
        kept = replace(call, name=name, arguments=_as_object(call.arguments))
        return ReadCall(kept, {}, ToolResult(call.id, name, told, "invalid_arguments"))
    if not read.repairs and name == call.name:
        return ReadCall(call, read.value)
    mended = replace(
        call, name=name, arguments=orjson.dumps(read.value).decode(), repairs=(*call.repairs, *read.repairs)
    )
    return ReadCall(mended, read.value)


async def _make_one(
    read: ReadCall, library: ToolLibrary, run: CallContext, turn: int, report: Callable[[str], None] | None
) -> ToolResult:
    if read.failure is not None:
        return read.failure
    key = f"{run.run_id}-{turn}-{read.call.id}"
    own = CallContext(
        run.run_id,
        read.call.id,
        run.language,
        run.trace_id,
        run.agent_id,
        run.conversation_id,
        key,
        report,
        run.approve,
    )
    result = await library.call(read.call.name, read.arguments, own)
    return replace(result, repairs=(*read.call.repairs, *result.repairs)) if read.call.repairs else result


def _reporting(call: ToolCall, told_of: "asyncio.Queue[Any]") -> Callable[[str], None]:
    return lambda text: told_of.put_nowait(ToolDelta(call, text))


def _as_object(arguments: str) -> str:
    """Arguments that are shown again in the history: as they are when they are a JSON object, else quoted in one."""
    try:
        if isinstance(orjson.loads(arguments), dict):
            return arguments
    except orjson.JSONDecodeError:
        pass
    return orjson.dumps({"unreadable": arguments.encode("utf-8", "replace").decode()[:4000]}).decode()
