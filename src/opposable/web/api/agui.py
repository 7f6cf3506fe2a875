"""The route for front ends that use the AG-UI 1.0 protocol."""

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Annotated, Any

from ag_ui.core import (
    PROTOCOL_VERSION,
    BaseEvent,
    CustomEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from fastapi import Body, Depends
from starlette.responses import Response

from opposable.domain.json_text import parse_json
from opposable.domain.records import RunEvent
from opposable.service.answer_text import SEPARATOR
from opposable.service.runner import ActiveRun
from opposable.service.service import Service
from opposable.web.api.agui_input import read_earlier_messages, read_new_message
from opposable.web.api.chat import apply_request_limits, resolve_agent
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.pagination import AgentIdPath
from opposable.web.api.schemas import CONVERSATION_ID
from opposable.web.api.serializers import dump_json
from opposable.web.api.text_responses import EVENT_STREAM, describe_text
from opposable.web.errors import error_responses, to_api_error, validation_error
from opposable.web.sse_response import SseResponse, escape_line_ends
from opposable.web.telemetry.tracing import CURRENT_TRACE

router = ApiRouter(prefix="/api/agents", tags=["chat"], dependencies=[Depends(RequireScope("chat"))])

INPUT_EXAMPLE = {
    "threadId": "conv-123",
    "runId": "run-1",
    "messages": [{"id": "m1", "role": "user", "content": "请计算 25 乘以 4"}],
    "tools": [],
    "context": [],
    "state": {},
    "forwardedProps": {},
}
STREAM_EXAMPLE = 'data: {"type":"RUN_STARTED","threadId":"conv-123","runId":"run-1"}\n\n'


@router.post(
    "/{agent_id}/agui",
    response_class=Response,
    responses=error_responses(404) | describe_text(EVENT_STREAM, "AG-UI events.", STREAM_EXAMPLE),
    summary="Run an agent with AG-UI 1.0",
)
async def run_agui_agent(
    service: ServiceDep,
    principal: PrincipalDep,
    agent_id: AgentIdPath,
    body: Annotated[RunAgentInput, Body(openapi_examples={"sum": {"summary": "A question", "value": INPUT_EXAMPLE}})],
) -> Response:
    """Send the last message, one of the user, with its images and documents, to an agent and stream AG-UI events.

    The conversation is `threadId`. Earlier messages of the user, the model and tools are read only if the service has
    none of it; system messages never are. `context`, `state`, `tools` and `forwardedProps` have no effect: the model
    gets the instructions and tools of the agent. Approval requests are CUSTOM events.
    """
    if not re.fullmatch(CONVERSATION_ID, body.thread_id):
        raise validation_error([("threadId", f"must match the pattern {CONVERSATION_ID}")])
    message = await read_new_message(body)
    spec = await resolve_agent(service, agent_id)
    conversation = await service.get_conversation(body.thread_id, principal.key_id)
    is_known = (conversation is not None and conversation.messages > 0) or service.runner.has_active_run(
        await service.find_stored_conversation_id(body.thread_id, principal.key_id), principal.key_id
    )
    active_run = await service.chat(
        spec,
        message.content,
        conversation_id=body.thread_id,
        owner=principal.key_id,
        trace_id=CURRENT_TRACE.get().trace_id,
        limits=apply_request_limits(service.get_agent_limits(spec)),
        parts=message.parts,
        history=() if is_known else read_earlier_messages(body),
    )
    events = _encode_events(service, active_run, body)
    return SseResponse(events, to_api_error, active_run.stop, _format_error)


async def _encode_events(
    service: Service, active_run: ActiveRun, run_input: RunAgentInput
) -> AsyncGenerator[bytes, None]:
    mapper = AguiEventMapper(run_input.thread_id, run_input.run_id, active_run.run.run_id)
    async with aclosing(service.runner.follow(active_run.run.run_id)) as events:
        async for event in events:
            for agui_event in mapper.map_event(event):
                yield _format_event(agui_event)


def _format_event(event: BaseEvent) -> bytes:
    """Return an event as a server-sent event; the encoder of the SDK rejects lone surrogates."""
    return b"data: " + escape_line_ends(dump_json(event.model_dump(by_alias=True))) + b"\n\n"


def _format_error(error: bytes) -> bytes:
    """Return the last event of a stream that fails."""
    detail = parse_json(error)["error"]
    return _format_event(RunErrorEvent(message=detail["message"], code=detail["kind"]))


class AguiEventMapper:
    """Maps the events of a run to AG-UI events.

    It adds start and end events around the deltas of a message.

    Args:
        thread_id: The thread of the client.
        run_id: The run id of the client.
        service_run_id: The run id of the service, which makes the ids of messages and calls unique.
    """

    def __init__(self, thread_id: str, run_id: str, service_run_id: str) -> None:
        self._thread_id = thread_id
        self._run_id = run_id
        self._service_run_id = service_run_id
        self._message_count = 0
        self._open_kind = ""
        self._has_answer_text = False
        self._call_ids: dict[str, str] = {}  # models repeat the ids of their calls; those of a client must be unique
        self._separator = ""  # what the runtime puts between the texts of two replies, which are two messages here

    def map_event(self, event: RunEvent) -> Iterator[BaseEvent]:
        """Yield the AG-UI events of one event."""
        if event.kind == "tool_started":
            self._call_ids[event.data["call_id"]] = f"{self._service_run_id}-{event.sequence}"
        data: dict[str, Any] = event.data
        if call_id := self._call_ids.get(data.get("call_id", "")):
            data = {**data, "call_id": call_id}
        if event.kind not in ("text", "commentary", "thinking"):
            yield from self._close_message()
        match event.kind:
            case "run_started":
                yield RunStartedEvent(thread_id=self._thread_id, run_id=self._run_id, protocol_version=PROTOCOL_VERSION)
                yield CustomEvent(name="run", value=data)
            case "text":
                yield from self._map_text(data["content"].removeprefix(self._separator))
                self._has_answer_text, self._separator = True, ""
            case "commentary":
                yield from self._map_text(data["text"])
            case "thinking":
                yield from self._map_thinking(data["thinking"])
            case "tool_started":
                yield ToolCallStartEvent(tool_call_id=data["call_id"], tool_call_name=data["name"])
                yield ToolCallArgsEvent(tool_call_id=data["call_id"], delta=dump_json(data["arguments"]).decode())
                yield ToolCallEndEvent(tool_call_id=data["call_id"])
            case "tool_finished":
                message = f"{self._service_run_id}-{event.sequence}"
                yield ToolCallResultEvent(message_id=message, tool_call_id=data["call_id"], content=data["result"])
            case "run_finished":
                yield self._map_run_finished(data)
            case "error" if data["kind"] == "cancelled":
                yield RunFinishedEvent(
                    thread_id=self._thread_id, run_id=self._run_id, outcome=RunFinishedCancelledOutcome()
                )
            case "error":
                yield RunErrorEvent(message=data["message"], code=data["kind"])
            case "model_replied":
                self._separator = SEPARATOR if self._has_answer_text else ""
            case other:
                yield CustomEvent(name=other, value=data)

    def _map_text(self, delta: str) -> Iterator[BaseEvent]:
        if self._open_kind != "text":
            yield from self._open_message("text")
            yield TextMessageStartEvent(message_id=self._message_id, role="assistant")
        if delta:
            yield TextMessageContentEvent(message_id=self._message_id, delta=delta)

    def _map_thinking(self, delta: str) -> Iterator[BaseEvent]:
        if self._open_kind != "thinking":
            yield from self._open_message("thinking")
            yield ReasoningStartEvent(message_id=self._message_id)
            yield ReasoningMessageStartEvent(message_id=self._message_id)
        if delta:
            yield ReasoningMessageContentEvent(message_id=self._message_id, delta=delta)

    def _open_message(self, kind: str) -> Iterator[BaseEvent]:
        yield from self._close_message()
        self._message_count += 1
        self._open_kind = kind

    def _close_message(self) -> Iterator[BaseEvent]:
        closed_kind, self._open_kind = self._open_kind, ""
        if closed_kind == "text":
            yield TextMessageEndEvent(message_id=self._message_id)
        elif closed_kind == "thinking":
            yield ReasoningMessageEndEvent(message_id=self._message_id)
            yield ReasoningEndEvent(message_id=self._message_id)

    def _map_run_finished(self, data: dict[str, Any]) -> RunFinishedEvent:
        usage = data["usage"]
        tokens = TokenUsage(
            input_tokens=usage["input_tokens"], output_tokens=usage["output_tokens"], total_tokens=usage["total_tokens"]
        )
        return RunFinishedEvent(
            thread_id=self._thread_id,
            run_id=self._run_id,
            result={"text": data["text"], "reason": data["reason"]},
            outcome=RunFinishedSuccessOutcome(),
            usage=[tokens],
        )

    @property
    def _message_id(self) -> str:
        return f"{self._service_run_id}-m{self._message_count}"
