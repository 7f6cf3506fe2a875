"""The agent loop: request a reply and execute its calls until the model answers."""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from uuid import uuid4

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
from opposable.parsers import escape_special_tokens
from opposable.tools.library import ToolLibrary

MAX_FORCED_REPLIES = 3
"""Replies for which a forced tool choice holds at most. It ends earlier once a call succeeds."""

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
    """Run the agent loop on a conversation and yield its events.

    The last one is `RunFinished`. Closing the iterator cancels the model request and the tool calls in flight. A
    run that reaches a limit still ends with `RunFinished`.

    Args:
        model: The model to ask.
        library: The tools the model may call.
        messages: The conversation. The model answers its last message.
        limits: What the run may use.
        options: Options of every model request.
        context: The ids of the run and the approval handler. A run id is created if it is empty. The language is
            detected from the messages.
        guards: Which guards are on, such as loop detection.
        failure_memory: Failures of earlier runs. The failures of this run are added.

    Raises:
        ModelError: The model does not answer before a limit is reached.
    """
    history = match_results_to_calls(messages)
    context = replace(context, run_id=context.run_id or uuid4().hex, language=detect_conversation_language(messages))
    monitor = await _create_monitor(library, history, context, guards, failure_memory)
    tool_selection = ToolSelection(library, history, options)
    state = _RunState(history, context, options, limits.context, tool_selection, monitor, guards.follow_ups)
    first_new = len(history)
    exceeded_limit: StopReason | None = None
    yield RunStarted(state.context.run_id)
    with Deadline(limits.seconds) as deadline:
        try:
            while not state.is_answered:
                exceeded_limit = find_exceeded_limit(limits, state.turn_count, state.call_count, state.usage)
                if exceeded_limit is not None:
                    break
                async with aclosing(_request_reply(model, library, state, deadline)) as events:
                    async for event in events:
                        yield event
                if state.resolved_calls:
                    async with aclosing(_execute_calls(library, limits, state, deadline)) as events:
                        async for event in events:
                            yield event
                if state.gave_up:
                    break
            if exceeded_limit is not None:
                yield DecisionMade("complete", prompts.explain_limit(exceeded_limit, state.context.language))
            if exceeded_limit is not None or state.gave_up:
                try:
                    async with aclosing(
                        _request_final_answer(model, library, state, exceeded_limit, deadline)
                    ) as events:
                        async for event in events:
                            yield event
                except ModelError as error:  # the run still ends with what it has
                    log.warning("Run %s ends without an answer of the model: %s", state.context.run_id, error)
        except DeadlineExceeded:
            exceeded_limit = "time"
            for cancelled_call in state.cancel_unfinished_calls():
                yield cancelled_call
    last_success = None if monitor is None else monitor.last_success
    text = state.text or prompts.format_missing_answer(exceeded_limit or "answer", last_success, state.context.language)
    new_messages = tuple(state.history[first_new:])
    cost = None if limits.price is None else limits.price.compute_cost(state.usage)
    yield RunFinished(
        text, exceeded_limit or "answer", state.usage, state.turn_count, state.call_count, new_messages, cost
    )


@dataclass(slots=True)
class _RunState:
    """The state of a run, with the calls of the last reply."""

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
        """Cancel the calls without a result, so that every call in the history has one."""
        unfinished_calls = [
            resolved_call.call for resolved_call in self.resolved_calls if resolved_call.call.id not in self.results
        ]
        cancelled_calls = [cancel_call(call, self.context.language) for call in unfinished_calls]
        self.results |= {cancelled_call.call.id: cancelled_call.result for cancelled_call in cancelled_calls}
        self.append_results()
        return cancelled_calls

    def build_request(self) -> tuple[list[Message], tuple[ToolDefinition, ...]]:
        """Return the messages that fit the context window, and the tools."""
        definitions, monitor = self.tool_selection.definitions, self.monitor
        if monitor is None:
            return self.history if self.context_window is None else trim_messages(
                self.history, self.context_window
            ), definitions
        if self.context_window is None:
            return monitor.with_status_note(self.history, is_trimmed=False), monitor.annotate_definitions(definitions)
        messages = trim_messages(self.history, self.context_window - monitor.reserved_tokens)
        return monitor.with_status_note(
            messages, is_trimmed=len(messages) < len(self.history)
        ), monitor.annotate_definitions(definitions)

    def _quote_result(self, result_text: str) -> str:
        """Escape the markup of a tool result.

        Add a note that it is a quotation if it may contain a call.
        """
        escaped_text = escape_special_tokens(result_text)
        tool_names = (tool.name for tool in self.tool_selection.definitions)
        if escaped_text == result_text or self.monitor is None or not any(name in result_text for name in tool_names):
            return escaped_text
        return f"{escaped_text}\n\n{prompts.note_quoted_text(self.context.language)}"

    def follow_up_before_answer(self) -> FollowUp | None:
        """Return the follow-up to send instead of accepting the answer, if any."""
        if self.monitor is None or not self.has_follow_ups or self.options.tool_choice == "none":
            return None
        return self.monitor.follow_ups.before_answer(self.context.language)

    def follow_up_after_turn(self) -> FollowUp | None:
        """Return the follow-up to send after a turn, if any.

        Only models that write calls as text get one.
        """
        if self.monitor is None or not self.has_follow_ups or self.options.tool_choice == "none":
            return None
        if not any(call.dialect != "native" for call in self.history[-1].tool_calls):
            return None
        return self.monitor.follow_ups.after_turn(self.context.language)

    def build_reminder(self, is_copied: bool) -> str:
        """Return the request for an answer after an empty or copied reply."""
        if is_copied and self.monitor is not None:
            self.monitor.is_silent = True
            return prompts.ask_for_own_words(self.context.language)
        return prompts.ask_again_after_empty_reply(self.context.language)

    def append_follow_up(self, follow_up: FollowUp) -> DecisionMade:
        """Append a follow-up to the history."""
        self.history.append(user_message(follow_up.text))
        self.tool_choice_hint = follow_up.tool_choice
        return DecisionMade("replan", follow_up.text)

    def update_calls(self, screened_calls: tuple[ResolvedCall, ...]) -> None:
        """Replace calls by their screened forms, also in the history."""
        calls_by_id = {call.call.id: call for call in screened_calls}
        self.resolved_calls = tuple(calls_by_id.get(call.call.id, call) for call in self.resolved_calls)
        self.history[-1] = _with_resolved_calls(self.history[-1], self.resolved_calls)

    def append_results(self) -> None:
        """Append the results to the history, in the order of their calls."""
        self.history += [
            tool_message(
                resolved_call.call.id,
                resolved_call.call.name,
                self._quote_result(self.results[resolved_call.call.id].content),
            )
            for resolved_call in self.resolved_calls
        ]
        self.call_count += len(self.resolved_calls)
        self.resolved_calls, self.results = (), {}


async def _request_reply(
    model: Model, library: ToolLibrary, state: _RunState, deadline: Deadline
) -> AsyncGenerator[Event, None]:
    """Request one reply.

    Shorten the history and retry when it exceeds the context window.
    """
    state.turn_count += 1
    reply = None
    options = (
        state.options
        if state.tool_choice_hint == "auto"
        else replace(state.options, tool_choice_hint=state.tool_choice_hint)
    )
    state.tool_choice_hint = "auto"
    while True:
        messages, definitions = state.build_request()
        try:
            async with aclosing(deadline.iterate(model.stream(messages, definitions, options))) as parts:
                async for part in parts:
                    if type(part) is Reply:
                        reply = part
                    else:
                        yield part  # type: ignore[misc]  # every part except Reply is an event
            break
        except ContextFull:
            state.context_window = (state.context_window or estimate_tokens(state.history)) // 2
            if len(trim_messages(state.history, state.context_window)) == len(messages):
                raise
    if reply is None:
        raise ModelError(f"The stream of model {model.name!r} ended without a reply.")
    state.usage += reply.usage
    state.resolved_calls = resolve_calls(reply.message.tool_calls, library, state.context.language)
    message = _with_resolved_calls(reply.message, state.resolved_calls)
    state.history.append(message)
    yield ModelReplied(state.turn_count, message, reply.finish, reply.usage)
    state.deferred_calls = reply.deferred_calls
    if state.resolved_calls:
        return
    if state.monitor is not None:
        state.monitor.follow_ups.note_withheld_calls(reply.withheld_calls)
    state.text = message.content.strip() or state.text
    follow_up = state.follow_up_before_answer()
    if follow_up is not None:
        yield state.append_follow_up(follow_up)
        return
    is_copied = state.monitor is not None and is_status_note(message.content)
    state.is_answered = (bool(state.text) and not is_copied) or state.was_reminded
    if not state.is_answered:
        state.was_reminded = True
        state.history.append(user_message(state.build_reminder(is_copied)))


async def _execute_calls(
    library: ToolLibrary, limits: Limits, state: _RunState, deadline: Deadline
) -> AsyncGenerator[Event, None]:
    """Execute the calls of the last reply and append their results."""
    monitor = state.monitor
    for batch in (
        (state.resolved_calls,)
        if monitor is None
        else monitor.begin_turn(state.history[-1].content, state.resolved_calls, state.deferred_calls)
    ):
        screened_calls = batch
        if monitor is not None:
            screened_calls = monitor.screen_calls(batch)
            state.update_calls(screened_calls)
        remaining = None if limits.tool_calls is None else limits.tool_calls - state.call_count - len(state.results)
        async with aclosing(
            deadline.iterate(execute_calls(screened_calls, library, remaining, state.context, state.turn_count))
        ) as events:
            async for event in events:
                if type(event) is ToolFinished:
                    if monitor is not None:
                        event = _record_result(event, monitor)
                    state.results[event.call.id] = event.result
                yield event
    has_success = any(result.failure is None for result in state.results.values())
    state.tool_selection.update_from_results(state.results.values())
    follow_up = state.follow_up_after_turn()
    state.append_results()
    decision = None if monitor is None else await monitor.finish_turn()
    if decision is not None:
        state.gave_up = decision.action == "complete"
        yield DecisionMade(decision.action, decision.reason)
    if follow_up is not None and not state.gave_up:
        yield state.append_follow_up(follow_up)
    if state.options.tool_choice not in ("auto", "none") and (has_success or state.turn_count >= MAX_FORCED_REPLIES):
        state.options = replace(state.options, tool_choice="auto")


async def _request_final_answer(
    model: Model, library: ToolLibrary, state: _RunState, exceeded_limit: StopReason | None, deadline: Deadline
) -> AsyncGenerator[Event, None]:
    """Request a last reply without tools.

    `exceeded_limit` is None for a run that ends because all of its calls were blocked.
    """
    language = state.context.language
    request = (
        prompts.ask_for_answer_after_blocked_calls(language)
        if exceeded_limit is None
        else prompts.ask_for_final_answer(exceeded_limit, language)
    )
    state.history.append(user_message(request))
    if state.monitor is not None:
        state.monitor.advice = ""
    state.options = replace(state.options, tool_choice="none")
    async with aclosing(_request_reply(model, library, state, deadline)) as events:
        async for event in events:
            yield event
    if state.resolved_calls:  # the model called a tool although none was offered
        for cancelled_call in state.cancel_unfinished_calls():
            yield cancelled_call


async def _create_monitor(
    library: ToolLibrary,
    history: Sequence[Message],
    context: CallContext,
    guards: GuardOptions,
    failure_memory: ScopedMemory | None,
) -> RunMonitor | None:
    """Create the monitor of a run with the failure patterns known at its start.

    None if all guards are off.
    """
    if guards.is_disabled:
        return None
    patterns = (
        NO_PATTERNS
        if failure_memory is None or not guards.failure_memory
        else await failure_memory.get_patterns(library)
    )
    task = next((message.content for message in reversed(history) if message.role == "user"), "")
    return RunMonitor(library, task, context.language, guards, failure_memory, patterns)


def _record_result(event: ToolFinished, monitor: RunMonitor) -> ToolFinished:
    result = monitor.record_result(event.call, event.result)
    return event if result is event.result else ToolFinished(event.call, result)


def _with_resolved_calls(message: Message, resolved_calls: Sequence[ResolvedCall]) -> Message:
    """Return the reply with its calls as they were resolved."""
    calls = tuple(resolved_call.call for resolved_call in resolved_calls)
    if all(new_call is old_call for new_call, old_call in zip(calls, message.tool_calls, strict=True)):
        return message
    return Message("assistant", message.content, tool_calls=calls, thinking=message.thinking)
