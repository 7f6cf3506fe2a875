"""The routes that send a message to an agent."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any
from uuid import uuid4

from fastapi import Depends, Header, Request
from starlette.responses import Response

from opposable.agent.limits import Limits
from opposable.app.inputs import validate_task
from opposable.app.media import load_media_from_url
from opposable.domain.content import ContentPart, TextPart
from opposable.domain.errors import OpposableError
from opposable.domain.specs import AgentSpec
from opposable.service.runner import ActiveRun
from opposable.service.service import DEFAULT_AGENT_ID, Service
from opposable.web.api.agents import load_agent
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.run_event_sse import parse_last_event_id, respond_with_run_events
from opposable.web.api.runs import load_own_run
from opposable.web.api.schemas import (
    AgentChatRequest,
    AgentChatResponse,
    AgentHeader,
    Attachment,
    ChatRequest,
    ChatResponse,
)
from opposable.web.api.serializers import json_response, serialize_answer
from opposable.web.api.text_responses import EVENT_STREAM, describe_text
from opposable.web.errors import ApiError, conflict_error, error_responses, to_api_error
from opposable.web.middleware.authentication import CURRENT_CALLER
from opposable.web.principal import Principal
from opposable.web.sse_response import CLIENT_CLOSED_REQUEST, ClientDisconnected, run_while_connected
from opposable.web.telemetry.tracing import CURRENT_TRACE

router = ApiRouter(tags=["chat"], dependencies=[Depends(RequireScope("chat"))])

STREAM_EXAMPLE = """id: 7f3:2
data: {"content":"25 × 4 "}

id: 7f3:3
event: tool_started
data: {"call_id":"call_1","name":"calculator","arguments":{"expression":"25*4"}}

data: [DONE]
"""


@router.post(
    "/agent/chat",
    response_model=ChatResponse,
    responses=error_responses(404, 409, 502),
    summary="Send a message and get the whole answer",
)
async def chat(
    body: ChatRequest, request: Request, service: ServiceDep, principal: PrincipalDep, agent_id: AgentHeader = None
) -> Response:
    """Send a message to an agent and get its answer with the tool calls.

    Without a `conversation_id`, a new conversation starts; the response has its id. Closing the connection stops the
    run.
    """
    active_run = await start_run(body, service, principal, agent_id)
    return await respond_with_answer(request, active_run, serialize_answer)


@router.post(
    "/api/agent",
    response_model=AgentChatResponse,
    responses=error_responses(404, 409, 502)
    | describe_text(EVENT_STREAM, "A stream of events, or one answer.", STREAM_EXAMPLE),
    summary="Send a message and stream the answer",
)
async def ask_agent(
    body: AgentChatRequest,
    request: Request,
    service: ServiceDep,
    principal: PrincipalDep,
    agent_id: AgentHeader = None,
    last_event_id: Annotated[
        str | None, Header(description="The id of the last received event; its run is continued, not started again.")
    ] = None,
) -> Response:
    """Send a message to an agent and stream its events.

    Deltas of the answer are unnamed events with `content`; other events have a name. The last event is
    `data: [DONE]`. Closing the connection stops the run, unless `detach` is true.
    """
    run_id, after = parse_last_event_id(last_event_id) if body.stream else ("", 0)
    if run_id:
        run = await load_own_run(service, principal, run_id)
        return respond_with_run_events(service, run.run_id, after)
    active_run = await start_run(body, service, principal, agent_id)
    if not body.stream:
        return await respond_with_answer(request, active_run, _serialize_with_content, detach=body.detach)
    on_end = None if body.detach else active_run.stop
    return respond_with_run_events(service, active_run.run.run_id, 0, on_end)


async def start_run(body: ChatRequest, service: Service, principal: Principal, agent_id: str | None) -> ActiveRun:
    """Start a run of an agent. A message without a conversation starts a new one.

    Args:
        body: The message, with the conversation and limits.
        service: The service.
        principal: The owner of the run.
        agent_id: The agent, None for the default one.

    Raises:
        ApiError: 404, if the agent does not exist.
        BadInput: If the message, the conversation or the model cannot be used.
        StoreError: If the store fails.
    """
    message = validate_task(body.message)
    spec = await resolve_agent(service, agent_id)
    parts = await _load_attachments(message, body.attachments)
    if body.model:
        spec = spec.model_copy(update={"model": body.model})
    is_new_conversation = body.conversation_id is None
    return await service.chat(
        spec,
        message,
        conversation_id=uuid4().hex if is_new_conversation else body.conversation_id or "",
        owner=principal.key_id,
        trace_id=CURRENT_TRACE.get().trace_id,
        limits=apply_request_limits(service.get_agent_limits(spec), body.max_tool_calls, body.max_tokens),
        stream=getattr(body, "stream", False),
        is_new_conversation=is_new_conversation,
        parts=parts,
    )


async def _load_attachments(text: str, attachments: Sequence[Attachment]) -> tuple[ContentPart, ...]:
    """Return the text, images and files of a message, () for text alone. URLs may have public addresses only."""
    if not attachments:
        return ()
    media = await asyncio.gather(*(load_media_from_url(each.url, name=each.name) for each in attachments))
    return (TextPart(text), *media)


async def resolve_agent(service: Service, agent_id: str | None) -> AgentSpec:
    """Return the requested agent, else the default agent. Raises: `ApiError` 404 if it does not exist."""
    return (await load_agent(service, agent_id or DEFAULT_AGENT_ID)).spec


async def respond_with_answer(
    request: Request, active_run: ActiveRun, serialize: Callable[[ActiveRun], dict[str, Any]], *, detach: bool = False
) -> Response:
    """Wait for the end of a run, and return its answer. Unless `detach`, a client that disconnects stops the run.

    Raises:
        ApiError: If the run was cancelled or failed.
    """
    try:
        await run_while_connected(request.receive, active_run.wait_until_ended())
    except ClientDisconnected:
        return CLIENT_CLOSED_REQUEST
    finally:
        if not detach:
            active_run.stop()
    if active_run.run.status == "cancelled":
        raise conflict_error("The run was cancelled.")
    if active_run.error is not None:
        raise _to_run_error(active_run.error)
    return json_response(serialize(active_run))


def _to_run_error(error: OpposableError) -> ApiError:
    """Return the error response of a failed run. Internal errors were already logged."""
    if type(error) is OpposableError:
        return ApiError(500, "internal_error", str(error))
    return to_api_error(error)


def _serialize_with_content(active_run: ActiveRun) -> dict[str, Any]:
    return {**serialize_answer(active_run), "content": active_run.run.text}


def apply_request_limits(agent_limits: Limits, tool_calls: int | None = None, tokens: int | None = None) -> Limits:
    """Return the limits of the agent, lowered by those of the request and by what the budget of the key leaves."""
    return replace(
        agent_limits,
        tool_calls=_get_lower_limit(agent_limits.tool_calls, tool_calls),
        tokens=_get_lower_limit(agent_limits.tokens, tokens, CURRENT_CALLER.get().get_remaining_tokens()),
    )


def _get_lower_limit(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
