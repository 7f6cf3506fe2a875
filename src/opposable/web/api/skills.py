"""The routes of the skill host, which offers every enabled tool as a skill."""

from typing import Any

from fastapi import Depends
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from opposable.app.tools import find_tool_by_id
from opposable.domain.specs import AnyToolSpec
from opposable.service.service import Service
from opposable.tools.registry import RegisteredTool
from opposable.web.api.dependencies import ApiRouter, RequireScope, ServiceDep
from opposable.web.api.tool_calls import call_and_record, describe_call_route, parse_call_body
from opposable.web.errors import error_responses, not_found_error

router = ApiRouter(prefix="/skills", tags=["skills"])


class SkillResponse(BaseModel):
    """A skill: an action of a tool."""

    skill_id: str = Field(examples=["calculator"])
    name: str = Field(description="The name of the skill for models.")
    description: str
    type: str = Field(description="The type of the tool: function, http, mcp_server or skill.")
    version: str
    parameters: dict[str, Any] = Field(description="The JSON Schema of the arguments.")
    state: str = Field(description="The state of its tool: ok, open (out of service) or half_open.")


class SkillListResponse(BaseModel):
    """All skills."""

    skills: list[SkillResponse]


@router.get("", dependencies=[Depends(RequireScope("tools:read"))], responses=error_responses(), summary="List skills")
async def list_skills(service: ServiceDep) -> SkillListResponse:
    """List every action of every enabled tool."""
    return SkillListResponse(
        skills=[
            _to_skill(service, spec, tool)
            for spec in service.library.specs
            for tool in service.library.get_registered_tools(spec.tool_id)
        ]
    )


async def run_skill(request: Request) -> Response:
    """Run a skill, by its id or its name for models."""
    body = await parse_call_body(request)
    skill_id = request.path_params["skill_id"]
    tool = find_tool_by_id(request.app.state.service.library, skill_id)
    if tool is None:
        raise not_found_error(f"There is no skill {skill_id!r}; GET /skills lists the available skills.")
    return await call_and_record(request, tool.entry.tool_id, tool.action, body["arguments"])


router.add_api_route(
    "/{skill_id}/run",
    run_skill,
    methods=["POST"],
    responses=error_responses(404),
    response_class=Response,
    openapi_extra=describe_call_route("Run a skill", "skill_id"),
)


def _to_skill(service: Service, spec: AnyToolSpec, tool: RegisteredTool) -> SkillResponse:
    return SkillResponse(
        skill_id=tool.tool_id,
        name=tool.name,
        description=tool.definition.description,
        type=spec.tool_type,
        version=spec.version,
        parameters=tool.definition.parameters,
        state=service.library.get_health(spec.tool_id).state,
    )
