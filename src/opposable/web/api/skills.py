"""The skill host: every tool that is on as a skill that can be listed and run."""

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
    """One skill: an action of a tool."""

    skill_id: str = Field(examples=["calculator"])
    name: str = Field(description="The name models know it by.")
    description: str
    type: str = Field(description="What it is made from: function, http, mcp_server or skill.")
    version: str
    parameters: dict[str, Any] = Field(description="A JSON Schema of the arguments.")


class SkillListResponse(BaseModel):
    """The skills there are."""

    skills: list[SkillResponse]


@router.get(
    "", dependencies=[Depends(RequireScope("tools:read"))], responses=error_responses(), summary="The skills there are"
)
async def list_skills(service: ServiceDep) -> SkillListResponse:
    """Every action of every tool that is on."""
    return SkillListResponse(
        skills=[
            one for spec in service.library.specs if spec.enabled for one in _get_tool_skills(service, spec.tool_id)
        ]
    )


async def run_skill(request: Request) -> Response:
    """Run one skill, by its id or by the name models know it by."""
    given = await parse_call_body(request, "arguments")
    tool = request.app.state.service.library.find_tool(request.path_params["skill_id"])
    if tool is None:
        raise not_found_error(
            f"There is no skill {request.path_params['skill_id']!r}; GET /skills lists those there are."
        )
    tool_id, action = _split_skill_id(request.app.state.service, tool.tool_id)
    return await call_and_record(request, tool_id, action, given["arguments"])


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
        )
        for tool in service.library.tools
        if spec is not None and (tool.tool_id == tool_id or tool.tool_id.startswith(inside))
    ]


def _split_skill_id(service: Service, skill_id: str) -> tuple[str, str]:
    """The id of a tool and the action of it that `whole` names."""
    if service.library.get_spec(skill_id) is not None:
        return skill_id, ""
    tool_id = skill_id
    while "." in tool_id:
        tool_id = tool_id.rpartition(".")[0]
        if service.library.get_spec(tool_id) is not None:
            return tool_id, skill_id[len(tool_id) + 1 :]
    return skill_id, ""
