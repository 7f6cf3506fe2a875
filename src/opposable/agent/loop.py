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
    count_remaining_tokens,
    find_exceeded_limit,
)
from opposable.agent.loop_detection import LoopDetection
from opposable.agent.policy import Directive, RunPolicy, Step
from opposable.agent.reply_length import bound_reply_length
from opposable.agent.tool_execution import ResolvedCall, cancel_call, execute_calls, resolve_calls, with_calls
from opposable.agent.tool_selection import ToolSelection
from opposable.domain.call_context import NO_CONTEXT, CallContext
from opposable.domain.content import TextPart
from opposable.domain.errors import ContextFull, ModelError
from opposable.domain.events import (
    CUT_OFF,
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
from opposable.domain.tools import ToolResult
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions
from opposable.models.profile import adapt_media, get_profile
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
    loop detection by default. Raises: `ModelError` when the model does not answer before a limit is reached, and
    `BadInput` for images that the model does not take.
    """
    messages = adapt_media(model, messages)
    language = detect_conversation_language(messages)
    context = replace(context, run_id=context.run_id or uuid4().hex, language=language)
    history = match_results_to_calls(messages)
    policy = policy or LoopDetection(note_after=limits.noted_repeats, stop_after=limits.repeats, language=language)
    selection = ToolSelection(library, history, options, language)
    state = _Run(model, library, limits, options, context, policy, selection, history, limits.context)
    start = len(history)
    yield RunStarted(context.run_id)
    async with aclosing(state.take_turns()) as turns:
        with Deadline(limits.seconds) as deadline:
            try:
                while (event := await deadline.next_item(turns)) is not None:
                    yield event
            except DeadlineExceeded:
                state.reason = "time"
                for end in state.cancel_unfinished_calls():
                    yield end
            except ModelError as error:
                if not state.is_last_turn:
                    raise
                log.warning("Run %s ends without a final answer from the model: %s", context.run_id, error)
    reason = state.find_reason()
    successes = ((step.call.name, step.result.content) for step in reversed(state.steps) if not step.result.failure)
    text = state.text or texts.format_missing_answer(reason, next(successes, None), language)
    cost = None if limits.price is None else limits.price.compute_cost(state.usage)
    added = tuple(history[start:])
    yield RunFinished(text, reason, state.usage, state.turn_count, len(state.steps), added, cost)


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
    text: str = ""
    reply: Reply | None = None
    reason: StopReason | None = None
    is_last_turn: bool = False
    is_finished: bool = False
    is_reply_bounded: bool = False
    had_empty_reply: bool = False

    async def take_turns(self) -> AsyncGenerator[Event, None]:
        """Take turns until there is an answer: request a reply, and execute its calls."""
        await self.selection.add_matching_tools()
        while not self.is_finished:
            limit = find_exceeded_limit(self.limits, self.turn_count, len(self.steps), self.usage)
            if limit is not None:
                self.reason = limit
                yield DecisionMade("complete", texts.explain_limit(limit, self.context.language))
                self.end_with_best_answer(texts.note_last_reply(limit, self.context.language))
            self.is_finished = self.is_last_turn
            self.turn_count += 1
            self.reply = None
            while self.reply is None:
                tools = self.selection.definitions
                sent = self.history if self.context_window is None else trim_messages(self.history, self.context_window)
                options = bound_reply_length(self.options, self.limits, self.usage, sent, tools)
                self.is_reply_bounded = options is not self.options
                try:
                    async with aclosing(self.model.stream(sent, tools, options)) as parts:
                        async for part in parts:
                            if type(part) is Reply:
                                self.reply = part
                            else:
                                yield part  # type: ignore[misc]  # a Reply is the only part that is no event
                except ContextFull:
                    if not self.shrink_context(sent):
                        raise
                else:
                    if self.reply is None:
                        raise ModelError(f"The stream of model {self.model.name!r} ended without a reply.")
            yield self.take_reply(self.reply)
            directive = None
            if not self.calls:
                directive = self.take_answer(self.history[-1])
            elif self.is_last_turn:  # calls made all the same are not executed
                for end in self.cancel_unfinished_calls():
                    yield end
            else:
                self.calls = self.policy.screen(self.calls, self.steps)
                self.history[-1] = with_calls(self.history[-1], self.calls)
                remaining = None if self.limits.tool_calls is None else self.limits.tool_calls - len(self.steps)
                stream = execute_calls(self.calls, self.library, remaining, self.context, self.turn_count)
                async with aclosing(stream) as events:
                    async for event in events:
                        if type(event) is ToolFinished:
                            self.results[event.call.id] = event.result
                        yield event
                self.take_results()
                directive = await self.policy.after_turn(self.steps)
            if directive is not None:
                self.follow(directive)
                yield DecisionMade(directive.action, directive.reason)

    def take_reply(self, reply: Reply) -> ModelReplied:
        """Resolve the calls of a reply, and append it to the history."""
        self.usage += reply.usage
        calls = reply.message.tool_calls
        if calls and reply.finish in CUT_OFF:
            calls = tuple(replace(call, truncated=True) for call in calls)
        self.calls = resolve_calls(calls, self.library, self.context.language)
        self.history.append(with_calls(reply.message, self.calls))
        return ModelReplied(self.turn_count, self.history[-1], reply.finish, reply.usage)

    def take_answer(self, message: Message) -> Directive | None:
        """Take a reply without calls as the answer, unless the policy objects. An empty one is asked about once."""
        is_empty = not message.content.strip()
        self.text = self.text if is_empty else message.content
        directive = None if self.is_last_turn else self.policy.before_answer(message, self.steps)
        self.is_finished = directive is None and (not is_empty or self.had_empty_reply or self.is_last_turn)
        if directive is None and not self.is_finished:
            self.had_empty_reply = True
            self.history.pop()  # the same request once more, with nothing added
        return directive

    def take_results(self) -> None:
        """Append the results of the turn to the steps and, annotated, to the history, in the order of their calls."""
        results = [self.results[resolved.call.id] for resolved in self.calls]
        self.steps += [Step(self.turn_count, one.call, result) for one, result in zip(self.calls, results, strict=True)]
        for result in self.policy.annotate(results, self.steps) if results else ():
            takes_media = result.media and get_profile(self.model).images
            parts = (TextPart(result.content), *result.media) if takes_media else ()
            failed = result.failure is not None
            self.history.append(tool_message(result.call_id, result.name, result.content, parts, is_error=failed))
        self.calls, self.results = (), {}
        self.selection.update_from_results(results)
        is_forced = self.options.tool_choice not in ("auto", "none")
        if is_forced and (self.turn_count >= MAX_FORCED_REPLIES or any(not result.failure for result in results)):
            self.options = replace(self.options, tool_choice="auto")

    def cancel_unfinished_calls(self) -> list[ToolFinished]:
        """Return the ends of the calls without a result; every call in the history needs one."""
        unfinished = [resolved.call for resolved in self.calls if resolved.call.id not in self.results]
        ends = [cancel_call(call, self.context.language) for call in unfinished]
        self.results |= {end.call.id: end.result for end in ends}
        self.take_results()
        return ends

    def follow(self, directive: Directive) -> None:
        """Go on as the policy directs."""
        if directive.message:
            self.history.append(user_message(directive.message))
        if directive.action == "complete":
            self.end_with_best_answer(f"[{directive.reason}]")

    def end_with_best_answer(self, note: str) -> None:
        """Make the next reply the last one, without tools; the last result has a note on why."""
        self.is_last_turn = True
        self.options = replace(self.options, tool_choice="none")
        last = self.history[-1]
        if last.role == "tool":
            self.history[-1] = replace(last, content=f"{last.content}\n\n{note}")

    def shrink_context(self, sent: Sequence[Message]) -> bool:
        """Halve the context window after a request that did not fit. Return whether it leaves out further messages."""
        self.context_window = (self.context_window or estimate_tokens(self.history)) // 2
        return trim_messages(self.history, self.context_window) != list(sent)

    def find_reason(self) -> StopReason:
        """Return why the run ended: at a limit, or with an answer that may be cut off."""
        finish = "stop" if self.reply is None else self.reply.finish
        if self.reason is not None:
            return self.reason
        if (self.is_reply_bounded and finish == "length") or count_remaining_tokens(self.limits, self.usage) < 0:
            return "tokens"
        return finish if finish in CUT_OFF else "answer"  # type: ignore[return-value]  # narrowed
