"""Assistance for a run: a policy and a model wrapper that share what was observed in the run."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from opposable.agent.assistance import prompts
from opposable.agent.assistance.execution_context import is_status_note
from opposable.agent.assistance.guard_options import ALL_GUARDS, GuardOptions
from opposable.agent.assistance.run_monitor import RunMonitor
from opposable.agent.failure_memory import NO_PATTERNS, ScopedMemory
from opposable.agent.history import OMITTED_MESSAGES_NOTE, detect_conversation_language
from opposable.agent.policy import Directive, RunPolicy, Step
from opposable.agent.tool_execution import ResolvedCall
from opposable.domain.events import ModelEvent, Reply
from opposable.domain.language import Language
from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition, ToolResult
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions, ToolChoice
from opposable.models.profile import ModelProfile, get_profile
from opposable.tools.library import ToolLibrary


async def assist(
    model: Model,
    library: ToolLibrary,
    messages: Sequence[Message],
    guards: GuardOptions = ALL_GUARDS,
    failure_memory: ScopedMemory | None = None,
) -> tuple[Model, RunPolicy]:
    """Return the model and the policy of one assisted run on `messages`."""
    patterns = NO_PATTERNS
    if failure_memory is not None and guards.failure_memory:
        patterns = await failure_memory.get_patterns(library)
    language = detect_conversation_language(messages)
    task = next((message.content for message in reversed(messages) if message.role == "user"), "")
    monitor = RunMonitor(library, task, language, guards, failure_memory, patterns)
    assisted = AssistedModel(model, monitor)
    return assisted, AssistancePolicy(assisted, monitor, guards, language)


class AssistedModel:
    """A model whose requests carry what the run's assistance adds: notes, warnings, the call that is expected next."""

    def __init__(self, inner: Model, monitor: RunMonitor) -> None:
        self.inner = inner
        self.expected_choice: ToolChoice = "auto"
        self.last_reply: Reply | None = None
        self.allows_calls = True
        self._monitor = monitor

    @property
    def name(self) -> str:
        """The inner model's name."""
        return self.inner.name

    @property
    def profile(self) -> ModelProfile:
        """The inner model's profile."""
        return get_profile(self.inner)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream one reply. Raises: what the inner model raises."""
        self.allows_calls = options.tool_choice != "none"
        if self.expected_choice != "auto":
            options = replace(options, tool_choice_hint=self.expected_choice)
            self.expected_choice = "auto"
        is_trimmed = any(message.content in OMITTED_MESSAGES_NOTE.values() for message in messages)
        sent = self._monitor.with_status_note(list(messages), is_trimmed=is_trimmed)
        definitions = self._monitor.annotate_definitions(tuple(tools))
        async with aclosing(self.inner.stream(sent, definitions, options)) as parts:
            async for part in parts:
                if type(part) is Reply:
                    self.last_reply = part
                yield part

    async def aclose(self) -> None:
        """Close the inner model."""
        await self.inner.aclose()


class AssistancePolicy:
    """Controls an assisted run by what its monitor observes."""

    def __init__(self, model: AssistedModel, monitor: RunMonitor, guards: GuardOptions, language: Language) -> None:
        self._model = model
        self._monitor = monitor
        self._guards = guards
        self._language: Language = language
        self._was_reminded = False

    def screen(self, calls: Sequence[ResolvedCall], steps: Sequence[Step]) -> Sequence[ResolvedCall]:
        """Refuse calls that cannot succeed, and adjust what a spec allows to be adjusted."""
        reply = self._model.last_reply
        text, deferred = ("", ()) if reply is None else (reply.message.content, reply.deferred_calls)
        self._monitor.begin_turn(text, deferred)
        return self._monitor.screen_calls(calls)

    def annotate(self, results: Sequence[ToolResult], steps: Sequence[Step]) -> Sequence[ToolResult]:
        """Record the results of the turn, and append what helps to correct a failure."""
        turn = steps[len(steps) - len(results) :]
        return [
            step.result if step.result.failure == "cancelled" else self._monitor.record_result(step.call, step.result)
            for step in turn
        ]

    def before_answer(self, reply: Message, steps: Sequence[Step]) -> Directive | None:
        """Ask for what is left open in place of taking an answer."""
        if not self._model.allows_calls:
            return None
        if self._guards.follow_ups:
            withheld = () if self._model.last_reply is None else self._model.last_reply.withheld_calls
            self._monitor.follow_ups.note_withheld_calls(withheld)
            if (follow_up := self._monitor.follow_ups.before_answer(self._language)) is not None:
                self._model.expected_choice = follow_up.tool_choice
                return Directive("replan", follow_up.text, follow_up.text)
        if self._was_reminded or (reply.content.strip() and not is_status_note(reply.content)):
            return None
        self._was_reminded = True
        reminder = prompts.ask_again_after_empty_reply(self._language)
        if reply.content.strip():
            self._monitor.is_silent = True
            reminder = prompts.ask_for_own_words(self._language)
        return Directive("replan", reminder, reminder)

    async def after_turn(self, steps: Sequence[Step]) -> Directive | None:
        """Replan, switch tools, ask for a deferred call, or end a run that makes no progress."""
        follow_up = None
        if self._guards.follow_ups and self._model.allows_calls:
            follow_up = self._monitor.follow_ups.after_turn(self._language)
        decision = await self._monitor.finish_turn()
        if decision is not None and decision.action == "complete":
            self._monitor.advice = ""
            return Directive("complete", decision.reason, prompts.ask_for_answer_after_blocked_calls(self._language))
        if follow_up is not None:
            self._model.expected_choice = follow_up.tool_choice
            return Directive("replan", follow_up.text, follow_up.text)
        return None if decision is None else Directive(decision.action, decision.reason)
