"""One run: ask the model, make the calls it wants, tell it what came of them, until there is an answer."""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from uuid import uuid4

from opposable import parsers as dialects
from opposable.agent import prompts
from opposable.agent.execution_context import is_status_note
from opposable.agent.failure_memory import NO_PATTERNS, ScopedMemory
from opposable.agent.follow_ups import FollowUp
from opposable.agent.guard_options import ALL_GUARDS, GuardOptions
from opposable.agent.history import detect_conversation_language, estimate_tokens, match_results_to_calls, trim_messages
from opposable.agent.limits import DEFAULT_LIMITS, Deadline, DeadlineExceeded, Limits, find_exceeded_limit
from opposable.agent.run_monitor import RunMonitor
from opposable.agent.tool_execution import ResolvedCall, cancel_call, execute_calls, resolve_calls
from opposable.agent.tool_selection import ToolSelection
from opposable.domain.call_context import NO_CONTEXT, CallContext
from opposable.domain.errors import ContextFull, ModelError
from opposable.domain.events import (
    DecisionMade,
    Event,
    ModelReplied,
    Reply,
    RunFinished,
    RunStarted,
    StopReason,
    ToolFinished,
)
from opposable.domain.messages import Message, tool_message, user_message
from opposable.domain.tools import ToolCall, ToolDefinition, ToolResult
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions, ToolChoice
from opposable.tools.library import ToolLibrary

MAX_FORCED_REPLIES = 3
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
    guards: GuardOptions = ALL_GUARDS,
    failure_memory: ScopedMemory | None = None,
) -> AsyncGenerator[Event, None]:
    """Work on the last message of `messages` and tell everything that happens; the last event is `RunFinished`.

    `context` gives the ids the run is known by and whom to ask for approval; its run gets an id where it has none, and
    its language is that of the messages. `guarding` says what keeps calls from failing twice, `learning` what is known
    of failures in earlier runs and where this one's are remembered.
    Leaving the iterator early stops the model and the tools. A limit ends the run in an answer too, whether the model
    gives one or not. Raises: `ModelError` when the model does not answer before that.
    """
    history = match_results_to_calls(messages)
    context = replace(context, run_id=context.run_id or uuid4().hex, language=detect_conversation_language(messages))
    watch = await _create_monitor(library, history, context, guards, failure_memory)
    selection = ToolSelection(library, history, options)
    state = _RunState(history, context, options, limits.context, selection, watch, guards.follow_ups)
    start = len(history)
    over: StopReason | None = None
    yield RunStarted(state.context.run_id)
    with Deadline(limits.seconds) as alarm:
        try:
            while not state.is_answered:
                over = find_exceeded_limit(limits, state.turn_count, state.call_count, state.usage)
                if over is not None:
                    break
                async with aclosing(_request_reply(model, library, state, alarm)) as events:
                    async for event in events:
                        yield event
                if state.resolved_calls:
                    async with aclosing(_execute_calls(library, limits, state, alarm)) as events:
                        async for event in events:
                            yield event
                if state.gave_up:
                    break
            if over is not None:
                yield DecisionMade("complete", prompts.explain_limit(over, state.context.language))
            if over is not None or state.gave_up:
                try:
                    async with aclosing(_request_final_answer(model, library, state, over, alarm)) as events:
                        async for event in events:
                            yield event
                except ModelError as error:  # the run is over all the same, with what it has
                    log.warning("The model gave no answer at the end of run %s: %s", state.context.run_id, error)
        except DeadlineExceeded:
            over = "time"
            for end in state.cancel_unfinished_calls():
                yield end
    best = None if watch is None else watch.last_success
    text = state.text or prompts.format_missing_answer(over or "answer", best, state.context.language)
    added = tuple(state.history[start:])
    cost = None if limits.price is None else limits.price.compute_cost(state.usage)
    yield RunFinished(text, over or "answer", state.usage, state.turn_count, state.call_count, added, cost)


@dataclass(slots=True)
class _RunState:
    """How far a run has come: what was said, what was used, the calls of the last reply and what came of them."""

    history: list[Message]
    context: CallContext
    options: ModelOptions
    context_window: int | None
    tool_selection: ToolSelection
    monitor: RunMonitor | None
    has_follow_ups: bool
    usage: Usage = NO_USAGE
    turn_count: int = 0
    call_count: int = 0
    text: str = ""
    is_answered: bool = False
    was_reminded: bool = False
    gave_up: bool = False
    tool_choice_hint: ToolChoice = "auto"
    deferred_calls: tuple[ToolCall, ...] = ()
    resolved_calls: tuple[ResolvedCall, ...] = ()
    results: dict[str, ToolResult] = field(default_factory=dict)

    def cancel_unfinished_calls(self) -> list[ToolFinished]:
        """End the calls that are left without a result, so that no call stands alone in the history."""
        left = [read.call for read in self.resolved_calls if read.call.id not in self.results]
        ends = [cancel_call(call, self.context.language) for call in left]
        self.results |= {end.call.id: end.result for end in ends}
        self.append_results()
        return ends

    def build_request(self) -> tuple[list[Message], tuple[ToolDefinition, ...]]:
        """The messages that fit, with what the model should know of the run beside the last; and the tools."""
        definitions, watch = self.tool_selection.definitions, self.monitor
        if watch is None:
            return self.history if self.context_window is None else trim_messages(
                self.history, self.context_window
            ), definitions
        if self.context_window is None:
            return watch.with_status_note(self.history, is_trimmed=False), watch.annotate_definitions(definitions)
        sent = trim_messages(self.history, self.context_window - watch.reserved_tokens)
        return watch.with_status_note(sent, is_trimmed=len(sent) < len(self.history)), watch.annotate_definitions(
            definitions
        )

    def _quote_result(self, result_text: str) -> str:
        """What a tool said, with its markup broken; that it is quoted, where it may hold a call."""
        safe = dialects.escape_special_tokens(result_text)
        names = (tool.name for tool in self.tool_selection.definitions)
        if safe == result_text or self.monitor is None or not any(name in result_text for name in names):
            return safe
        return f"{safe}\n\n{prompts.note_quoted_text(self.context.language)}"

    def follow_up_before_answer(self) -> FollowUp | None:
        """What the model is asked in place of taking its answer; None where the answer is to be taken."""
        if self.monitor is None or not self.has_follow_ups or self.options.tool_choice == "none":
            return None
        return self.monitor.follow_ups.before_answer(self.context.language)

    def follow_up_after_turn(self) -> FollowUp | None:
        """What a model that writes its calls as text is asked as a turn ends; None where it is to go on by itself."""
        if self.monitor is None or not self.has_follow_ups or self.options.tool_choice == "none":
            return None
        if not any(call.dialect != "native" for call in self.history[-1].tool_calls):
            return None
        return self.monitor.follow_ups.after_turn(self.context.language)

    def build_reminder(self, is_copied: bool) -> str:
        """What asks for an answer where there was none: nothing, or a copy of what the run said of itself."""
        if is_copied and self.monitor is not None:
            self.monitor.is_silent = True
            return prompts.ask_for_own_words(self.context.language)
        return prompts.ask_again_after_empty_reply(self.context.language)

    def append_follow_up(self, follow_up: FollowUp) -> DecisionMade:
        """Ask the model on."""
        self.history.append(user_message(follow_up.text))
        self.tool_choice_hint = follow_up.tool_choice
        return DecisionMade("replan", follow_up.text)

    def update_calls(self, screened_calls: tuple[ResolvedCall, ...]) -> None:
        """Take the calls as they will be made; the history shows what was adjusted in them."""
        made = {read.call.id: read for read in screened_calls}
        self.resolved_calls = tuple(made.get(read.call.id, read) for read in self.resolved_calls)
        self.history[-1] = _with_resolved_calls(self.history[-1], self.resolved_calls)

    def append_results(self) -> None:
        """Put the results into the history in the order of their calls."""
        self.history += [
            tool_message(r.call.id, r.call.name, self._quote_result(self.results[r.call.id].content))
            for r in self.resolved_calls
        ]
        self.call_count += len(self.resolved_calls)
        self.resolved_calls, self.results = (), {}


async def _request_reply(
    model: Model, library: ToolLibrary, state: _RunState, deadline: Deadline
) -> AsyncGenerator[Event, None]:
    """One reply of the model."""
    state.turn_count += 1
    reply = None
    options = (
        state.options
        if state.tool_choice_hint == "auto"
        else replace(state.options, tool_choice_hint=state.tool_choice_hint)
    )
    state.tool_choice_hint = "auto"
    while True:
        sent, definitions = state.build_request()
        try:
            async with aclosing(deadline.iterate(model.stream(sent, definitions, options))) as parts:
                async for part in parts:
                    if type(part) is Reply:
                        reply = part
                    else:
                        yield part  # type: ignore[misc]  # a Reply is the one part that is no event
            break
        except ContextFull:
            state.context_window = (state.context_window or estimate_tokens(state.history)) // 2
            if len(trim_messages(state.history, state.context_window)) == len(sent):
                raise
    if reply is None:
        raise ModelError(f"The stream of model {model.name!r} ended without a reply.")
    state.usage += reply.usage
    state.resolved_calls = resolve_calls(reply.message.tool_calls, library, state.context.language)
    said = _with_resolved_calls(reply.message, state.resolved_calls)
    state.history.append(said)
    yield ModelReplied(state.turn_count, said, reply.finish, reply.usage)
    state.deferred_calls = reply.deferred_calls
    if state.resolved_calls:
        return
    if state.monitor is not None:
        state.monitor.follow_ups.note_withheld_calls(reply.withheld_calls)
    state.text = said.content.strip() or state.text
    wish = state.follow_up_before_answer()
    if wish is not None:
        yield state.append_follow_up(wish)
        return
    copied = state.monitor is not None and is_status_note(said.content)
    state.is_answered = (bool(state.text) and not copied) or state.was_reminded
    if not state.is_answered:
        state.was_reminded = True
        state.history.append(user_message(state.build_reminder(copied)))


async def _execute_calls(
    library: ToolLibrary, limits: Limits, state: _RunState, deadline: Deadline
) -> AsyncGenerator[Event, None]:
    """The calls of the last reply."""
    watch = state.monitor
    for part in (
        (state.resolved_calls,)
        if watch is None
        else watch.begin_turn(state.history[-1].content, state.resolved_calls, state.deferred_calls)
    ):
        reads = part
        if watch is not None:
            reads = watch.screen_calls(part)
            state.update_calls(reads)
        room = None if limits.tool_calls is None else limits.tool_calls - state.call_count - len(state.results)
        async with aclosing(
            deadline.iterate(execute_calls(reads, library, room, state.context, state.turn_count))
        ) as timed:
            async for event in timed:
                if type(event) is ToolFinished:
                    if watch is not None:
                        event = _record_result(event, watch)
                    state.results[event.call.id] = event.result
                yield event
    worked = any(result.failure is None for result in state.results.values())
    state.tool_selection.update_from_results(state.results.values())
    wish = state.follow_up_after_turn()
    state.append_results()
    decision = None if watch is None else await watch.finish_turn()
    if decision is not None:
        state.gave_up = decision.action == "complete"
        yield DecisionMade(decision.action, decision.reason)
    if wish is not None and not state.gave_up:
        yield state.append_follow_up(wish)
    if state.options.tool_choice not in ("auto", "none") and (worked or state.turn_count >= MAX_FORCED_REPLIES):
        state.options = replace(state.options, tool_choice="auto")


async def _request_final_answer(
    model: Model, library: ToolLibrary, state: _RunState, exceeded_limit: StopReason | None, deadline: Deadline
) -> AsyncGenerator[Event, None]:
    """One more reply, without tools, for the answer; None is a run that came to nothing but refused calls."""
    language = state.context.language
    wish = (
        prompts.ask_for_answer_after_blocked_calls(language)
        if exceeded_limit is None
        else prompts.ask_for_final_answer(exceeded_limit, language)
    )
    state.history.append(user_message(wish))
    if state.monitor is not None:
        state.monitor.advice = ""
    state.options = replace(state.options, tool_choice="none")
    async with aclosing(_request_reply(model, library, state, deadline)) as events:
        async for event in events:
            yield event
    if state.resolved_calls:  # it called a tool all the same
        for end in state.cancel_unfinished_calls():
            yield end


async def _create_monitor(
    library: ToolLibrary,
    history: Sequence[Message],
    context: CallContext,
    guards: GuardOptions,
    failure_memory: ScopedMemory | None,
) -> RunMonitor | None:
    """What watches the run, with what is known as it begins."""
    if guards.is_disabled:
        return None
    known = (
        NO_PATTERNS
        if failure_memory is None or not guards.failure_memory
        else await failure_memory.get_patterns(library)
    )
    task = next((message.content for message in reversed(history) if message.role == "user"), "")
    return RunMonitor(library, task, context.language, guards, failure_memory, known)


def _record_result(event: ToolFinished, monitor: RunMonitor) -> ToolFinished:
    result = monitor.record_result(event.call, event.result)
    return event if result is event.result else ToolFinished(event.call, result)


def _with_resolved_calls(message: Message, resolved_calls: Sequence[ResolvedCall]) -> Message:
    """The reply with its calls as they were understood."""
    calls = tuple(read.call for read in resolved_calls)
    if all(own is call for own, call in zip(calls, message.tool_calls, strict=True)):
        return message
    return Message("assistant", message.content, tool_calls=calls, thinking=message.thinking)
