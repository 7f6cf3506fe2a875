"""Agents of the service as models: a completion runs the agent with its own tools."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from opposable.domain.events import CUT_OFF, FinishReason, ModelEvent, Reply, TextDelta, ThinkingDelta
from opposable.domain.messages import Message, assistant_message
from opposable.domain.specs import AgentSpec
from opposable.domain.tools import ToolDefinition
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions
from opposable.models.profile import ModelProfile, get_profile
from opposable.service.service import Service
from opposable.web.openai_errors import GatewayError, bad_request_error

AGENT_PREFIX = "agent/"
"""How the names of agents start in the list of models."""


class AgentModel:
    """An agent as a model.

    Args:
        service: The service of the agent.
        agent: The agent.
        owner: The id of the API key that owns the runs.
        trace_id: The trace of the request.
    """

    def __init__(self, service: Service, agent: AgentSpec, owner: str, trace_id: str) -> None:
        self.name = f"{AGENT_PREFIX}{agent.agent_id}"
        inner = get_profile(service.get_model(agent.model))
        self.profile = ModelProfile(images=inner.images, image_placeholders=inner.image_placeholders)
        self._service = service
        self._agent = agent
        self._owner = owner
        self._trace_id = trace_id

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Run the agent on the last user message, and stream its answer.

        Raises:
            GatewayError: 400, for a request with tools or a response format, or without a user message at the end.
            OpposableError: If the run fails.
        """
        if tools:
            raise bad_request_error("tools", f"{self.name} uses its own tools. Remove tools from the request.")
        if options.response_schema is not None:
            raise bad_request_error("response_format", f"{self.name} answers in text. Remove response_format.")
        if not messages or messages[-1].role != "user":
            raise bad_request_error("messages", "The last message must be one of the user.")
        active_run = await self._service.chat(
            self._agent,
            messages[-1].content,
            parts=messages[-1].parts,
            history=messages[:-1],
            options=options,
            owner=self._owner,
            trace_id=self._trace_id,
            stream=options.stream,
        )
        try:
            has_text = False
            async with aclosing(self._service.runner.follow(active_run.run.run_id)) as events:
                async for event in events:
                    if event.kind == "text" and event.data["content"]:
                        yield TextDelta(event.data["content"])
                        has_text = True
                    elif event.kind == "thinking":
                        yield ThinkingDelta(event.data["thinking"])
            run = await active_run.wait_until_ended()
        finally:
            active_run.stop()
        if active_run.error is not None:
            raise active_run.error
        if run.status == "cancelled":
            raise GatewayError(409, "The run was cancelled.", kind="server_error", code="cancelled")
        if options.stream and not has_text and run.text:
            yield TextDelta(run.text)
        finish: FinishReason = next((reason for reason in CUT_OFF if reason == run.reason), "stop")
        yield Reply(assistant_message(run.text), finish, run.usage)

    async def aclose(self) -> None:
        """Do nothing: the service owns everything."""
