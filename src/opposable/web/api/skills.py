"""The skill host: every tool that is on as a skill that can be listed and run."""

from typing import Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from opposable.service.service import Service
from opposable.web.api.dependencies import Needs, TheService
from opposable.web.api.tool_calls import asked, called, described
from opposable.web.errors import documented, not_found

router = APIRouter(prefix="/skills", tags=["skills"])


class HostedSkill(BaseModel):
    """One skill: an action of a tool."""

    skill_id: str = Field(examples=["calculator"])
    name: str = Field(description="The name models know it by.")
    description: str
    type: str = Field(description="What it is made from: function, http, mcp_server or skill.")
    version: str
    parameters: dict[str, Any] = Field(description="A JSON Schema of the arguments.")


class Skills(BaseModel):
    """The skills there are."""

    skills: list[HostedSkill]


@router.get("", dependencies=[Depends(Needs("tools:read"))], responses=documented(), summary="The skills there are")
async def list_skills(service: TheService) -> Skills:
    """Every action of every tool that is on."""
    return Skills(skills=[one for spec in service.library.specs if spec.enabled for one in _of(service, spec.tool_id)])


async def run_skill(request: Request) -> Response:
    """Run one skill, by its id or by the name models know it by."""
    given = await asked(request, "arguments")
    tool = request.app.state.service.library.find(request.path_params["skill_id"])
    if tool is None:
        raise not_found(f"There is no skill {request.path_params['skill_id']!r}; GET /skills lists those there are.")
    tool_id, action = _parts(request.app.state.service, tool.tool_id)
    return await called(request, tool_id, action, given["arguments"])


router.add_api_route(
    "/{skill_id}/run",
    run_skill,
    methods=["POST"],
    responses=documented(404),
    response_class=Response,
    openapi_extra={
        **described("arguments", {}, {"arguments": {"expression": "25*4"}}, "Run a skill"),
        "parameters": [
            {"name": "skill_id", "in": "path", "required": True, "schema": {"type": "string"}, "example": "calculator"}
        ],
    },
)


def _of(service: Service, tool_id: str) -> list[HostedSkill]:
    spec = service.library.get(tool_id)
    inside = f"{tool_id}."
    return [
        HostedSkill(
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


def _parts(service: Service, whole: str) -> tuple[str, str]:
    """The id of a tool and the action of it that `whole` names."""
    if service.library.get(whole) is not None:
        return whole, ""
    tool_id = whole
    while "." in tool_id:
        tool_id = tool_id.rpartition(".")[0]
        if service.library.get(tool_id) is not None:
            return tool_id, whole[len(tool_id) + 1 :]
    return whole, ""
