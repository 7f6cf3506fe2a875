"""The agent: a model with tools, instructions and limits, for any number of runs."""

import functools
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from opposable.agent.assistance.guard_options import ALL_GUARDS, GuardOptions
from opposable.agent.limits import DEFAULT_LIMITS, Limits
from opposable.agent.loop import run
from opposable.agent.loop_detection import LoopDetection
from opposable.agent.policy import RunPolicy
from opposable.agent.untrusted_text import UntrustedTextPolicy
from opposable.domain.call_context import NO_CONTEXT, CallContext
from opposable.domain.errors import BadInput
from opposable.domain.events import Event, RunFinished
from opposable.domain.input_checks import require_choice, require_types
from opposable.domain.messages import Message, system_message, to_task_messages
from opposable.domain.tools import AfterUntrusted
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions
from opposable.models.profile import adapt_media, get_profile
from opposable.tools.base import Tool
from opposable.tools.disclosure import ToolDisclosure
from opposable.tools.library import ToolLibrary

if TYPE_CHECKING:  # loaded only where it is used: it would double the import time
    from opposable.agent.failure_memory import ScopedMemory

Task = str | Sequence[Message]
"""A task: text, or a conversation whose last message the model answers."""
_Assistance = bool | GuardOptions | None


class Agent:
    """A model with tools.

    It runs many tasks at once; those of one owner share only the failure memory. Close it with `aclose` or `async with`.

    Args:
        model: A `Model`, or a name that `opposable.models.factory.create_model` accepts, such as "openai:gpt-5".
        tools: Functions, `Tool` objects, or a `ToolLibrary`.
        instructions: The system message of every run.
        limits: What each run may use.
        options: Options of every model request.
        assistance: Whether assistance for small models is on, or its options. By default the profile of the model decides.
        failure_memory: Where failed calls are remembered across runs. By default an assisted agent has a memory of its
            own, with a scope for each owner in the context of a run; others have none.
        disclosure: When the model gets only some of the tools (default: above a tenth of its context window).
        after_untrusted: What happens to calls that act once untrusted text is in the conversation; see `AgentSpec`.

    Attributes:
        is_assisted: Whether assistance for small models is on.

    Raises:
        BadInput: The name or `after_untrusted` is unknown, an argument has another type, or a function cannot be a tool.
    """

    def __init__(
        self,
        model: Model | str,
        tools: ToolLibrary | Iterable[Tool | Callable[..., Any]] = (),
        *,
        instructions: str = "",
        limits: Limits = DEFAULT_LIMITS,
        options: ModelOptions = DEFAULT_OPTIONS,
        assistance: _Assistance = None,
        failure_memory: "ScopedMemory | None" = None,
        disclosure: ToolDisclosure | None = None,
        after_untrusted: AfterUntrusted = "allow",
    ) -> None:
        if isinstance(model, str):
            from opposable.models.factory import create_model  # lazy: an agent can get a model

            model = create_model(model)
        if not hasattr(model, "stream"):
            raise BadInput(
                f"{model!r} is no model. Pass a name like 'openai:gpt-5', or TextProtocolModel(CallableModel(function))."
            )
        require_types(limits=(limits, Limits), options=(options, ModelOptions), assistance=(assistance, _Assistance))
        require_choice("value of `after_untrusted`", after_untrusted, get_args(AfterUntrusted))
        self.model = model
        self.library = tools if isinstance(tools, ToolLibrary) else ToolLibrary(tools)
        self._instructions = (system_message(instructions),) if instructions else ()
        assistance = get_profile(model).assisted if assistance is None else assistance
        self._own_memory = None
        if assistance and failure_memory is None:
            from opposable.agent.failure_memory import FailureMemory  # lazy: others have none by default

            self._own_memory = FailureMemory()
        self.is_assisted = bool(assistance)
        self._start = functools.partial(
            run_agent,
            limits=limits,
            assistance=assistance,
            failure_memory=failure_memory,
            disclosure=disclosure,
            after_untrusted=after_untrusted,
        )
        self._stream_options = options
        self._no_stream_options = replace(options, stream=False)

    async def run(self, task: Task, context: CallContext = NO_CONTEXT) -> RunFinished:
        """Run a task and return how it ended.

        Args:
            task: What to do.
            context: The ids of the run and the approval handler.

        Raises:
            BadInput: The task is neither a text nor messages.
            ModelError: The model does not answer.
        """
        async for event in self._run_events(task, self._no_stream_options, context):
            if type(event) is RunFinished:
                run_finished = event
        return run_finished

    def stream(self, task: Task, context: CallContext = NO_CONTEXT) -> AsyncGenerator[Event, None]:
        """Run a task and yield its events. Closing the iterator cancels the run.

        Raises:
            ModelError: The model does not answer.
        """
        return self._run_events(task, self._stream_options, context)

    def _run_events(self, task: Task, options: ModelOptions, context: CallContext) -> AsyncGenerator[Event, None]:
        messages = (*self._instructions, *to_task_messages(task))
        start = self._start
        if self._own_memory is not None:
            start = functools.partial(start, failure_memory=self._own_memory.with_scope(f"owner:{context.owner}"))
        return start(self.model, self.library, messages, options=options, context=context)

    async def aclose(self) -> None:
        """Close the model."""
        await self.model.aclose()

    async def __aenter__(self) -> "Agent":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def run_agent(
    model: Model,
    library: ToolLibrary,
    messages: Sequence[Message],
    *,
    limits: Limits = DEFAULT_LIMITS,
    options: ModelOptions = DEFAULT_OPTIONS,
    context: CallContext = NO_CONTEXT,
    assistance: bool | GuardOptions | None = None,
    failure_memory: "ScopedMemory | None" = None,
    disclosure: ToolDisclosure | None = None,
    after_untrusted: AfterUntrusted = "allow",
) -> AsyncGenerator[Event, None]:
    """Run the loop with the policy that fits: assistance where the profile or the caller asks for it.

    `assistance` None follows the model's profile. `disclosure` None is that of the library. Raises: as `loop.run`.
    """
    profile = get_profile(model)
    guards = profile.assisted if assistance is None else assistance
    library = library.for_model(limits.context or profile.context, disclosure)
    policies: list[RunPolicy] = [LoopDetection(limits)]
    if after_untrusted != "allow":
        policies.append(UntrustedTextPolicy(library, messages, after_untrusted))
    start = functools.partial(run, limits=limits, options=options, context=context)
    if not guards and failure_memory is None:
        return start(model, library, messages, policies=policies)  # a generator around it would cost 10 % of a stream

    async def run_with_memory() -> AsyncGenerator[Event, None]:
        """Start a run that is assisted, or remembers failures, once it is known what failed before."""
        asked, sent = model, messages
        if guards:
            from opposable.agent.assistance.assistance_policy import assist  # lazy: loaded with the first assisted run

            sent = adapt_media(model, messages)
            asked, policy = await assist(model, library, sent, ALL_GUARDS if guards is True else guards, failure_memory)
            policies.insert(0, policy)
        elif failure_memory is not None:
            from opposable.agent.failure_recorder import FailureRecorder  # lazy: as above

            patterns = await failure_memory.get_patterns(library)
            policies.append(FailureRecorder(library, failure_memory, patterns))
        async with aclosing(start(asked, library, sent, policies=policies)) as events:
            async for event in events:
                yield event

    return run_with_memory()
