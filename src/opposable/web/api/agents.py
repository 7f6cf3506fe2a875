"""The routes of agents and their versions, with import and export as YAML."""

import asyncio
from datetime import datetime
from typing import Annotated, Any

from fastapi import Body, Depends, Query, Request, Response
from pydantic import BaseModel, Field, ValidationError

from opposable.app.agent_check import WarningId
from opposable.domain.errors import BadInput
from opposable.domain.records import AgentRecord
from opposable.domain.specs import AgentSpec
from opposable.safety.redaction import redact
from opposable.service.service import Service
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.pagination import AfterQuery, AgentIdPath, LimitQuery, PageResponse
from opposable.web.api.spec_authorization import authorize_agent
from opposable.web.api.text_responses import describe_text
from opposable.web.errors import conflict_error, error_responses, not_found_error, to_api_error
from opposable.web.principal import Principal

router = ApiRouter(prefix="/api/agents", tags=["agents"])
REQUIRE_READ, REQUIRE_WRITE = [Depends(RequireScope("tools:read"))], [Depends(RequireScope("tools:write"))]
YAML_MEDIA_TYPE = "application/yaml"
MAX_YAML_BYTES = 1_000_000

AGENT_EXAMPLE = {
    "agent_id": "clerk",
    "name": "Clerk",
    "instructions": "You answer questions about stock.",
    "tools": [{"tool_id": "calculator"}],
    "limits": {"turns": 10, "tool_calls": 20},
}
AgentSpecBody = Annotated[AgentSpec, Body(openapi_examples={"clerk": {"summary": "An agent", "value": AGENT_EXAMPLE}})]
YAML_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {YAML_MEDIA_TYPE: {"schema": {"type": "string"}, "example": "agent_id: clerk\nname: Clerk\n"}},
    }
}


class AgentWarningResponse(BaseModel):
    """A warning about an agent: its message in English, and the id and values for messages in other languages."""

    id: WarningId
    message: str = Field(examples=["The agent reads untrusted text (mail) and can act on it (pay)."])
    parameters: dict[str, str] = Field(examples=[{"readers": "mail", "actors": "pay"}])


class AgentResponse(BaseModel):
    """A stored agent. `version` grows with each change.

    `warnings` of a single agent say which tools it cannot use, and whether it can act on untrusted text.
    """

    agent: AgentSpec
    version: int = Field(examples=[1])
    created_at: datetime | None = None
    updated_at: datetime | None = None
    warnings: list[AgentWarningResponse] = []


@router.get("", dependencies=REQUIRE_READ, responses=error_responses(), summary="List agents")
async def list_agents(
    service: ServiceDep, principal: PrincipalDep, after: AfterQuery = "", limit: LimitQuery = 100
) -> PageResponse[AgentResponse]:
    """List the agents, the last changed first."""
    page = await service.store.agents.list(after=after, limit=limit)
    return PageResponse(items=[to_agent_response(record, principal) for record in page.items], next=page.next_cursor)


@router.post("", status_code=201, dependencies=REQUIRE_WRITE, responses=error_responses(409), summary="Create an agent")
async def create_agent(service: ServiceDep, principal: PrincipalDep, spec: AgentSpecBody) -> AgentResponse:
    """Create an agent as version 1."""
    await authorize_agent(spec, service, principal)
    if await service.store.agents.get(spec.agent_id) is not None:
        raise conflict_error(
            f"The agent {spec.agent_id!r} already exists. Change it with PUT, or use another agent_id."
        )
    return to_agent_response(await service.store.agents.add(spec), principal, service)


@router.post(
    "/import",
    dependencies=REQUIRE_WRITE,
    responses=error_responses(409),
    summary="Import an agent from YAML",
    openapi_extra=YAML_BODY,
)
async def import_agent(request: Request, service: ServiceDep, principal: PrincipalDep) -> AgentResponse:
    """Create the agent in the body, or the next version of an existing agent."""
    body = await request.body()
    if len(body) > MAX_YAML_BYTES:
        raise BadInput(f"The YAML has {len(body):,} bytes. The maximum is {MAX_YAML_BYTES:,} bytes.")
    spec = await asyncio.to_thread(_parse_agent, body)
    previous = await service.store.agents.get(spec.agent_id)
    if previous is not None:
        spec = _restore_database(spec, previous.spec)
    await authorize_agent(spec, service, principal, None if previous is None else previous.spec)
    record = await service.store.agents.update(spec) or await service.store.agents.add(spec)
    return to_agent_response(record, principal, service)


@router.get("/{agent_id}", dependencies=REQUIRE_READ, responses=error_responses(404), summary="Get an agent")
async def get_agent(service: ServiceDep, principal: PrincipalDep, agent_id: AgentIdPath) -> AgentResponse:
    """Get the current version of an agent. Without the scope `admin`, the password of its database is redacted."""
    return to_agent_response(await load_agent(service, agent_id), principal, service)


@router.put("/{agent_id}", dependencies=REQUIRE_WRITE, responses=error_responses(404, 409), summary="Update an agent")
async def update_agent(
    service: ServiceDep,
    principal: PrincipalDep,
    agent_id: AgentIdPath,
    spec: AgentSpecBody,
    expected: Annotated[
        int | None, Query(ge=1, le=2**31 - 1, description="The version that the change is based on.")
    ] = None,
) -> AgentResponse:
    """Store an agent as its next version. An unchanged agent keeps its version."""
    if spec.agent_id != agent_id:
        raise BadInput(f"The path has the id {agent_id!r} and the body {spec.agent_id!r}. The id cannot change.")
    previous = await load_agent(service, agent_id)
    spec = _restore_database(spec, previous.spec)
    await authorize_agent(spec, service, principal, previous.spec)
    record = require_agent(agent_id, await service.store.agents.update(spec, expected_version=expected))
    return to_agent_response(record, principal, service)


@router.delete(
    "/{agent_id}",
    status_code=204,
    dependencies=REQUIRE_WRITE,
    responses=error_responses(404),
    summary="Delete an agent",
)
async def delete_agent(service: ServiceDep, agent_id: AgentIdPath) -> Response:
    """Delete an agent with its versions and bindings.

    Its runs and conversations remain.
    """
    if not await service.store.agents.delete(agent_id):
        raise _agent_not_found_error(agent_id)
    return Response(status_code=204)


@router.get(
    "/{agent_id}/versions",
    dependencies=REQUIRE_READ,
    responses=error_responses(404),
    summary="List the versions of an agent",
)
async def list_agent_versions(
    service: ServiceDep, principal: PrincipalDep, agent_id: AgentIdPath
) -> PageResponse[AgentResponse]:
    """List the versions, newest first. `updated_at` is when a version was created."""
    records = await service.store.agents.list_versions(agent_id)
    if not records:
        raise _agent_not_found_error(agent_id)
    return PageResponse(items=[to_agent_response(record, principal) for record in records])


@router.get(
    "/{agent_id}/export",
    dependencies=REQUIRE_READ,
    responses=error_responses(404) | describe_text(YAML_MEDIA_TYPE, "The agent as YAML.", "agent_id: clerk\n"),
    response_class=Response,
    summary="Export an agent as YAML",
)
async def export_agent(service: ServiceDep, principal: PrincipalDep, agent_id: AgentIdPath) -> Response:
    """Export an agent as YAML that `/api/agents/import` accepts."""
    import yaml

    spec = to_agent_response(await load_agent(service, agent_id), principal).agent
    data = spec.model_dump(mode="json", exclude_defaults=True)
    return Response(yaml.safe_dump(data, allow_unicode=True, sort_keys=False), media_type=YAML_MEDIA_TYPE)


async def load_agent(service: Service, agent_id: str) -> AgentRecord:
    """Return the stored agent.

    Raises:
        ApiError: 404, if there is no such agent.
    """
    return require_agent(agent_id, await service.store.agents.get(agent_id))


def require_agent(agent_id: str, record: AgentRecord | None) -> AgentRecord:
    """Return the record if it is not None.

    Raises:
        ApiError: 404, if it is None.
    """
    if record is None:
        raise _agent_not_found_error(agent_id)
    return record


def to_agent_response(record: AgentRecord, principal: Principal, service: Service | None = None) -> AgentResponse:
    """Return a record as the principal may see it, with warnings where the service is given."""
    is_admin = principal.has_scope("admin")
    return AgentResponse(
        agent=record.spec if is_admin else record.spec.model_copy(update={"database": redact(record.spec.database)}),
        version=record.version,
        created_at=record.created_at,
        updated_at=record.updated_at,
        warnings=[
            AgentWarningResponse(id=warning.warning_id, message=warning.message, parameters=warning.parameters)
            for warning in (service.find_agent_warnings(record.spec) if service is not None else ())
        ],
    )


def _restore_database(spec: AgentSpec, previous: AgentSpec) -> AgentSpec:
    """Return a spec with the password of its database, if a client sends back what `to_agent_response` redacted."""
    is_redacted = spec.database != previous.database and spec.database == redact(previous.database)
    return spec.model_copy(update={"database": previous.database}) if is_redacted else spec


def _parse_agent(body: bytes) -> AgentSpec:
    """Parse an agent written as YAML.

    Raises:
        BadInput: If the text is not a YAML mapping.
        ApiError: 422, if the fields of the agent are not valid.
    """
    from opposable.tools.http.openapi.document import is_small, parse_document  # lazy: OpenAPI needs the extra "http"

    data = parse_document(body, "The body")
    if not isinstance(data, dict) or not is_small(data, 100_000):
        raise BadInput("The body is not an agent. Send YAML with agent_id, name, instructions and tools.")
    try:
        return AgentSpec.model_validate(data)
    except ValidationError as error:
        raise to_api_error(error, AgentSpec) from error


def _agent_not_found_error(agent_id: str) -> Exception:
    return not_found_error(f"There is no agent {agent_id!r}.")
