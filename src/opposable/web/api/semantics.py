"""The routes of what improves answers about a database: its semantic model, and confirmed questions."""

import asyncio
from datetime import datetime
from typing import Literal

from fastapi import Depends, Response
from pydantic import BaseModel, Field

from opposable.app.query_examples import create_example
from opposable.ask.semantics.lint import lint_semantic_model
from opposable.ask.semantics.loader import load_semantic_model
from opposable.domain.records import QueryExample
from opposable.web.api.chat import resolve_agent
from opposable.web.api.databases import DatabaseQuery, open_database
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.pagination import PageResponse
from opposable.web.api.schemas import AgentHeader
from opposable.web.errors import error_responses, not_found_error

router = ApiRouter(prefix="/api/databases", tags=["ask"])
REQUIRE_READ, REQUIRE_WRITE = [Depends(RequireScope("tools:read"))], [Depends(RequireScope("tools:write"))]


class TermResponse(BaseModel):
    """A term of a semantic model that a question may name."""

    section: Literal["metrics", "dimensions", "filters", "exclusions"]
    id: str
    expr: str = Field(description="The SQL expression or condition.")
    table: str
    synonyms: list[str]
    description: str
    unit: str


class FindingResponse(BaseModel):
    """A problem of a semantic model."""

    model_config = {"from_attributes": True}

    severity: Literal["error", "warning", "info"]
    location: str
    problem: str
    hint: str


class SemanticsResponse(BaseModel):
    """The terms of a semantic model, and what its check against the database found."""

    name: str
    description: str
    terms: list[TermResponse]
    findings: list[FindingResponse]


class ExampleRequest(BaseModel):
    """A question, and SQL that answers it."""

    model_config = {"extra": "forbid"}

    question: str = Field(min_length=1, max_length=2000, pattern=r"\S", examples=["How many genres are there?"])
    sql: str = Field(min_length=1, max_length=100_000, pattern=r"\S", examples=["SELECT count(*) FROM Genre"])
    database: str = Field(default="", max_length=2000, description="As in /api/ask. Needs the scope admin.")


class ExampleResponse(BaseModel):
    """A confirmed question. Later questions about the database use it."""

    model_config = {"from_attributes": True}

    example_id: str
    question: str
    sql: str
    created_at: datetime


@router.get(
    "/semantics", dependencies=REQUIRE_READ, responses=error_responses(404), summary="Get and check a semantic model"
)
async def get_semantics(
    service: ServiceDep, principal: PrincipalDep, agent_id: AgentHeader = None
) -> SemanticsResponse:
    """Get the terms of the agent's semantic model, and check them against its database."""
    spec = await resolve_agent(service, agent_id)
    if not spec.semantics:
        raise not_found_error(f"The agent {spec.agent_id!r} has no semantic model.")
    model = await asyncio.to_thread(load_semantic_model, spec.semantics)
    findings = await lint_semantic_model(model, await open_database(service, principal, agent_id, ""))
    return SemanticsResponse(
        name=model.name,
        description=model.description,
        terms=[
            TermResponse.model_validate({"unit": "", **term.model_dump(), "section": section})
            for section, term in model.iter_terms()
        ],
        findings=[FindingResponse.model_validate(finding) for finding in findings],
    )


@router.get("/examples", dependencies=REQUIRE_READ, responses=error_responses(404), summary="List confirmed questions")
async def list_examples(
    service: ServiceDep, principal: PrincipalDep, database: DatabaseQuery = "", agent_id: AgentHeader = None
) -> PageResponse[ExampleResponse]:
    """List the confirmed questions of a database, the latest first."""
    opened = await open_database(service, principal, agent_id, database)
    examples = await service.store.query_examples.list_for_database(opened.identity)
    return PageResponse(items=[ExampleResponse.model_validate(example) for example in examples])


@router.post(
    "/examples",
    status_code=201,
    dependencies=REQUIRE_WRITE,
    responses=error_responses(404),
    summary="Confirm the SQL of a question",
)
async def add_example(
    service: ServiceDep, principal: PrincipalDep, body: ExampleRequest, agent_id: AgentHeader = None
) -> ExampleResponse:
    """Store a question with its SQL, in place of an earlier example of the same question."""
    opened = await open_database(service, principal, agent_id, body.database)
    example = await create_example(opened, body.question, body.sql)
    await service.store.query_examples.add([example])
    return ExampleResponse.model_validate(example)


@router.delete(
    "/examples/{example_id}",
    status_code=204,
    dependencies=REQUIRE_WRITE,
    responses=error_responses(404),
    summary="Delete a confirmed question",
)
async def delete_example(
    service: ServiceDep,
    principal: PrincipalDep,
    example_id: str,
    database: DatabaseQuery = "",
    agent_id: AgentHeader = None,
) -> Response:
    """Delete a confirmed question of a database."""
    opened = await open_database(service, principal, agent_id, database)
    examples: tuple[QueryExample, ...] = await service.store.query_examples.list_for_database(opened.identity)
    if example_id not in {example.example_id for example in examples}:
        raise not_found_error(f"There is no confirmed question {example_id!r} of this database.")
    await service.store.query_examples.delete(example_id)
    return Response(status_code=204)
