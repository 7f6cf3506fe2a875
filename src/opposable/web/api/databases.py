"""The routes of the databases that questions can be asked about: list, schema, query."""

from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, Depends, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from opposable.domain.errors import ToolError
from opposable.domain.records import load_all_pages
from opposable.domain.specs import AgentSpec
from opposable.service.service import Service
from opposable.sql.database import Database
from opposable.sql.tools import MAX_ROWS, SqlTools
from opposable.web.api.chat import resolve_agent
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.pagination import PageResponse
from opposable.web.api.schemas import AgentHeader
from opposable.web.api.serializers import json_response
from opposable.web.errors import bad_input_error, error_responses, forbidden_error
from opposable.web.principal import Principal

router = ApiRouter(prefix="/api/databases", tags=["ask"])

DatabaseQuery = Annotated[
    str, Query(max_length=2000, description="As in /api/ask; default: that of the agent. Needs the scope admin.")
]


SAMPLE_NAME = "Sample: a music store"
SAMPLE_FILES = (
    Path(__file__).parents[1] / "sample.sqlite",
    Path(__file__).parents[4] / "examples" / "data" / "chinook.sqlite",
)
"""The sample database in an installed package, and in the repository."""


class DatabaseResponse(BaseModel):
    """A database that questions can be asked about."""

    agent_id: str = Field(description="The agent that has the database; empty for the sample.")
    database: str = Field(description="The URL of the sample; empty for the database of an agent.")
    name: str = Field(description="The name of the agent or of the sample.")
    has_semantics: bool = Field(description="Whether the agent has a semantic model of it.")


class ColumnResponse(BaseModel):
    """A column. `references` is "table.column" for a foreign key."""

    model_config = {"from_attributes": True}

    name: str
    type: str
    primary_key: bool
    references: str | None
    comment: str | None


class TableResponse(BaseModel):
    """A table or view."""

    name: str
    kind: str
    comment: str | None
    row_count: int | None
    columns: list[ColumnResponse]


class SchemaResponse(BaseModel):
    """The tables of a database."""

    database: str = Field(examples=["shop.sqlite"])
    dialect: str
    tables: list[TableResponse]


class QueryRequest(BaseModel):
    """One SELECT."""

    model_config = {"extra": "forbid"}

    sql: str = Field(min_length=1, max_length=100_000, examples=["SELECT 1"])
    database: str = Field(default="", max_length=2000, description="As in /api/ask. Needs the scope admin.")
    limit: int = Field(default=MAX_ROWS, ge=1, le=MAX_ROWS, description="The maximum number of rows.")


class QueryResponse(BaseModel):
    """The rows of a query."""

    sql: str = Field(description="The query that ran.")
    columns: list[str]
    rows: list[list[Any]]
    truncated: bool
    corrections: list[str] = Field(default=[], description="Repairs of a query that the engine rejected.")


@router.get("", dependencies=[Depends(RequireScope("chat"))], responses=error_responses(), summary="List databases")
async def list_databases(service: ServiceDep, principal: PrincipalDep) -> PageResponse[DatabaseResponse]:
    """List the agents with a database that the API key can use, and for admins the sample database."""
    records = await load_all_pages(lambda after: service.store.agents.list(after=after, limit=1000))
    databases = [
        DatabaseResponse(
            agent_id=record.spec.agent_id,
            database="",
            name=record.spec.name or record.spec.agent_id,
            has_semantics=bool(record.spec.semantics),
        )
        for record in records
        if record.spec.database
    ]
    sample = next((file for file in SAMPLE_FILES if file.is_file()), None)
    if sample is not None and principal.has_scope("admin"):
        url = f"sqlite:///{sample}"
        databases.append(DatabaseResponse(agent_id="", database=url, name=SAMPLE_NAME, has_semantics=False))
    return PageResponse(items=databases)


@router.get(
    "/schema",
    dependencies=[Depends(RequireScope("tools:read"))],
    responses=error_responses(404),
    summary="Get the schema of a database",
)
async def get_database_schema(
    service: ServiceDep, principal: PrincipalDep, database: DatabaseQuery = "", agent_id: AgentHeader = None
) -> SchemaResponse:
    """Get the tables and columns of the database of an agent."""
    opened = await open_database(service, principal, agent_id, database)
    schema = await opened.get_schema()
    return SchemaResponse(
        database=opened.name,
        dialect=opened.dialect,
        tables=[
            TableResponse(
                name=table.full_name,
                kind=table.kind,
                comment=table.comment,
                row_count=table.row_count,
                columns=[ColumnResponse.model_validate(column) for column in table.columns],
            )
            for table in schema.tables
        ],
    )


@router.post(
    "/query",
    response_model=QueryResponse,
    dependencies=[Depends(RequireScope("tools:write"))],
    responses=error_responses(404),
    summary="Query a database",
)
async def query_database(
    service: ServiceDep,
    principal: PrincipalDep,
    body: Annotated[QueryRequest, Body(examples=[{"sql": "SELECT 1"}])],
    agent_id: AgentHeader = None,
) -> Response:
    """Run one read-only SELECT on the database of an agent."""
    opened = await open_database(service, principal, agent_id, body.database)
    try:
        result = await SqlTools(opened).execute(body.sql, limit=body.limit)
    except ToolError as error:
        raise bad_input_error(str(error)) from error
    return json_response({"corrections": [], **result})


async def open_database(service: Service, principal: Principal, agent_id: str | None, database: str) -> Database:
    """Return the database of the agent, or the one that an admin names.

    Raises:
        ApiError: 400, 403 or 404, if it is missing or the key must not use it.
    """
    spec = await resolve_agent(service, agent_id)
    url, semantics = select_database(principal, spec, database)
    return (await service.teams.get(service.get_model(spec.model), url, semantics, assisted=spec.assisted)).database


def select_database(principal: Principal, spec: AgentSpec, database: str, semantics: str = "") -> tuple[str, str]:
    """Return the URL of the database and the path of its semantic model: those of the agent, or those that are named.

    Raises:
        ApiError: 400 or 403, if there is no database or the key must not name one.
    """
    if (database or semantics) and not principal.has_scope("admin"):
        raise forbidden_error(
            "Naming a database or a semantic model needs the scope 'admin'. Use an agent that has a database."
        )
    if not database and not spec.database:
        raise bad_input_error(f"The agent {spec.agent_id!r} has no database. Name one in the request.")
    return database or spec.database, semantics or ("" if database else spec.semantics)
