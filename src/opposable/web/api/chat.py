"""The routes that ask an agent: a whole answer, or a stream of events."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Depends, Header, Request
from starlette.responses import Response

from opposable.agent.limits import Limits
from opposable.app.inputs import task
from opposable.domain.errors import OpposableError
from opposable.domain.specs import AgentSpec
from opposable.service.runner import Going
from opposable.service.service import DEFAULT_AGENT, Service
from opposable.web.api.dependencies import Needs, ThePrincipal, TheService, trace_of
from opposable.web.api.event_stream import place, told_again
from opposable.web.api.runs import own_run
from opposable.web.api.schemas import AgentAnswer, AgentChat, AgentHeader, Asked, ChatAnswer
from opposable.web.api.serializers import answer_as_json, answered
from opposable.web.errors import ApiError, conflict, documented, forbidden, not_found, translated
from opposable.web.principal import Principal
from opposable.web.sse import EventStream, Gone, while_there

router = APIRouter(tags=["chat"], dependencies=[Depends(Needs("chat"))])

CLIENT_LEFT = Response(status_code=499)
"""For the log alone: nobody is there to read it."""

STREAM = """id: 7f3:2
data: {"content":"25 × 4 "}

id: 7f3:3
event: tool_started
data: {"call_id":"call_1","name":"calculator","arguments":{"expression":"25*4"}}

data: [DONE]
"""
SSE: dict[str, Any] = {"text/event-stream": {"schema": {"type": "string"}, "example": STREAM}}


@router.post(
    "/agent/chat",
    response_model=ChatAnswer,
    responses=documented(404, 409, 502),
    summary="Ask an agent, and wait for the whole answer",
)
async def chat(
    body: Asked, request: Request, service: TheService, principal: ThePrincipal, agent_id: AgentHeader = None
) -> Response:
    """The answer with the calls made on the way. Without a conversation a new one is begun; its id is in the answer.

    A client that leaves stops the run.
    """
    return await _whole(body, request, service, principal, agent_id, detach=False, shown=answer_as_json)


@router.post(
    "/api/agent",
    response_model=AgentAnswer,
    responses={
        **documented(404, 409, 502),
        200: {"description": "A stream of events; with `stream: false` one answer.", "content": SSE},
    },
    summary="Ask an agent, and see the answer as it comes",
)
async def agent(
    body: AgentChat,
    request: Request,
    service: TheService,
    principal: ThePrincipal,
    agent_id: AgentHeader = None,
    last_event_id: Annotated[
        str | None, Header(description="The id of the last event seen: the run is told on from there, not begun anew.")
    ] = None,
) -> Response:
    """Pieces of the answer as `data: {"content": …}`, other events by name between them, `data: [DONE]` at the end.

    A client that leaves stops the run, unless it asked for `detach`.
    """
    if not body.stream:
        return await _whole(body, request, service, principal, agent_id, detach=body.detach, shown=_with_content)
    run_id, after = place(last_event_id)
    if run_id:
        run = await own_run(service, principal, run_id)
        return EventStream(told_again(service, run.run_id, after), translated)
    going = await begin(body, request, service, principal, agent_id)
    events = told_again(service, going.run.run_id, 0)
    return EventStream(events, translated, on_end=lambda: None if body.detach else going.stop())


async def begin(
    body: Asked, request: Request, service: Service, principal: Principal, agent_id: str | None, *, keep: bool = False
) -> Going:
    """Begin a run; with `keep` in a new conversation where none is named. Raises: `ApiError`, `BadInput`, `StoreError`."""
    message = task(body.message)
    spec = await agent_for(service, principal, agent_id)
    new = keep and body.conversation_id is None
    return await service.chat(
        spec,
        message,
        conversation_id=uuid4().hex if new else body.conversation_id or "",
        owner=principal.key_id,
        trace_id=trace_of(request),
        limits=_limits(service.limits_of(spec), body),
        stream=getattr(body, "stream", False),
        new=new,
    )


async def agent_for(service: Service, principal: Principal, agent_id: str | None) -> AgentSpec:
    """The agent that is asked. Raises: `ApiError` 404 for one there is not, 403 for one this key may not ask."""
    wanted = agent_id or principal.agent or DEFAULT_AGENT
    if principal.agent and wanted != principal.agent:
        raise forbidden(f"This key may ask the agent {principal.agent!r} only.")
    record = await service.store.agents.get(wanted)
    if record is None:
        raise not_found(f"There is no agent {wanted!r}.")
    return record.spec


async def _whole(
    body: Asked,
    request: Request,
    service: Service,
    principal: Principal,
    agent_id: str | None,
    *,
    detach: bool,
    shown: Callable[[Going], dict[str, Any]],
) -> Response:
    going = await begin(body, request, service, principal, agent_id, keep=True)
    try:
        await while_there(request.receive, going.ended())
    except Gone:
        return CLIENT_LEFT
    finally:
        if not detach:
            going.stop()
    if going.run.status == "cancelled":
        raise conflict("The run was cancelled.")
    if going.error is not None:
        raise _failed(going.error)
    return answered(shown(going))


def _failed(error: OpposableError) -> ApiError:
    """What a failed run is answered with; a mistake of ours was logged where it happened."""
    if type(error) is OpposableError:
        return ApiError(500, "internal_error", str(error))
    return translated(error)


def _with_content(going: Going) -> dict[str, Any]:
    return {**answer_as_json(going), "content": going.run.text}


def _limits(own: Limits, body: Asked) -> Limits:
    """The agent's limits, or those asked for where they are lower."""
    return replace(
        own, tool_calls=_lower(own.tool_calls, body.max_tool_calls), tokens=_lower(own.tokens, body.max_tokens)
    )


def _lower(own: int | None, asked: int | None) -> int | None:
    return min((one for one in (own, asked) if one is not None), default=None)
