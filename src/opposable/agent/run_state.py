"""The state of a run: history, steps, usage, and whether it is finished."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from opposable.agent import messages as texts
from opposable.agent.history import estimate_tokens, to_result_message, trim_messages
from opposable.agent.limits import Limits, find_exceeded_limit
from opposable.agent.policy import Directive, RunPolicy, Step
from opposable.agent.request_size import estimate_prompt_tokens, lower_max_tokens
from opposable.agent.tool_execution import ResolvedCall, resolve_calls, with_calls
from opposable.agent.tool_selection import ToolSelection
from opposable.domain.call_context import CallContext
from opposable.domain.events import (
    DecisionMade,
    FinishReason,
    ModelReplied,
    Reply,
    StopReason,
    ToolFinished,
    ToolStarted,
)
from opposable.domain.localized_text import localize
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolDefinition, ToolResult
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.base import ModelOptions
from opposable.tools.failure_messages import call_limit_message
from opposable.tools.invocation import create_interrupted_result


@dataclass(slots=True)
class RunState:
    """What has happened in a run so far, and how it goes on.

    Attributes:
        history: The messages for the model.
        calls: The calls of the latest reply, until their results are taken.
        results: The results of these calls so far, by call id.
        reason: The limit that ends the run, if any.
        context_window: Tokens that the messages of a request may have; None if that is not known.
        is_reply_bounded: Whether the limits bound the length of the latest reply.
        is_last_turn: Whether the next reply is the last one, without tools.
        messages_before_notes: The results with notes of the runtime as they were without them, by position.
    """

    limits: Limits
    context: CallContext
    policies: Sequence[RunPolicy]
    tools: ToolSelection
    history: list[Message]
    takes_media: bool
    context_window: int | None
    is_reply_bounded: bool = False
    steps: list[Step] = field(default_factory=list)
    calls: Sequence[ResolvedCall] = ()
    results: dict[str, ToolResult] = field(default_factory=dict)
    usage: Usage = NO_USAGE
    turn_count: int = 0
    text: str = ""
    finish: FinishReason = "stop"
    reason: StopReason | None = None
    is_last_turn: bool = False
    is_finished: bool = False
    had_empty_reply: bool = False
    messages_before_notes: dict[int, Message] = field(default_factory=dict)

    def begin_turn(self) -> DecisionMade | None:
        """Count the turn. If a limit is reached, it is the last one: return the decision."""
        limit = find_exceeded_limit(self.limits, self.turn_count, len(self.steps), self.usage)
        decision = None
        if limit is not None:
            self.reason, name = limit, texts.LIMIT_NAMES[limit]
            decision = DecisionMade("complete", self._localize(texts.LIMIT_REACHED.format(limit=name)))
            self.end_with_best_answer(texts.LAST_REPLY.format(limit=name))
        self.is_finished, self.finish = self.is_last_turn, "stop"
        self.turn_count += 1
        return decision

    def build_request(self) -> tuple[Sequence[Message], Sequence[ToolDefinition], ModelOptions]:
        """Return the messages, tools and options of the next request."""
        messages = trim_messages(self.history, self.context_window)
        tools, limits, options = self.tools.definitions, self.limits, self.tools.options
        remaining = []
        if limits.tokens is not None:
            remaining.append(limits.tokens - self.usage.total_tokens - estimate_prompt_tokens(messages, tools))
        if limits.output_tokens is not None:
            remaining.append(limits.output_tokens - self.usage.output_tokens)
        bounded = lower_max_tokens(options, min(remaining)) if remaining else options
        self.is_reply_bounded = bounded is not options
        return messages, tools, bounded

    def shrink_context(self) -> bool:
        """Halve the messages after a request that did not fit. Return whether it leaves out further messages."""
        sent = trim_messages(self.history, self.context_window)
        self.context_window = estimate_tokens(sent) // 2
        return trim_messages(self.history, self.context_window) != sent

    def take_reply(self, reply: Reply) -> ModelReplied:
        """Resolve the calls of a reply, and append it to the history."""
        self.finish = reply.finish
        self.usage += reply.usage
        message = reply.message
        self.calls = resolve_calls(reply, self.tools.library, self.context.language) if message.tool_calls else ()
        self.history.append(with_calls(message, self.calls))
        return ModelReplied(self.turn_count, self.history[-1], reply.finish, reply.usage)

    def take_answer(self, message: Message) -> Directive | None:
        """Take a reply without calls as the answer, unless a policy objects. An empty one is asked about once."""
        is_empty = not message.content.strip()
        self.text = self.text if is_empty else message.content
        objections = (policy.before_answer(message, self.steps) for policy in self.policies)
        directive = None if self.is_last_turn else next(filter(None, objections), None)
        self.is_finished = directive is None and (not is_empty or self.had_empty_reply or self.is_last_turn)
        self.had_empty_reply |= is_empty
        if directive is None and is_empty and not message.tool_calls:
            self.history.pop()  # the same request once more, with nothing added
        return directive

    def start_calls(self) -> list[ToolStarted]:
        """Screen the calls of the reply, by the policies and the limit of calls."""
        screened = self.calls
        for policy in self.policies:
            screened = [policy.screen(resolved, self.steps) for resolved in screened]
        self.history[-1] = with_calls(self.history[-1], screened)
        if self.limits.tool_calls is not None:
            allowed = max(self.limits.tool_calls - len(self.steps), 0)
            message = call_limit_message(self.context.language)
            screened = [*screened[:allowed], *(resolved.refuse(message) for resolved in screened[allowed:])]
        self.calls = screened
        return [ToolStarted(resolved.call) for resolved in self.calls]

    def take_results(self) -> None:
        """Append the results of the turn to the steps and, annotated, to the history, in the order of their calls."""
        results = [self.results[resolved.call.id] for resolved in self.calls]
        for resolved, result in zip(self.calls, results, strict=True):
            step = Step(self.turn_count, resolved.call, result)
            self.steps.append(step)
            if notes := [note for policy in self.policies if (note := policy.annotate(step, self.steps))]:
                result = replace(result, content="\n\n".join((result.content, *map(self._localize, notes))))
            self.history.append(to_result_message(result, self.takes_media))
        self.calls, self.results = (), {}
        self.tools.update_from_results(results, self.turn_count)

    async def end_turn(self) -> Directive | None:
        """Take the results of the turn. Return how a policy goes on, None to ask the model for its next reply."""
        self.take_results()
        for policy in self.policies:
            if directive := await policy.after_turn(self.steps):
                return directive
        return None

    def cancel_unfinished_calls(self) -> list[ToolFinished]:
        """Return the ends of the calls without a result; every call in the history needs one."""
        ends, language = [], self.context.language
        for resolved in [one for one in self.calls if one.call.id not in self.results]:
            call = resolved.call
            has_started = not self.is_last_turn and resolved.failure is None
            traits = self.tools.library.get_traits(call.name)
            self.results[call.id] = create_interrupted_result(call, traits, language, has_started=has_started)
            ends.append(ToolFinished(call, self.results[call.id]))
        self.take_results()
        return ends

    def list_new_messages(self, start: int, text: str) -> tuple[Message, ...]:
        """Return the messages of the run without the notes of the runtime, which hold for it alone, up to its answer."""
        for position, message in self.messages_before_notes.items():
            self.history[position] = message
        has_answer = len(self.history) > start and self.history[-1].role == "assistant"
        return tuple(self.history[start:] if has_answer else [*self.history[start:], assistant_message(text)])

    def follow(self, directive: Directive) -> DecisionMade:
        """Go on as a policy directs. A note in the last result says how, in place of an answer that is not taken."""
        if directive.message:
            if self.history[-1].role == "assistant":
                self.history.pop()
            self._append_note(directive.message)
        if directive.action == "complete":
            self.reason = "repeats"
            self.end_with_best_answer(directive.reason)
        return DecisionMade(directive.action, self._localize(directive.reason))

    def end_with_best_answer(self, note: str) -> None:
        """Make the next reply the last one, without tools; the last result has a note on why."""
        self.is_last_turn = True
        self.tools.options = replace(self.tools.options, tool_choice="none")
        self._append_note(note)

    def _append_note(self, note: str) -> None:
        """Append a note of the runtime to the last result, in brackets."""
        last = self.history[-1]
        if last.role == "tool":
            self.messages_before_notes.setdefault(len(self.history) - 1, last)
            self.history[-1] = replace(last, content=f"{last.content}\n\n[{self._localize(note)}]")

    def _localize(self, text: str) -> str:
        return localize(text, self.context.language)
