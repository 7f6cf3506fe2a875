"""The routes of the tools that are bound to an agent."""

from typing import Annotated, Any

from fastapi import Body, Depends
from pydantic import BaseModel, Field

from opposable.domain.specs import AgentToolBinding
from opposable.service.service import Service
from opposable.web.api.agents import AgentResponse, load_agent, require_agent, to_agent_response
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.pagination import AgentIdPath, PageResponse, ToolIdPath
from opposable.web.api.spec_authorization import authorize_binding
from opposable.web.errors import error_responses, not_found_error

router = ApiRouter(prefix="/api/agents/{agent_id}/tools", tags=["agents"])
REQUIRE_READ, REQUIRE_WRITE = [Depends(RequireScope("tools:read"))], [Depends(RequireScope("tools:write"))]


class BindingResponse(BaseModel):
    """A tool that is bound to an agent."""

    tool_id: str
    enabled: bool
    config: dict[str, Any] = Field(description="Overrides of the fields of the spec.", examples=[{"timeout": 5}])
    names: list[str] = Field(description="The names of its actions for the model.")
    problem: str = Field(default="", description="Why the tool is not available; empty if it is.")


class BindingUpdate(BaseModel):
    """A change of a binding. Omitted fields keep their values."""

    model_config = {"extra": "forbid"}

    enabled: bool | None = None
    config: dict[str, Any] | None = Field(default=None, examples=[{"timeout": 5}])


@router.get("", dependencies=REQUIRE_READ, responses=error_responses(404), summary="List the tools of an agent")
async def list_bindings(service: ServiceDep, agent_id: AgentIdPath) -> PageResponse[BindingResponse]:
    """List the bound tools, including disabled ones."""
    spec = (await load_agent(service, agent_id)).spec
    library = service.get_agent_tools(spec)
    problems = library.rejected_bindings
    return PageResponse(
        items=[
            BindingResponse(
                tool_id=binding.tool_id,
                enabled=binding.enabled,
                config=binding.config,
                names=[tool.name for tool in library.get_registered_tools(binding.tool_id)],
                problem=problems.get(binding.tool_id, ""),
            )
            for binding in spec.tools
        ]
    )


@router.post("", dependencies=REQUIRE_WRITE, responses=error_responses(404), summary="Bind a tool to an agent")
async def bind_tool(
    service: ServiceDep,
    principal: PrincipalDep,
    agent_id: AgentIdPath,
    binding: Annotated[AgentToolBinding, Body(examples=[{"tool_id": "calculator", "config": {"timeout": 5}}])],
) -> AgentResponse:
    """Bind a tool or replace its binding. This creates the next version of the agent."""
    await load_agent(service, agent_id)
    return await _save_binding(service, principal, agent_id, binding)


@router.put(
    "/{tool_id}", dependencies=REQUIRE_WRITE, responses=error_responses(404), summary="Update the binding of a tool"
)
async def change_binding(
    service: ServiceDep, principal: PrincipalDep, agent_id: AgentIdPath, tool_id: ToolIdPath, change: BindingUpdate
) -> AgentResponse:
    """Enable or disable a bound tool, or replace its `config`.

    This creates the next version of the agent.
    """
    binding = await _load_binding(service, agent_id, tool_id)
    changed = binding.model_copy(update=change.model_dump(exclude_none=True))
    return await _save_binding(service, principal, agent_id, changed)


@router.delete(
    "/{tool_id}", dependencies=REQUIRE_WRITE, responses=error_responses(404), summary="Unbind a tool from an agent"
)
async def unbind_tool(
    service: ServiceDep, principal: PrincipalDep, agent_id: AgentIdPath, tool_id: ToolIdPath
) -> AgentResponse:
    """Unbind a tool. This creates the next version of the agent."""
    await _load_binding(service, agent_id, tool_id)
    record = require_agent(agent_id, await service.store.agents.unbind(agent_id, tool_id))
    return to_agent_response(record, principal, service)


async def _save_binding(
    service: Service, principal: PrincipalDep, agent_id: str, binding: AgentToolBinding
) -> AgentResponse:
    await authorize_binding(binding.tool_id, binding.config, service, principal)
    record = require_agent(agent_id, await service.store.agents.bind(agent_id, binding))
    return to_agent_response(record, principal, service)


async def _load_binding(service: Service, agent_id: str, tool_id: str) -> AgentToolBinding:
    spec = (await load_agent(service, agent_id)).spec
    for binding in spec.tools:
        if binding.tool_id == tool_id:
            return binding
    raise not_found_error(f"The agent {agent_id!r} has no tool {tool_id!r}.")
