"""One run: ask the model, make the calls it wants, tell it what came of them, until there is an answer."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from uuid import uuid4

from opposable import dialects
from opposable.agent import prompts
from opposable.agent.calls import ReadCall, cut_short, make, read_calls
from opposable.agent.history import estimated, repaired, spoken, trimmed
from opposable.agent.limits import DEFAULT_LIMITS, Alarm, Limits, OutOfTime, reached
from opposable.agent.selection import Selection
from opposable.domain.errors import ContextFull, ModelError
from opposable.domain.events import Event, ModelReplied, Reply, RunFinished, RunStarted, StopReason, ToolFinished
from opposable.domain.messages import Message, tool, user
from opposable.domain.tools import ToolResult
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions
from opposable.tools.base import NO_CONTEXT, CallContext
from opposable.tools.library import ToolLibrary

FORCED_REPLIES = 3
"""A forced tool choice holds until a call worked, for this many replies at most: forced for good, a run never ends."""


async def run(
    model: Model,
    library: ToolLibrary,
    messages: Sequence[Message],
    *,
    limits: Limits = DEFAULT_LIMITS,
    options: ModelOptions = DEFAULT_OPTIONS,
    context: CallContext = NO_CONTEXT,
) -> AsyncGenerator[Event, None]:
    """Work on the last message of `messages` and tell everything that happens; the last event is `RunFinished`.

    `context` gives the ids the run is known by and whom to ask for approval; its run gets an id where it has none, and
    its language is that of the messages.
    Leaving the iterator early stops the model and the tools. A limit ends the run in an answer too. Raises:
    `ModelError` when the model does not answer.
    """
    history = repaired(messages)
    context = replace(context, run_id=context.run_id or uuid4().hex, language=spoken(messages))
    state = _State(history, context, options, limits.context, Selection(library, history, options))
    start = len(history)
    over: StopReason | None = None
    yield RunStarted(state.context.run_id)
    with Alarm(limits.seconds) as alarm:
        try:
            while not state.answered:
                over = reached(limits, state.turns, state.calls, state.usage)
                if over is not None:
                    break
                async with aclosing(_ask(model, library, state, alarm)) as events:
                    async for event in events:
                        yield event
                if state.reads:
                    async with aclosing(_do(library, limits, state, alarm)) as events:
                        async for event in events:
                            yield event
            if over is not None:
                async with aclosing(_last_chance(model, library, state, over, alarm)) as events:
                    async for event in events:
                        yield event
        except OutOfTime:
            over = "time"
            for end in state.cut_short():
                yield end
    text = state.text or prompts.no_answer(over or "answer", state.history, state.context.language)
    added = tuple(state.history[start:])
    cost = None if limits.price is None else limits.price.of(state.usage)
    yield RunFinished(text, over or "answer", state.usage, state.turns, state.calls, added, cost)


@dataclass(slots=True)
class _State:
    """How far a run has come: what was said, what was used, the calls of the last reply and what came of them."""

    history: list[Message]
    context: CallContext
    options: ModelOptions
    window: int | None
    selection: Selection
    usage: Usage = NO_USAGE
    turns: int = 0
    calls: int = 0
    text: str = ""
    answered: bool = False
    reminded: bool = False
    reads: tuple[ReadCall, ...] = ()
    results: dict[str, ToolResult] = field(default_factory=dict)

    def cut_short(self) -> list[ToolFinished]:
        """End the calls that are left without a result, so that no call stands alone in the history."""
        left = [read.call for read in self.reads if read.call.id not in self.results]
        ends = [cut_short(call, self.context.language) for call in left]
        self.results |= {end.call.id: end.result for end in ends}
        self.tell()
        return ends

    def tell(self) -> None:
        """Put the results into the history in the order of their calls."""
        self.history += [
            tool(r.call.id, r.call.name, dialects.defuse(self.results[r.call.id].content)) for r in self.reads
        ]
        self.calls += len(self.reads)
        self.reads, self.results = (), {}


async def _ask(model: Model, library: ToolLibrary, state: _State, alarm: Alarm) -> AsyncGenerator[Event, None]:
    """One reply of the model."""
    state.turns += 1
    reply = None
    while True:
        sent = state.history if state.window is None else trimmed(state.history, state.window)
        try:
            async with aclosing(alarm.each(model.stream(sent, state.selection.definitions, state.options))) as parts:
                async for part in parts:
                    if type(part) is Reply:
                        reply = part
                    else:
                        yield part  # type: ignore[misc]  # a Reply is the one part that is no event
            break
        except ContextFull:
            state.window = (state.window or estimated(state.history)) // 2
            if len(trimmed(state.history, state.window)) == len(sent):
                raise
    if reply is None:
        raise ModelError(f"The stream of model {model.name!r} ended without a reply.")
    state.usage += reply.usage
    state.reads = read_calls(reply.message.tool_calls, library, state.context.language)
    said = _as_understood(reply.message, state.reads)
    state.history.append(said)
    yield ModelReplied(state.turns, said, reply.finish, reply.usage)
    if state.reads:
        return
    state.text = said.content.strip()
    state.answered = bool(state.text) or state.reminded
    if not state.answered:
        state.reminded = True
        state.history.append(user(prompts.empty_reply(state.context.language)))


async def _do(library: ToolLibrary, limits: Limits, state: _State, alarm: Alarm) -> AsyncGenerator[Event, None]:
    """The calls of the last reply."""
    room = None if limits.tool_calls is None else limits.tool_calls - state.calls
    async with aclosing(alarm.each(make(state.reads, library, room, state.context, state.turns))) as timed:
        async for event in timed:
            if type(event) is ToolFinished:
                state.results[event.call.id] = event.result
            yield event
    worked = any(result.failure is None for result in state.results.values())
    state.selection.learn(state.results.values())
    state.tell()
    if state.options.tool_choice not in ("auto", "none") and (worked or state.turns >= FORCED_REPLIES):
        state.options = replace(state.options, tool_choice="auto")


async def _last_chance(
    model: Model, library: ToolLibrary, state: _State, over: StopReason, alarm: Alarm
) -> AsyncGenerator[Event, None]:
    """One more reply, without tools, for the answer."""
    state.history.append(user(prompts.last_chance(over, state.context.language)))
    state.options = replace(state.options, tool_choice="none")
    async with aclosing(_ask(model, library, state, alarm)) as events:
        async for event in events:
            yield event
    if state.reads:  # it called a tool all the same
        for end in state.cut_short():
            yield end


def _as_understood(message: Message, reads: Sequence[ReadCall]) -> Message:
    """The reply with its calls as they were understood."""
    calls = tuple(read.call for read in reads)
    if all(own is call for own, call in zip(calls, message.tool_calls, strict=True)):
        return message
    return Message("assistant", message.content, tool_calls=calls, thinking=message.thinking)
