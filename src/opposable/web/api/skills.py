"""The routes of the skill host, which offers every enabled tool as a skill."""

from typing import Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from opposable.service.service import Service
from opposable.web.api.dependencies import RequireScope, ServiceDep
from opposable.web.api.tool_calls import call_and_record, describe_call_route, parse_call_body
from opposable.web.errors import error_responses, not_found_error

router = APIRouter(prefix="/skills", tags=["skills"])


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
            skill for spec in service.library.specs if spec.enabled for skill in _get_tool_skills(service, spec.tool_id)
        ]
    )


async def run_skill(request: Request) -> Response:
    """Run a skill, by its id or its name for models."""
    body = await parse_call_body(request, "arguments")
    tool = request.app.state.service.library.find_tool(request.path_params["skill_id"])
    if tool is None:
        raise not_found_error(
            f"There is no skill {request.path_params['skill_id']!r}; GET /skills lists those there are."
        )
    tool_id, action = _split_skill_id(request.app.state.service, tool.tool_id)
    return await call_and_record(request, tool_id, action, body["arguments"])


router.add_api_route(
    "/{skill_id}/run",
    run_skill,
    methods=["POST"],
    responses=error_responses(404),
    response_class=Response,
    openapi_extra={
        **describe_call_route("arguments", {}, {"arguments": {"expression": "25*4"}}, "Run a skill"),
        "parameters": [
            {"name": "skill_id", "in": "path", "required": True, "schema": {"type": "string"}, "example": "calculator"}
        ],
    },
)


def _get_tool_skills(service: Service, tool_id: str) -> list[SkillResponse]:
    spec = service.library.get_spec(tool_id)
    inside = f"{tool_id}."
    return [
        SkillResponse(
            skill_id=tool.tool_id,
            name=tool.definition.name,
            description=tool.definition.description,
            type=spec.tool_type,
            version=spec.version,
            parameters=tool.definition.parameters,
            state=service.library.get_health(tool_id).state,
        )
        for tool in service.library.tools
        if spec is not None and (tool.tool_id == tool_id or tool.tool_id.startswith(inside))
    ]


def _split_skill_id(service: Service, skill_id: str) -> tuple[str, str]:
    """Split a skill id into the id of its tool and the action."""
    if service.library.get_spec(skill_id) is not None:
        return skill_id, ""
    tool_id = skill_id
    while "." in tool_id:
        tool_id = tool_id.rpartition(".")[0]
        if service.library.get_spec(tool_id) is not None:
            return tool_id, skill_id[len(tool_id) + 1 :]
    return skill_id, ""
