"""The route that answers questions about data."""

from typing import Any

from fastapi import Depends, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from opposable.app.ask import answer_to_json
from opposable.app.inputs import validate_task
from opposable.domain.answers import QueryCandidate, TeamTurn
from opposable.domain.errors import OpposableError
from opposable.domain.specs import AgentSpec
from opposable.service.runner import ActiveRun
from opposable.service.service import Service
from opposable.web.api.chat import resolve_agent, respond_with_answer
from opposable.web.api.databases import select_database
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.run_event_sse import respond_with_run_events
from opposable.web.api.schemas import AgentHeader
from opposable.web.api.text_responses import EVENT_STREAM, describe_text
from opposable.web.errors import error_responses
from opposable.web.principal import Principal
from opposable.web.telemetry.tracing import CURRENT_TRACE

router = ApiRouter(tags=["ask"], dependencies=[Depends(RequireScope("chat"))])

STREAM_EXAMPLE = """id: 7f3:2
event: decided
data: {"action":"sql_generator","reason":"no SQL has been written yet"}

id: 7f3:8
data: {"content":"The answer is 25."}

id: 7f3:9
event: data_answered
data: {"text":"The answer is 25.","sql":"SELECT count(*) FROM Genre","columns":["count(*)"],"rows":[[25]]}

data: [DONE]
"""


class AskRequest(BaseModel):
    """A question about data.

    The agent has the database; only admins can name another one.
    """

    model_config = {"extra": "forbid"}

    question: str = Field(min_length=1, description="In English or Chinese.", examples=["哪个国家的客户最多？"])
    database: str = Field(
        default="",
        max_length=2000,
        description="duckdb:///FILE, sqlite:///FILE, clickhouse:///DIRECTORY, postgresql://… or mysql://…; default: that of the agent. Needs the scope admin.",
    )
    semantics: str = Field(
        default="",
        max_length=2000,
        pattern=r"^[^\x00]*$",
        description="The path of a semantic model; default: that of the agent. Needs the scope admin.",
    )
    history: list[str] = Field(
        default_factory=list,
        max_length=50,
        description="The earlier questions of the conversation, oldest first, for a follow-up question.",
        examples=[["How many orders are there?"]],
    )
    stream: bool = Field(default=True, strict=True, description="Whether to respond with a stream of events.")
    detach: bool = Field(
        default=False, strict=True, description="Whether the run continues when the client disconnects."
    )


class AskUsage(BaseModel):
    """The usage of an answer."""

    total_tokens: int
    model_calls: int


class AskResponse(BaseModel):
    """The answer to a question about data."""

    success: bool = Field(description="Whether there is an answer.")
    error: str | None = Field(description="Why there is no answer.")
    answer: str = Field(examples=["The answer is 25."])
    sql: str = Field(examples=["SELECT count(*) FROM Genre"])
    columns: list[str]
    rows: list[list[Any]]
    truncated: bool
    chart: dict[str, Any] | None
    assumptions: list[str]
    corrections: list[str]
    warnings: list[str]
    confidence: float | None = Field(description="Between 0 and 1; null if it is not known.")
    doubts: list[str] = Field(description="What the answer is unsure of if its confidence is low.")
    candidates: list[QueryCandidate] = Field(description="The SQL that was considered, in order.")
    intent: dict[str, Any] | None = Field(description="The question in the ids of the semantic model.")
    history: list[TeamTurn] = Field(description="The turns of the team.")
    usage: AskUsage


@router.post(
    "/api/ask",
    response_model=AskResponse,
    responses=error_responses(404, 409, 502)
    | describe_text(EVENT_STREAM, "A stream of events, or one answer.", STREAM_EXAMPLE),
    summary="Ask a question about data",
)
async def ask_data(
    body: AskRequest, request: Request, service: ServiceDep, principal: PrincipalDep, agent_id: AgentHeader = None
) -> Response:
    """Ask the team of agents a question about data.

    A stream has the turns of the team, the answer in words as unnamed events with `content`, and the whole answer in
    the event `data_answered`. Closing the connection stops the run, unless `detach` is true.
    """
    spec = await resolve_agent(service, agent_id)
    active_run = await _start_run(body, service, principal, spec)
    if not body.stream:
        return await respond_with_answer(request, active_run, _serialize_answer, detach=body.detach)
    on_end = None if body.detach else active_run.stop
    return respond_with_run_events(service, active_run.run.run_id, 0, on_end)


async def _start_run(body: AskRequest, service: Service, principal: Principal, spec: AgentSpec) -> ActiveRun:
    database, semantics = select_database(principal, spec, body.database, body.semantics)
    return await service.ask(
        validate_task(body.question, is_question=True),
        database,
        semantics,
        agent=spec,
        owner=principal.key_id,
        trace_id=CURRENT_TRACE.get().trace_id,
        earlier_questions=[validate_task(earlier, is_question=True) for earlier in body.history],
    )


def _serialize_answer(active_run: ActiveRun) -> dict[str, Any]:
    if active_run.data_answer is None:
        raise OpposableError("The run ended without an answer.")
    return answer_to_json(active_run.data_answer.answer, active_run.run.usage)
