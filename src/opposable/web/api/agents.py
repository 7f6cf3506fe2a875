"""The routes of agents: kept, changed, looked back at, carried elsewhere as YAML."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query, Request, Response
from pydantic import BaseModel, Field, ValidationError

from opposable.domain.errors import BadInput
from opposable.domain.records import AgentRecord
from opposable.domain.specs import AgentSpec
from opposable.service.service import Service
from opposable.web.api.dependencies import PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.pagination import AfterQuery, AgentIdPath, LimitQuery, PageResponse
from opposable.web.api.spec_authorization import authorize_agent
from opposable.web.errors import conflict_error, error_responses, not_found_error, to_api_error

router = APIRouter(prefix="/api/agents", tags=["agents"])
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
YAML_RESPONSE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The agent.",
        "content": {YAML_MEDIA_TYPE: {"schema": {"type": "string"}, "example": "agent_id: clerk\n"}},
    }
}


class AgentResponse(BaseModel):
    """An agent as it is kept; `version` grows with each change."""

    agent: AgentSpec
    version: int = Field(examples=[1])
    created_at: datetime | None = None
    updated_at: datetime | None = None


@router.get("", dependencies=REQUIRE_READ, responses=error_responses(), summary="Agents, the last changed first")
async def list_agents(
    service: ServiceDep, after: AfterQuery = "", limit: LimitQuery = 100
) -> PageResponse[AgentResponse]:
    """The agents there are."""
    page = await service.store.agents.list(after=after, limit=limit)
    return PageResponse(items=[to_agent_response(record) for record in page.items], next=page.next_cursor)


@router.post(
    "", status_code=201, dependencies=REQUIRE_WRITE, responses=error_responses(409), summary="Keep a new agent"
)
async def create_agent(service: ServiceDep, principal: PrincipalDep, spec: AgentSpecBody) -> AgentResponse:
    """Keep a new agent as version 1."""
    await authorize_agent(spec, service, principal)
    if await service.store.agents.get(spec.agent_id) is not None:
        raise conflict_error(
            f"There is an agent {spec.agent_id!r} already; change it with PUT, or choose another agent_id."
        )
    return to_agent_response(await service.store.agents.add(spec))


@router.post(
    "/import",
    dependencies=REQUIRE_WRITE,
    responses=error_responses(409),
    summary="Keep an agent written as YAML",
    openapi_extra=YAML_BODY,
)
async def import_agent(request: Request, service: ServiceDep, principal: PrincipalDep) -> AgentResponse:
    """Keep the agent that the body describes: a new one, or the next version of the one that has its id."""
    spec = _parse_agent(await _read_body(request))
    before = await service.store.agents.get(spec.agent_id)
    await authorize_agent(spec, service, principal, None if before is None else before.spec)
    record = await service.store.agents.update(spec) or await service.store.agents.add(spec)
    return to_agent_response(record)


@router.get("/{agent_id}", dependencies=REQUIRE_READ, responses=error_responses(404), summary="One agent")
async def get_agent(service: ServiceDep, agent_id: AgentIdPath) -> AgentResponse:
    """The agent as it is kept."""
    return to_agent_response(await load_agent(service, agent_id))


@router.put("/{agent_id}", dependencies=REQUIRE_WRITE, responses=error_responses(404, 409), summary="Change an agent")
async def update_agent(
    service: ServiceDep,
    principal: PrincipalDep,
    agent_id: AgentIdPath,
    spec: AgentSpecBody,
    expected: Annotated[
        int | None, Query(ge=1, le=2**31 - 1, description="The version this change was made from.")
    ] = None,
) -> AgentResponse:
    """Keep a changed agent as its next version; what is as it was makes none."""
    if spec.agent_id != agent_id:
        raise BadInput(f"The path names {agent_id!r} and the body {spec.agent_id!r}; an agent's id stays as it is.")
    before = await load_agent(service, agent_id)
    await authorize_agent(spec, service, principal, before.spec)
    return to_agent_response(
        require_agent(agent_id, await service.store.agents.update(spec, expected_version=expected))
    )


@router.delete(
    "/{agent_id}",
    status_code=204,
    dependencies=REQUIRE_WRITE,
    responses=error_responses(404),
    summary="Forget an agent",
)
async def delete_agent(service: ServiceDep, agent_id: AgentIdPath) -> Response:
    """Forget an agent, its versions and bindings; its runs and conversations stay."""
    if not await service.store.agents.delete(agent_id):
        raise _agent_not_found_error(agent_id)
    return Response(status_code=204)


@router.get(
    "/{agent_id}/versions",
    dependencies=REQUIRE_READ,
    responses=error_responses(404),
    summary="Every version of an agent",
)
async def list_agent_versions(service: ServiceDep, agent_id: AgentIdPath) -> PageResponse[AgentResponse]:
    """The versions, newest first; `updated_at` is when each came to be."""
    records = await service.store.agents.list_versions(agent_id)
    if not records:
        raise _agent_not_found_error(agent_id)
    return PageResponse(items=[to_agent_response(record) for record in records])


@router.get(
    "/{agent_id}/export",
    dependencies=REQUIRE_READ,
    responses=error_responses(404) | YAML_RESPONSE,
    response_class=Response,
    summary="An agent as YAML",
)
async def export_agent(service: ServiceDep, agent_id: AgentIdPath) -> Response:
    """The agent as YAML that `/api/agents/import` takes, here or elsewhere."""
    import yaml

    spec = (await load_agent(service, agent_id)).spec
    told = spec.model_dump(mode="json", exclude_defaults=True)
    return Response(yaml.safe_dump(told, allow_unicode=True, sort_keys=False), media_type=YAML_MEDIA_TYPE)


async def load_agent(service: Service, agent_id: str) -> AgentRecord:
    """The kept agent of that id. Raises: `ApiError` 404."""
    return require_agent(agent_id, await service.store.agents.get(agent_id))


def require_agent(agent_id: str, record: AgentRecord | None) -> AgentRecord:
    """The record. Raises: `ApiError` 404 where there is none."""
    if record is None:
        raise _agent_not_found_error(agent_id)
    return record


def to_agent_response(record: AgentRecord) -> AgentResponse:
    """A record for the wire."""
    return AgentResponse(
        agent=record.spec, version=record.version, created_at=record.created_at, updated_at=record.updated_at
    )


async def _read_body(request: Request) -> bytes:
    body = await request.body()
    if len(body) > MAX_YAML_BYTES:
        raise BadInput(f"An agent's YAML has at most {MAX_YAML_BYTES:,} bytes.")
    return body


def _parse_agent(body: bytes) -> AgentSpec:
    """The agent of a YAML text. Raises: `BadInput`; `ApiError` 422 where its fields do not fit."""
    from opposable.tools.http.openapi.document import is_small, parse_document

    told = parse_document(body, "The body")
    if not isinstance(told, dict) or not is_small(told, 100_000):
        raise BadInput("The body is no agent: give YAML with agent_id, name, instructions, tools.")
    try:
        return AgentSpec.model_validate(told)
    except ValidationError as error:
        raise to_api_error(error) from error


def _agent_not_found_error(agent_id: str) -> Exception:
    return not_found_error(f"There is no agent {agent_id!r}.")
