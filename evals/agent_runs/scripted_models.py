"""Builds the scripted model of a scenario."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from opposable.domain.events import ModelEvent, Reply, TextDelta
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.evals.agent_runs.scenario import Scenario
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions
from opposable.models.text_protocol import TextProtocolModel

from .scripted_policies import POLICIES, ScriptedPolicy


class TextCallingModel:
    """Wraps a policy and writes its calls as text, as many models do."""

    def __init__(self, policy: ScriptedPolicy) -> None:
        self.name = f"{policy.name}, as text"
        self._policy = policy

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Yield the policy's reply with its calls written as text."""
        async for event in self._policy.stream(messages, tools, options):
            if isinstance(event, Reply):
                calls = "\n".join(_format_call_as_text(call) for call in event.message.tool_calls)
                event = Reply(assistant_message(event.message.content or calls), "stop", event.usage)
                if options.stream:
                    yield TextDelta(event.message.content)
            yield event

    async def aclose(self) -> None:
        """Do nothing: no resource is open."""


def make_scripted_model(scenario: Scenario, parses_text_calls: bool) -> Model:
    """Return the model that misbehaves as the scenario says.

    Args:
        scenario: The scenario, with the plan and the fault.
        parses_text_calls: Whether the loop under test parses calls from text itself.
    """
    policy = POLICIES[scenario.fault](scenario.plan, scenario.answer)
    if not scenario.writes_calls_as_text:
        return policy
    return TextCallingModel(policy) if parses_text_calls else TextProtocolModel(TextCallingModel(policy))


def make_text_calling_model(scenario: Scenario, parses_text_calls: bool) -> Model:
    """Return the scripted model, with every call written as text."""
    return make_scripted_model(replace(scenario, writes_calls_as_text=True), parses_text_calls)


def make_faultless_model(scenario: Scenario, parses_text_calls: bool) -> Model:
    """Return a model that makes no mistake, to check that the guards do not disturb it."""
    faultless = scenario if scenario.fault == "quoting" else replace(scenario, fault="none")
    return make_scripted_model(faultless, parses_text_calls)


def _format_call_as_text(call: ToolCall) -> str:
    return f'<tool_call>{{"name": "{call.name}", "arguments": {call.arguments_json}}}</tool_call>'
