"""The routes of agents: kept, changed, looked back at, carried elsewhere as YAML."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query, Request, Response
from pydantic import BaseModel, Field, ValidationError

from opposable.domain.errors import BadInput
from opposable.domain.records import AgentRecord
from opposable.domain.specs import AgentSpec
from opposable.service.service import Service
from opposable.web.api.dependencies import Needs, ThePrincipal, TheService
from opposable.web.api.pagination import After, AgentId, Limit, Part
from opposable.web.api.spec_authorization import admit_agent
from opposable.web.errors import conflict, documented, not_found, translated

router = APIRouter(prefix="/api/agents", tags=["agents"])
READ, WRITE = [Depends(Needs("tools:read"))], [Depends(Needs("tools:write"))]
YAML = "application/yaml"
LARGEST_YAML = 1_000_000

EXAMPLE = {
    "agent_id": "clerk",
    "name": "Clerk",
    "instructions": "You answer questions about stock.",
    "tools": [{"tool_id": "calculator"}],
    "limits": {"turns": 10, "tool_calls": 20},
}
Spec = Annotated[AgentSpec, Body(openapi_examples={"clerk": {"summary": "An agent", "value": EXAMPLE}})]
YAML_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {YAML: {"schema": {"type": "string"}, "example": "agent_id: clerk\nname: Clerk\n"}},
    }
}
YAML_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The agent.",
        "content": {YAML: {"schema": {"type": "string"}, "example": "agent_id: clerk\n"}},
    }
}


class KeptAgent(BaseModel):
    """An agent as it is kept; `version` grows with each change."""

    agent: AgentSpec
    version: int = Field(examples=[1])
    created_at: datetime | None = None
    updated_at: datetime | None = None


@router.get("", dependencies=READ, responses=documented(), summary="Agents, the last changed first")
async def list_agents(service: TheService, after: After = "", limit: Limit = 100) -> Part[KeptAgent]:
    """The agents there are."""
    page = await service.store.agents.list(after=after, limit=limit)
    return Part(items=[shown(record) for record in page.items], next=page.next)


@router.post("", status_code=201, dependencies=WRITE, responses=documented(409), summary="Keep a new agent")
async def create_agent(service: TheService, principal: ThePrincipal, spec: Spec) -> KeptAgent:
    """Keep a new agent as version 1."""
    await admit_agent(spec, service, principal)
    if await service.store.agents.get(spec.agent_id) is not None:
        raise conflict(f"There is an agent {spec.agent_id!r} already; change it with PUT, or choose another agent_id.")
    return shown(await service.store.agents.add(spec))


@router.post(
    "/import",
    dependencies=WRITE,
    responses=documented(409),
    summary="Keep an agent written as YAML",
    openapi_extra=YAML_BODY,
)
async def import_agent(request: Request, service: TheService, principal: ThePrincipal) -> KeptAgent:
    """Keep the agent that the body describes: a new one, or the next version of the one that has its id."""
    spec = _read(await _body(request))
    before = await service.store.agents.get(spec.agent_id)
    await admit_agent(spec, service, principal, None if before is None else before.spec)
    record = await service.store.agents.update(spec) or await service.store.agents.add(spec)
    return shown(record)


@router.get("/{agent_id}", dependencies=READ, responses=documented(404), summary="One agent")
async def get_agent(service: TheService, agent_id: AgentId) -> KeptAgent:
    """The agent as it is kept."""
    return shown(await agent_of(service, agent_id))


@router.put("/{agent_id}", dependencies=WRITE, responses=documented(404, 409), summary="Change an agent")
async def update_agent(
    service: TheService,
    principal: ThePrincipal,
    agent_id: AgentId,
    spec: Spec,
    expected: Annotated[
        int | None, Query(ge=1, le=2**31 - 1, description="The version this change was made from.")
    ] = None,
) -> KeptAgent:
    """Keep a changed agent as its next version; what is as it was makes none."""
    if spec.agent_id != agent_id:
        raise BadInput(f"The path names {agent_id!r} and the body {spec.agent_id!r}; an agent's id stays as it is.")
    before = await agent_of(service, agent_id)
    await admit_agent(spec, service, principal, before.spec)
    return shown(found(agent_id, await service.store.agents.update(spec, expected=expected)))


@router.delete("/{agent_id}", status_code=204, dependencies=WRITE, responses=documented(404), summary="Forget an agent")
async def delete_agent(service: TheService, agent_id: AgentId) -> Response:
    """Forget an agent, its versions and bindings; its runs and conversations stay."""
    if not await service.store.agents.delete(agent_id):
        raise _no_agent(agent_id)
    return Response(status_code=204)


@router.get("/{agent_id}/versions", dependencies=READ, responses=documented(404), summary="Every version of an agent")
async def agent_versions(service: TheService, agent_id: AgentId) -> Part[KeptAgent]:
    """The versions, newest first; `updated_at` is when each came to be."""
    records = await service.store.agents.versions(agent_id)
    if not records:
        raise _no_agent(agent_id)
    return Part(items=[shown(record) for record in records])


@router.get(
    "/{agent_id}/export",
    dependencies=READ,
    responses=documented(404) | YAML_ANSWER,
    response_class=Response,
    summary="An agent as YAML",
)
async def export_agent(service: TheService, agent_id: AgentId) -> Response:
    """The agent as YAML that `/api/agents/import` takes, here or elsewhere."""
    import yaml

    spec = (await agent_of(service, agent_id)).spec
    told = spec.model_dump(mode="json", exclude_defaults=True)
    return Response(yaml.safe_dump(told, allow_unicode=True, sort_keys=False), media_type=YAML)


async def agent_of(service: Service, agent_id: str) -> AgentRecord:
    """The kept agent of that id. Raises: `ApiError` 404."""
    return found(agent_id, await service.store.agents.get(agent_id))


def found(agent_id: str, record: AgentRecord | None) -> AgentRecord:
    """The record. Raises: `ApiError` 404 where there is none."""
    if record is None:
        raise _no_agent(agent_id)
    return record


def shown(record: AgentRecord) -> KeptAgent:
    """A record for the wire."""
    return KeptAgent(
        agent=record.spec, version=record.version, created_at=record.created_at, updated_at=record.updated_at
    )


async def _body(request: Request) -> bytes:
    body = await request.body()
    if len(body) > LARGEST_YAML:
        raise BadInput(f"An agent's YAML has at most {LARGEST_YAML:,} bytes.")
    return body


def _read(body: bytes) -> AgentSpec:
    """The agent of a YAML text. Raises: `BadInput`; `ApiError` 422 where its fields do not fit."""
    from opposable.tools.http.openapi.document import is_small, parsed

    told = parsed(body, "The body")
    if not isinstance(told, dict) or not is_small(told, 100_000):
        raise BadInput("The body is no agent: give YAML with agent_id, name, instructions, tools.")
    try:
        return AgentSpec.model_validate(told)
    except ValidationError as error:
        raise translated(error) from error


def _no_agent(agent_id: str) -> Exception:
    return not_found(f"There is no agent {agent_id!r}.")
