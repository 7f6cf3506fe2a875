"""Assistance for a run: a policy that applies the rules, and a model wrapper that adds to its requests."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from opposable.agent.assistance.failed_call_follow_up import FailedCallFollowUp
from opposable.agent.assistance.guard_options import GuardOptions
from opposable.agent.assistance.known_failures import KnownFailures
from opposable.agent.assistance.larger_timeouts import LargerTimeouts
from opposable.agent.assistance.ordered_calls import OrderedCalls
from opposable.agent.assistance.repeated_calls import RepeatedCalls
from opposable.agent.assistance.replanning import Replanning
from opposable.agent.assistance.rule import AssistanceRule, AssistedRun
from opposable.agent.assistance.status_note import StatusNote
from opposable.agent.assistance.suggestions import Suggestions
from opposable.agent.assistance.unmade_calls import UnmadeCalls
from opposable.agent.failure_memory import ScopedMemory
from opposable.agent.failure_recorder import FailureRecorder
from opposable.agent.history import detect_conversation_language
from opposable.agent.policy import Directive, RunPolicy, Step
from opposable.agent.tool_execution import ResolvedCall
from opposable.domain.events import ModelEvent, Reply
from opposable.domain.localized_text import join_localized
from opposable.domain.messages import Message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions, ModelWrapper
from opposable.tools import failure_messages
from opposable.tools.library import ToolLibrary

RULES: dict[str, type[AssistanceRule]] = {
    "ordered_calls": OrderedCalls,
    "larger_timeouts": LargerTimeouts,
    "block_repeats": RepeatedCalls,
    "failure_memory": KnownFailures,
    "suggestions": Suggestions,
    "follow_ups": FailedCallFollowUp,
    "status_notes": StatusNote,
    "replanning": Replanning,
    "unmade_calls": UnmadeCalls,
}
"""The rule of each option of `GuardOptions`, in the order in which they act."""


async def assist(
    model: Model,
    library: ToolLibrary,
    messages: Sequence[Message],
    guards: GuardOptions,
    failure_memory: ScopedMemory | None,
) -> tuple[Model, RunPolicy]:
    """Return the model and the policy of one assisted run on `messages`."""
    task = next((message.content for message in reversed(messages) if message.role == "user"), "")
    conversation = "\n".join(message.content for message in messages)
    run = AssistedRun(library, task, conversation, detect_conversation_language(messages))
    if failure_memory is not None and guards.failure_memory:
        run.patterns = await failure_memory.get_patterns(library)
        run.recorder = FailureRecorder(library, failure_memory, run.patterns)
    rules = [rule(run) for option, rule in RULES.items() if getattr(guards, option)]
    assisted = AssistedModel(model, run, rules)
    return assisted, AssistancePolicy(assisted, run, rules)


class AssistedModel(ModelWrapper):
    """A model whose requests carry what the rules add."""

    def __init__(self, inner: Model, run: AssistedRun, rules: Sequence[AssistanceRule]) -> None:
        super().__init__(inner)
        self.allows_calls = True
        self._run = run
        self._rules = rules

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream one reply. Raises: what the inner model raises."""
        run = self._run
        self.allows_calls = options.tool_choice != "none"
        if options.tool_choice == "auto" and run.next_tool_choice != "auto":
            options = replace(options, tool_choice=run.next_tool_choice)
        run.next_tool_choice = "auto"
        sent, definitions = list(messages), tuple(tools)
        for rule in self._rules:
            sent, definitions = rule.extend_request(sent), rule.extend_definitions(definitions)
        async with aclosing(self.inner.stream(sent, definitions, options)) as parts:
            async for part in parts:
                yield self._take_reply(part) if type(part) is Reply else part

    def _take_reply(self, reply: Reply) -> Reply:
        """Begin a turn if the reply has calls. Return the reply with the calls that are to be made now."""
        run, plan = self._run, reply.message.content.strip()
        calls: Sequence[ToolCall] = reply.message.tool_calls
        for rule in self._rules:
            calls = rule.select_calls(calls)
        if calls:
            run.arguments, run.blocked_ids, run.suggested_arguments = {}, set(), {}
            if run.expects_plan and plan:
                run.plan, run.expects_plan = plan, False
        return replace(reply, message=replace(reply.message, tool_calls=tuple(calls)))


class AssistancePolicy(RunPolicy):
    """Applies the rules to a run."""

    def __init__(self, model: AssistedModel, run: AssistedRun, rules: Sequence[AssistanceRule]) -> None:
        self._model = model
        self._run = run
        self._rules = rules

    def screen(self, call: ResolvedCall, steps: Sequence[Step]) -> ResolvedCall:
        """Block a call that cannot succeed, and adjust what a spec allows to be adjusted."""
        run, call_id, screened = self._run, call.call.id, call
        is_unknown = call.failure is not None and call.failure.failure == "unknown_tool"
        for rule in self._rules:
            screened = rule.screen(call, steps)
            if screened.failure is not call.failure:
                run.blocked_ids.add(call_id)
                break
            call = screened
        run.arguments[call_id] = {} if is_unknown else call.arguments
        return screened

    def annotate(self, step: Step, steps: Sequence[Step]) -> str:
        """Show a call to the rules, and return their notes."""
        run = self._run
        run.steps = steps
        run_limit = failure_messages.call_limit_message(run.language)
        if step.call.id not in run.arguments or step.result.failure == "cancelled" or step.result.content == run_limit:
            return ""
        return join_localized(filter(None, [rule.annotate(step, steps) for rule in self._rules]), " ", " ")

    def before_answer(self, reply: Message, steps: Sequence[Step]) -> Directive | None:
        """Return what the first rule with an objection asks for."""
        if not self._model.allows_calls:
            return None
        return next(filter(None, (rule.before_answer(reply, steps) for rule in self._rules)), None)

    async def after_turn(self, steps: Sequence[Step]) -> Directive | None:
        """Return how to go on: the end of the run first, then a request for a call, then another decision."""
        directives = filter(None, [await rule.after_turn(steps) for rule in self._rules])
        return min(directives, key=lambda one: (one.action != "complete", not one.message), default=None)
