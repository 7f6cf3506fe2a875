"""The routes of an agent's tools: bound, overridden, switched, taken away."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends
from pydantic import BaseModel, Field

from opposable.domain.specs import AgentToolBinding
from opposable.service.service import Service
from opposable.web.api.agents import KeptAgent, agent_of, found, shown
from opposable.web.api.dependencies import Needs, ThePrincipal, TheService
from opposable.web.api.pagination import AgentId, Part, ToolId
from opposable.web.api.spec_authorization import admit_binding
from opposable.web.errors import documented, not_found

router = APIRouter(prefix="/api/agents/{agent_id}/tools", tags=["agents"])
READ, WRITE = [Depends(Needs("tools:read"))], [Depends(Needs("tools:write"))]


class BoundTool(BaseModel):
    """A tool as an agent has it."""

    tool_id: str
    enabled: bool
    config: dict[str, Any] = Field(description="What is put over the tool's spec.", examples=[{"timeout": 5}])
    names: list[str] = Field(description="The names the agent's model knows its actions by.")
    problem: str = Field(default="", description="Why it cannot be had; empty where it can.")


class Change(BaseModel):
    """How a tool is bound; what is left out stays as it is."""

    model_config = {"extra": "forbid"}

    enabled: bool | None = None
    config: dict[str, Any] | None = Field(default=None, examples=[{"timeout": 5}])


@router.get("", dependencies=READ, responses=documented(404), summary="An agent's tools")
async def list_bindings(service: TheService, agent_id: AgentId) -> Part[BoundTool]:
    """Every tool bound to the agent, those that are off too."""
    spec = (await agent_of(service, agent_id)).spec
    library = service.library.bound(spec.tools, service.toolbox.make)
    aside = library.set_aside
    tools = [(tool.tool_id, tool.definition.name) for tool in library.tools]
    return Part(
        items=[
            BoundTool(
                tool_id=one.tool_id,
                enabled=one.enabled,
                config=one.config,
                names=[
                    name for tool_id, name in tools if tool_id == one.tool_id or tool_id.startswith(f"{one.tool_id}.")
                ],
                problem=aside.get(one.tool_id, ""),
            )
            for one in spec.tools
        ]
    )


@router.post("", dependencies=WRITE, responses=documented(404), summary="Bind a tool to an agent")
async def bind_tool(
    service: TheService,
    principal: ThePrincipal,
    agent_id: AgentId,
    binding: Annotated[AgentToolBinding, Body(examples=[{"tool_id": "calculator", "config": {"timeout": 5}}])],
) -> KeptAgent:
    """Bind a tool, or change how it is bound: the agent's next version."""
    await agent_of(service, agent_id)
    return await _bound(service, principal, agent_id, binding)


@router.put("/{tool_id}", dependencies=WRITE, responses=documented(404), summary="Change how a tool is bound")
async def change_binding(
    service: TheService, principal: ThePrincipal, agent_id: AgentId, tool_id: ToolId, change: Change
) -> KeptAgent:
    """Switch a bound tool on or off, or put another `config` over its spec."""
    binding = await _binding(service, agent_id, tool_id)
    changed = binding.model_copy(update=change.model_dump(exclude_none=True))
    return await _bound(service, principal, agent_id, changed)


@router.delete("/{tool_id}", dependencies=WRITE, responses=documented(404), summary="Take a tool from an agent")
async def unbind_tool(service: TheService, agent_id: AgentId, tool_id: ToolId) -> KeptAgent:
    """Take a tool away: the agent's next version."""
    await _binding(service, agent_id, tool_id)
    return shown(found(agent_id, await service.store.agents.unbind(agent_id, tool_id)))


async def _bound(service: Service, principal: ThePrincipal, agent_id: str, binding: AgentToolBinding) -> KeptAgent:
    await admit_binding(binding.tool_id, binding.config, service, principal)
    return shown(found(agent_id, await service.store.agents.bind(agent_id, binding)))


async def _binding(service: Service, agent_id: str, tool_id: str) -> AgentToolBinding:
    spec = (await agent_of(service, agent_id)).spec
    for binding in spec.tools:
        if binding.tool_id == tool_id:
            return binding
    raise not_found(f"The agent {agent_id!r} has no tool {tool_id!r}.")
