"""The route that calls a tool before it is stored."""

from typing import Annotated, Any

from fastapi import Body, Depends
from pydantic import BaseModel, Field

from opposable.domain.call_context import CallContext
from opposable.domain.errors import BadInput
from opposable.domain.specs import AnyToolSpec, HttpToolSpec
from opposable.domain.tools import new_call_id
from opposable.tools.library import ToolLibrary
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.spec_authorization import authorize_spec
from opposable.web.api.tools import SPEC_EXAMPLES, check_loadable
from opposable.web.errors import error_responses

router = ApiRouter(prefix="/api/tools", tags=["tools"], dependencies=[Depends(RequireScope("tools:write"))])


class TrialRequest(BaseModel):
    """An HTTP tool that is not stored, and the arguments of a call."""

    model_config = {"extra": "forbid"}

    tool: AnyToolSpec
    arguments: dict[str, Any] = Field(default={}, examples=[{"item": "A-17"}])


class TrialResponse(BaseModel):
    """The result of a trial call."""

    success: bool
    content: str = Field(description="The text that a model would receive.")
    failure: str | None
    seconds: float
    parameters: dict[str, Any] = Field(description="The JSON Schema that a model would receive.")


@router.post("/try", responses=error_responses(), summary="Try an HTTP tool")
async def try_tool(
    service: ServiceDep,
    principal: PrincipalDep,
    body: Annotated[
        TrialRequest, Body(examples=[{"tool": SPEC_EXAMPLES["http"]["value"], "arguments": {"item": "A-17"}}])
    ],
) -> TrialResponse:
    """Call an HTTP tool once without storing it or recording the call."""
    if not isinstance(body.tool, HttpToolSpec):
        raise BadInput(f"Only HTTP tools can be tried before they are stored, not {body.tool.tool_type}.")
    await authorize_spec(body.tool, service, principal)
    await check_loadable(service, body.tool)
    library = ToolLibrary()
    spec = body.tool.model_copy(update={"enabled": True, "dependencies": ()})  # checked above; not in this library
    library.register(spec, service.spec_loader.create_tools(spec))
    result = await library.call_action(body.tool.tool_id, "", body.arguments, CallContext(call_id=new_call_id()))
    return TrialResponse(
        success=result.failure is None,
        content=result.content,
        failure=result.failure,
        seconds=result.seconds,
        parameters=library.tools[0].definition.parameters,
    )
