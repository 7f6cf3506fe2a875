"""The route that asks data: the team's answer whole, or its turns as a stream of events."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from opposable.app import answer_as_json
from opposable.app.inputs import task
from opposable.domain.errors import OpposableError
from opposable.domain.specs import AgentSpec
from opposable.service.runner import Going
from opposable.service.service import Service
from opposable.web.api.chat import CLIENT_LEFT, agent_for
from opposable.web.api.dependencies import Needs, ThePrincipal, TheService, trace_of
from opposable.web.api.event_stream import told_again
from opposable.web.api.schemas import AgentHeader
from opposable.web.api.serializers import answered
from opposable.web.errors import bad_input, conflict, documented, forbidden, translated
from opposable.web.principal import Principal
from opposable.web.sse import EventStream, Gone, while_there

router = APIRouter(tags=["ask"], dependencies=[Depends(Needs("chat"))])

STREAM = """id: 7f3:2
event: decided
data: {"action":"sql_generator","reason":"no SQL has been written yet"}

id: 7f3:8
data: {"content":"The answer is 25."}

id: 7f3:9
event: data_answered
data: {"text":"The answer is 25.","sql":"SELECT count(*) FROM Genre","columns":["count(*)"],"rows":[[25]]}

data: [DONE]
"""
SSE: dict[str, Any] = {"text/event-stream": {"schema": {"type": "string"}, "example": STREAM}}


class DataQuestion(BaseModel):
    """A question about data. Which database is asked is the agent's to say, or an administrator's."""

    question: str = Field(min_length=1, description="In English or Chinese.", examples=["哪个国家的客户最多？"])
    database: str = Field(
        default="",
        max_length=2000,
        description="duckdb:///FILE, sqlite:///FILE or postgresql://…; the agent's own without it. Needs the scope admin.",
    )
    semantics: str = Field(
        default="",
        max_length=2000,
        description="The file of a semantic model; the agent's own without it. Needs the scope admin.",
    )
    stream: bool = Field(default=True, description="Whether to answer as a stream of events.")


class AskUsage(BaseModel):
    """What an answer took."""

    total_tokens: int
    model_calls: int


class DataAnswered(BaseModel):
    """An answer from data."""

    answer: str = Field(examples=["The answer is 25."])
    sql: str = Field(examples=["SELECT count(*) FROM Genre"])
    columns: list[str]
    rows: list[list[Any]]
    truncated: bool
    chart: dict[str, Any] | None
    assumptions: list[str]
    corrections: list[str]
    confidence: float
    usage: AskUsage


@router.post(
    "/api/ask",
    response_model=DataAnswered,
    responses={
        **documented(404, 409, 502),
        200: {"description": "A stream of events; with `stream: false` one answer.", "content": SSE},
    },
    summary="Ask a question about data",
)
async def ask(
    body: DataQuestion, request: Request, service: TheService, principal: ThePrincipal, agent_id: AgentHeader = None
) -> Response:
    """The team's turns as events, its sentence as `data: {"content": …}`, the whole answer in `data_answered`.

    A client that leaves stops it.
    """
    spec = await agent_for(service, principal, agent_id)
    going = await _begin(body, request, service, principal, spec)
    if body.stream:
        return EventStream(told_again(service, going.run.run_id, 0), translated, on_end=going.stop)
    return await _whole(request, going)


async def _begin(
    body: DataQuestion, request: Request, service: Service, principal: Principal, spec: AgentSpec
) -> Going:
    if (body.database or body.semantics) and not principal.may("admin"):
        raise forbidden("Only a key with the scope 'admin' may name a database; ask an agent that has one.")
    database = body.database or spec.database
    if not database:
        raise bad_input(f"The agent {spec.agent_id!r} has no database, and the request names none.")
    semantics = body.semantics or (spec.semantics if not body.database else "")
    question = task(body.question)
    return await service.ask(
        question, database, semantics, agent=spec, owner=principal.key_id, trace_id=trace_of(request)
    )


async def _whole(request: Request, going: Going) -> Response:
    try:
        await while_there(request.receive, going.ended())
    except Gone:
        return CLIENT_LEFT
    finally:
        going.stop()
    if going.run.status == "cancelled":
        raise conflict("The run was cancelled.")
    if going.answer is None:
        raise going.error or OpposableError("The question was not answered.")
    return answered(answer_as_json(going.answer.answer, going.run.usage))
