"""One run: ask the model, make the calls it wants, tell it what came of them, until there is an answer."""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from uuid import uuid4

from opposable import parsers as dialects
from opposable.agent import prompts
from opposable.agent.execution_context import is_block
from opposable.agent.failure_memory import NOTHING_KNOWN, Learning
from opposable.agent.follow_ups import Wish
from opposable.agent.guard_options import GUARDED, Guarding
from opposable.agent.history import estimated, repaired, spoken, trimmed
from opposable.agent.limits import DEFAULT_LIMITS, Alarm, Limits, OutOfTime, reached
from opposable.agent.run_monitor import Watch
from opposable.agent.tool_execution import ReadCall, cut_short, make, read_calls
from opposable.agent.tool_selection import Selection
from opposable.domain.call_context import NO_CONTEXT, CallContext
from opposable.domain.errors import ContextFull, ModelError
from opposable.domain.events import (
    Decided,
    Event,
    ModelReplied,
    Reply,
    RunFinished,
    RunStarted,
    StopReason,
    ToolFinished,
)
from opposable.domain.messages import Message, tool, user
from opposable.domain.tools import ToolCall, ToolDefinition, ToolResult
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions, ToolChoice
from opposable.tools.library import ToolLibrary

FORCED_REPLIES = 3
"""A forced tool choice holds until a call worked, for this many replies at most: forced for good, a run never ends."""

log = logging.getLogger("opposable.agent")


async def run(
    model: Model,
    library: ToolLibrary,
    messages: Sequence[Message],
    *,
    limits: Limits = DEFAULT_LIMITS,
    options: ModelOptions = DEFAULT_OPTIONS,
    context: CallContext = NO_CONTEXT,
    guarding: Guarding = GUARDED,
    learning: Learning | None = None,
) -> AsyncGenerator[Event, None]:
    """Work on the last message of `messages` and tell everything that happens; the last event is `RunFinished`.

    `context` gives the ids the run is known by and whom to ask for approval; its run gets an id where it has none, and
    its language is that of the messages. `guarding` says what keeps calls from failing twice, `learning` what is known
    of failures in earlier runs and where this one's are remembered.
    Leaving the iterator early stops the model and the tools. A limit ends the run in an answer too, whether the model
    gives one or not. Raises: `ModelError` when the model does not answer before that.
    """
    history = repaired(messages)
    context = replace(context, run_id=context.run_id or uuid4().hex, language=spoken(messages))
    watch = await _watch(library, history, context, guarding, learning)
    selection = Selection(library, history, options)
    state = _State(history, context, options, limits.context, selection, watch, guarding.insisting)
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
                if state.hopeless:
                    break
            if over is not None:
                yield Decided("complete", prompts.limit(over, state.context.language))
            if over is not None or state.hopeless:
                try:
                    async with aclosing(_last_chance(model, library, state, over, alarm)) as events:
                        async for event in events:
                            yield event
                except ModelError as error:  # the run is over all the same, with what it has
                    log.warning("The model gave no answer at the end of run %s: %s", state.context.run_id, error)
        except OutOfTime:
            over = "time"
            for end in state.cut_short():
                yield end
    best = None if watch is None else watch.best
    text = state.text or prompts.no_answer(over or "answer", best, state.context.language)
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
    watch: Watch | None
    insists: bool
    usage: Usage = NO_USAGE
    turns: int = 0
    calls: int = 0
    text: str = ""
    answered: bool = False
    reminded: bool = False
    hopeless: bool = False
    expected: ToolChoice = "auto"
    later: tuple[ToolCall, ...] = ()
    reads: tuple[ReadCall, ...] = ()
    results: dict[str, ToolResult] = field(default_factory=dict)

    def cut_short(self) -> list[ToolFinished]:
        """End the calls that are left without a result, so that no call stands alone in the history."""
        left = [read.call for read in self.reads if read.call.id not in self.results]
        ends = [cut_short(call, self.context.language) for call in left]
        self.results |= {end.call.id: end.result for end in ends}
        self.tell()
        return ends

    def to_send(self) -> tuple[list[Message], tuple[ToolDefinition, ...]]:
        """The messages that fit, with what the model should know of the run beside the last; and the tools."""
        definitions, watch = self.selection.definitions, self.watch
        if watch is None:
            return self.history if self.window is None else trimmed(self.history, self.window), definitions
        if self.window is None:
            return watch.beside(self.history, left_out=False), watch.definitions(definitions)
        sent = trimmed(self.history, self.window - watch.room)
        return watch.beside(sent, left_out=len(sent) < len(self.history)), watch.definitions(definitions)

    def _quoted(self, said: str) -> str:
        """What a tool said, with its markup broken; that it is quoted, where it may hold a call."""
        safe = dialects.defuse(said)
        names = (tool.name for tool in self.selection.definitions)
        if safe == said or self.watch is None or not any(name in said for name in names):
            return safe
        return f"{safe}\n\n{prompts.only_quoted(self.context.language)}"

    def asks_on(self) -> Wish | None:
        """What the model is asked in place of taking its answer; None where the answer is to be taken."""
        if self.watch is None or not self.insists or self.options.tool_choice == "none":
            return None
        return self.watch.unfinished.asks(self.context.language)

    def goes_on(self) -> Wish | None:
        """What a model that writes its calls as text is asked as a turn ends; None where it is to go on by itself."""
        if self.watch is None or not self.insists or self.options.tool_choice == "none":
            return None
        if not any(call.dialect != "native" for call in self.history[-1].tool_calls):
            return None
        return self.watch.unfinished.goes_on(self.context.language)

    def reminder(self, copied: bool) -> str:
        """What asks for an answer where there was none: nothing, or a copy of what the run said of itself."""
        if copied and self.watch is not None:
            self.watch.is_silent = True
            return prompts.own_words(self.context.language)
        return prompts.empty_reply(self.context.language)

    def ask(self, wish: Wish) -> Decided:
        """Ask the model on."""
        self.history.append(user(wish.text))
        self.expected = wish.expected
        return Decided("replan", wish.text)

    def checked(self, reads: tuple[ReadCall, ...]) -> None:
        """Take the calls as they will be made; the history shows what was adjusted in them."""
        made = {read.call.id: read for read in reads}
        self.reads = tuple(made.get(read.call.id, read) for read in self.reads)
        self.history[-1] = _as_understood(self.history[-1], self.reads)

    def tell(self) -> None:
        """Put the results into the history in the order of their calls."""
        self.history += [
            tool(r.call.id, r.call.name, self._quoted(self.results[r.call.id].content)) for r in self.reads
        ]
        self.calls += len(self.reads)
        self.reads, self.results = (), {}


async def _ask(model: Model, library: ToolLibrary, state: _State, alarm: Alarm) -> AsyncGenerator[Event, None]:
    """One reply of the model."""
    state.turns += 1
    reply = None
    options = state.options if state.expected == "auto" else replace(state.options, expected=state.expected)
    state.expected = "auto"
    while True:
        sent, definitions = state.to_send()
        try:
            async with aclosing(alarm.each(model.stream(sent, definitions, options))) as parts:
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
    state.later = reply.waiting
    if state.reads:
        return
    if state.watch is not None:
        state.watch.unfinished.hold(reply.held)
    state.text = said.content.strip() or state.text
    wish = state.asks_on()
    if wish is not None:
        yield state.ask(wish)
        return
    copied = state.watch is not None and is_block(said.content)
    state.answered = (bool(state.text) and not copied) or state.reminded
    if not state.answered:
        state.reminded = True
        state.history.append(user(state.reminder(copied)))


async def _do(library: ToolLibrary, limits: Limits, state: _State, alarm: Alarm) -> AsyncGenerator[Event, None]:
    """The calls of the last reply."""
    watch = state.watch
    for part in (state.reads,) if watch is None else watch.replied(state.history[-1].content, state.reads, state.later):
        reads = part
        if watch is not None:
            reads = watch.checked(part)
            state.checked(reads)
        room = None if limits.tool_calls is None else limits.tool_calls - state.calls - len(state.results)
        async with aclosing(alarm.each(make(reads, library, room, state.context, state.turns))) as timed:
            async for event in timed:
                if type(event) is ToolFinished:
                    if watch is not None:
                        event = _told(event, watch)
                    state.results[event.call.id] = event.result
                yield event
    worked = any(result.failure is None for result in state.results.values())
    state.selection.learn(state.results.values())
    wish = state.goes_on()
    state.tell()
    decision = None if watch is None else await watch.turn_over()
    if decision is not None:
        state.hopeless = decision.action == "complete"
        yield Decided(decision.action, decision.reason)
    if wish is not None and not state.hopeless:
        yield state.ask(wish)
    if state.options.tool_choice not in ("auto", "none") and (worked or state.turns >= FORCED_REPLIES):
        state.options = replace(state.options, tool_choice="auto")


async def _last_chance(
    model: Model, library: ToolLibrary, state: _State, over: StopReason | None, alarm: Alarm
) -> AsyncGenerator[Event, None]:
    """One more reply, without tools, for the answer; None is a run that came to nothing but refused calls."""
    language = state.context.language
    wish = prompts.came_to_nothing(language) if over is None else prompts.last_chance(over, language)
    state.history.append(user(wish))
    if state.watch is not None:
        state.watch.advice = ""
    state.options = replace(state.options, tool_choice="none")
    async with aclosing(_ask(model, library, state, alarm)) as events:
        async for event in events:
            yield event
    if state.reads:  # it called a tool all the same
        for end in state.cut_short():
            yield end


async def _watch(
    library: ToolLibrary,
    history: Sequence[Message],
    context: CallContext,
    guarding: Guarding,
    learning: Learning | None,
) -> Watch | None:
    """What watches the run, with what is known as it begins."""
    if guarding.is_off:
        return None
    known = NOTHING_KNOWN if learning is None or not guarding.learning else await learning.patterns(library)
    task = next((message.content for message in reversed(history) if message.role == "user"), "")
    return Watch(library, task, context.language, guarding, learning, known)


def _told(event: ToolFinished, watch: Watch) -> ToolFinished:
    result = watch.ended(event.call, event.result)
    return event if result is event.result else ToolFinished(event.call, result)


def _as_understood(message: Message, reads: Sequence[ReadCall]) -> Message:
    """The reply with its calls as they were understood."""
    calls = tuple(read.call for read in reads)
    if all(own is call for own, call in zip(calls, message.tool_calls, strict=True)):
        return message
    return Message("assistant", message.content, tool_calls=calls, thinking=message.thinking)
