"""The agent loop: ask the model, execute its calls, return the results, until there is an answer."""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from uuid import uuid4

from opposable.agent import messages as texts
from opposable.agent.history import detect_conversation_language, estimate_tokens, match_results_to_calls, trim_messages
from opposable.agent.limits import (
    DEFAULT_LIMITS,
    Deadline,
    DeadlineExceeded,
    Limits,
    exceeds_token_limit,
    find_exceeded_limit,
)
from opposable.agent.loop_detection import LoopDetection
from opposable.agent.policy import Directive, RunPolicy, Step
from opposable.agent.reply_length import bound_reply_length
from opposable.agent.tool_execution import ResolvedCall, cancel_call, execute_calls, resolve_calls
from opposable.agent.tool_selection import ToolSelection
from opposable.domain.call_context import NO_CONTEXT, CallContext
from opposable.domain.content import ContentPart, TextPart
from opposable.domain.errors import ContextFull, ModelError
from opposable.domain.events import (
    CUT_OFF,
    DecisionMade,
    Event,
    FinishReason,
    ModelReplied,
    Reply,
    RunFinished,
    RunStarted,
    StopReason,
    ToolFinished,
)
from opposable.domain.messages import Message, tool_message, user_message
from opposable.domain.tools import ToolResult
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions
from opposable.models.profile import get_profile
from opposable.tools.library import ToolLibrary

MAX_FORCED_REPLIES = 3
"""A forced tool choice holds until a call succeeds, for this many replies at most."""

log = logging.getLogger("opposable.agent")


async def run(
    model: Model,
    library: ToolLibrary,
    messages: Sequence[Message],
    *,
    limits: Limits = DEFAULT_LIMITS,
    options: ModelOptions = DEFAULT_OPTIONS,
    context: CallContext = NO_CONTEXT,
    policy: RunPolicy | None = None,
) -> AsyncGenerator[Event, None]:
    """Work on the last message of `messages` and yield every event; the last one is `RunFinished`.

    A limit ends the run with an answer too. Closing the iterator cancels the model request and the tools. `policy` is
    loop detection by default. Raises: `ModelError` when the model does not answer before a limit is reached.
    """
    language = detect_conversation_language(messages)
    context = replace(context, run_id=context.run_id or uuid4().hex, language=language)
    history = match_results_to_calls(messages)
    selection = ToolSelection(library, history, options, language)
    state = _Run(
        model,
        library,
        limits,
        options,
        context,
        policy or LoopDetection(note_after=limits.noted_repeats, stop_after=limits.repeats, language=language),
        selection,
        history,
        limits.context,
    )
    start = len(history)
    reason: StopReason = "answer"
    yield RunStarted(context.run_id)
    with Deadline(limits.seconds) as deadline:
        try:
            await deadline.wait(selection.add_matching_tools())
            while not state.is_finished:
                exceeded = find_exceeded_limit(limits, state.turn_count, state.call_count, state.usage)
                if exceeded is not None:
                    reason = exceeded
                    yield DecisionMade("complete", texts.explain_limit(exceeded, language))
                    state.end_with_best_answer(texts.note_last_reply(exceeded, language))
                async with aclosing(state.take_turn(deadline)) as events:
                    async for event in events:
                        yield event
        except DeadlineExceeded:
            reason = "time"
            for event in state.cancel_unfinished_calls():
                yield event
    if reason == "answer":
        reason = state.find_answer_reason()
    text = state.text or texts.format_missing_answer(reason, state.last_success, language)
    cost = None if limits.price is None else limits.price.compute_cost(state.usage)
    added = tuple(state.history[start:])
    yield RunFinished(text, reason, state.usage, state.turn_count, state.call_count, added, cost)


@dataclass(slots=True)
class _Run:
    """The state of one run."""

    model: Model
    library: ToolLibrary
    limits: Limits
    options: ModelOptions
    context: CallContext
    policy: RunPolicy
    selection: ToolSelection
    history: list[Message]
    context_window: int | None
    steps: list[Step] = field(default_factory=list)
    calls: Sequence[ResolvedCall] = ()
    results: dict[str, ToolResult] = field(default_factory=dict)
    usage: Usage = NO_USAGE
    turn_count: int = 0
    call_count: int = 0
    text: str = ""
    last_success: tuple[str, str] | None = None
    is_last_turn: bool = False
    is_finished: bool = False
    had_empty_reply: bool = False
    last_finish: FinishReason = "stop"
    is_reply_bounded: bool = False

    async def take_turn(self, deadline: Deadline) -> AsyncGenerator[Event, None]:
        """Request one reply and execute its calls; a reply without calls is the answer."""
        try:
            async with aclosing(self._request_reply(deadline)) as events:
                async for event in events:
                    yield event
        except ModelError as error:
            if not self.is_last_turn:
                raise
            log.warning("Run %s ends without a final answer from the model: %s", self.context.run_id, error)
        self.is_finished = self.is_finished or self.is_last_turn
        if self.is_last_turn:  # calls made all the same are not executed
            for event in self.cancel_unfinished_calls():
                yield event
        elif self.calls:
            async with aclosing(self._execute_calls(deadline)) as events:
                async for event in events:
                    yield event

    def end_with_best_answer(self, note: str) -> None:
        """Make the next reply the last one, without tools; the last result has a note on why."""
        self.is_last_turn = True
        self.options = replace(self.options, tool_choice="none")
        last = self.history[-1]
        if last.role == "tool":
            self.history[-1] = tool_message(last.call_id, last.name, f"{last.content}\n\n{note}", last.parts)

    def find_answer_reason(self) -> StopReason:
        """Return why a run that no limit ended has ended: its last reply may be cut off, or exceed the token limit."""
        is_cut_by_limit = self.is_reply_bounded and self.last_finish == "length"
        if is_cut_by_limit or exceeds_token_limit(self.limits, self.usage):
            return "tokens"
        return self.last_finish if self.last_finish in CUT_OFF else "answer"  # type: ignore[return-value]  # narrowed

    def cancel_unfinished_calls(self) -> list[ToolFinished]:
        """Return the ends of the calls without a result; every call in the history needs one."""
        unfinished = [resolved.call for resolved in self.calls if resolved.call.id not in self.results]
        ends = [cancel_call(call, self.context.language) for call in unfinished]
        self.results |= {end.call.id: end.result for end in ends}
        self._append_results()
        return ends

    async def _request_reply(self, deadline: Deadline) -> AsyncGenerator[Event, None]:
        self.turn_count += 1
        reply = None
        while reply is None:
            sent = self.history if self.context_window is None else trim_messages(self.history, self.context_window)
            options = bound_reply_length(self.options, self.limits, self.usage, sent, self.selection.definitions)
            self.is_reply_bounded = options is not self.options
            try:
                stream = self.model.stream(sent, self.selection.definitions, options)
                async with aclosing(deadline.iterate(stream)) as parts:
                    async for part in parts:
                        if type(part) is Reply:
                            reply = part
                        else:
                            yield part  # type: ignore[misc]  # a Reply is the only part that is no event
                if reply is None:
                    raise ModelError(f"The stream of model {self.model.name!r} ended without a reply.")
            except ContextFull:
                self.context_window = (self.context_window or estimate_tokens(self.history)) // 2
                if trim_messages(self.history, self.context_window) == list(sent):
                    raise
        self.usage += reply.usage
        self.last_finish = reply.finish
        calls = reply.message.tool_calls
        if calls and reply.finish in CUT_OFF:
            calls = tuple(replace(call, truncated=True) for call in calls)
        self.calls = resolve_calls(calls, self.library, self.context.language)
        message = _with_resolved_calls(reply.message, self.calls)
        yield ModelReplied(self.turn_count, message, reply.finish, reply.usage)
        if self.calls:
            self.history.append(message)
        else:
            for event in self._take_answer(message):
                yield event

    def _take_answer(self, message: Message) -> list[DecisionMade]:
        self.text = message.content if message.content.strip() else self.text
        directive = None if self.is_last_turn else self.policy.before_answer(message, self.steps)
        if directive is None and not message.content.strip() and not self.had_empty_reply and not self.is_last_turn:
            self.had_empty_reply = True  # the same request once more, with nothing added
            return []
        self.history.append(message)
        self.is_finished = directive is None
        return [] if directive is None else [self._follow(directive)]

    async def _execute_calls(self, deadline: Deadline) -> AsyncGenerator[Event, None]:
        self.calls = self.policy.screen(self.calls, self.steps)
        self.history[-1] = _with_resolved_calls(self.history[-1], self.calls)
        remaining = None if self.limits.tool_calls is None else self.limits.tool_calls - self.call_count
        stream = execute_calls(self.calls, self.library, remaining, self.context, self.turn_count)
        async with aclosing(deadline.iterate(stream)) as events:
            async for event in events:
                if type(event) is ToolFinished:
                    self.results[event.call.id] = event.result
                    self.last_success = (
                        self.last_success if event.result.failure else (event.call.name, event.result.content)
                    )
                yield event
        results = self._append_results()
        self.selection.update_from_results(results)
        if self.options.tool_choice not in ("auto", "none") and (
            self.turn_count >= MAX_FORCED_REPLIES or any(result.failure is None for result in results)
        ):
            self.options = replace(self.options, tool_choice="auto")
        directive = await self.policy.after_turn(self.steps)
        if directive is not None:
            yield self._follow(directive)

    def _append_results(self) -> list[ToolResult]:
        """Append the results of the turn to the steps and, annotated, to the history, in the order of their calls."""
        results = [self.results[resolved.call.id] for resolved in self.calls]
        self.steps += [
            Step(self.turn_count, resolved.call, result) for resolved, result in zip(self.calls, results, strict=True)
        ]
        annotated = self.policy.annotate(results, self.steps) if results else ()
        self.history += [
            tool_message(result.call_id, result.name, result.content, self._get_parts(result)) for result in annotated
        ]
        self.call_count += len(results)
        self.calls, self.results = (), {}
        return results

    def _get_parts(self, result: ToolResult) -> tuple[ContentPart, ...]:
        """Return the text, images and files of a result, for a model that takes them."""
        if not result.media or not get_profile(self.model).images:
            return ()
        return (TextPart(result.content), *result.media)

    def _follow(self, directive: Directive) -> DecisionMade:
        if directive.message:
            self.history.append(user_message(directive.message))
        if directive.action == "complete":
            self.end_with_best_answer(f"[{directive.reason}]")
        return DecisionMade(directive.action, directive.reason)


def _with_resolved_calls(message: Message, resolved_calls: Sequence[ResolvedCall]) -> Message:
    calls = tuple(resolved.call for resolved in resolved_calls)
    if all(own is call for own, call in zip(calls, message.tool_calls, strict=True)):
        return message
    return replace(message, tool_calls=calls)
