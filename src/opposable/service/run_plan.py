"""What a run of an agent needs, and its form for a worker process."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from opposable.agent.agent import run_agent
from opposable.agent.failure_memory import ScopedMemory
from opposable.agent.limits import Limits
from opposable.domain.call_context import CallContext
from opposable.domain.events import Event
from opposable.domain.json_forms import message_to_json
from opposable.domain.messages import Message
from opposable.domain.records import Run
from opposable.domain.specs import AgentSpec
from opposable.domain.tools import AfterUntrusted
from opposable.domain.usage import Price
from opposable.models.base import Model, ModelOptions
from opposable.models.profile import get_profile
from opposable.tools.disclosure import ToolDisclosure
from opposable.tools.library import ToolLibrary


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The model, tools, messages and limits of one run. The last message is that of the user.

    `stored_count` messages come from the conversation, those that were stored when the run was planned.
    """

    model: Model
    library: ToolLibrary
    messages: tuple[Message, ...]
    limits: Limits
    options: ModelOptions
    failure_memory: ScopedMemory | None
    disclosure: ToolDisclosure
    is_assisted: bool | None
    after_untrusted: AfterUntrusted
    stored_count: int = 0

    @property
    def holds_text(self) -> bool:
        """Whether streamed text is held until it is known to be no commentary before calls.

        A model that calls tools natively writes its text for the user: nothing of it is held.
        """
        can_call = self.options.tool_choice != "none" and bool(self.library.names)
        return can_call and get_profile(self.model).calling != "native"

    def run(self, context: CallContext) -> AsyncGenerator[Event, None]:
        """Run the agent and yield its events. Raises: as `run_agent`."""
        return run_agent(
            self.model,
            self.library,
            self.messages,
            limits=self.limits,
            options=self.options,
            context=context,
            failure_memory=self.failure_memory,
            disclosure=self.disclosure,
            assistance=self.is_assisted,
            after_untrusted=self.after_untrusted,
        )


def to_chat_request(
    run: Run, agent: AgentSpec, plan: RunPlan, new_message: Message, history: Sequence[Message], options: ModelOptions
) -> dict[str, Any]:
    """Return the arguments of a chat as JSON, for a worker."""
    return {
        "task": run.task,
        "agent": agent.model_dump(mode="json"),
        "conversation_id": run.conversation_id,
        "owner": run.owner,
        "trace_id": run.trace_id,
        "message": message_to_json(new_message, include_parsing=True),
        "history": [message_to_json(message, include_parsing=True) for message in history],
        "options": {name: getattr(options, name) for name in _STORED_OPTIONS},
        "limits": asdict(plan.limits),
        "stored_count": plan.stored_count,
    }


_STORED_OPTIONS = ("stream", "max_tokens", "temperature", "stop", "seed", "response_schema", "extra_body")
"""Options of a chat; the tool choice is that of the agent."""


def options_from_json(form: dict[str, Any]) -> ModelOptions:
    """Return the options in the arguments of a chat."""
    return ModelOptions(**{**form, "stop": tuple(form["stop"])})


def limits_from_json(form: dict[str, Any]) -> Limits:
    """Return the limits in the arguments of a chat."""
    price = form.get("price")
    return Limits(**{**form, "price": None if price is None else Price(**price)})
