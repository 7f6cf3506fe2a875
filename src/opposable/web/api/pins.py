"""The routes of the accepted definitions of an MCP server's tools."""

from datetime import datetime
from typing import Any, Literal

from fastapi import Depends
from pydantic import BaseModel, Field

from opposable.domain.records import ToolPin
from opposable.web.api.dependencies import ApiRouter, RequireScope, ServiceDep
from opposable.web.api.pagination import PageResponse, ToolIdPath
from opposable.web.api.tools import load_tool
from opposable.web.errors import conflict_error, error_responses

router = ApiRouter(prefix="/api/tools/{tool_id}/pins", tags=["tools"])


class PinResponse(BaseModel):
    """A tool of an MCP server: its accepted definition, and one that waits for the owner."""

    tool: str = Field(description="The server's name of the tool.")
    status: Literal["accepted", "new", "changed"]
    pinned_at: datetime
    definition: dict[str, Any] = Field(description="The accepted definition; empty for a new tool.")
    pending: dict[str, Any] | None = Field(description="The definition that waits; null for an accepted tool.")
    pending_sha256: str = Field(description="The digest of `pending`, which accepts exactly this definition.")


class AcceptRequest(BaseModel):
    """The definition to accept."""

    model_config = {"extra": "forbid"}

    tool: str = Field(min_length=1, max_length=1000)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="The `pending_sha256` of the tool.")


@router.get(
    "",
    dependencies=[Depends(RequireScope("tools:read"))],
    responses=error_responses(404),
    summary="List the accepted and waiting tools of an MCP server",
)
async def list_pins(service: ServiceDep, tool_id: ToolIdPath) -> PageResponse[PinResponse]:
    """List the tools by name, with their accepted and waiting definitions."""
    await load_tool(service, tool_id)
    return PageResponse(items=[_to_response(pin) for pin in await service.store.pins.list_for_server(tool_id)])


@router.post(
    "",
    dependencies=[Depends(RequireScope("tools:write"))],
    responses=error_responses(404, 409),
    summary="Accept a tool of an MCP server",
)
async def accept_pin(service: ServiceDep, tool_id: ToolIdPath, body: AcceptRequest) -> PageResponse[PinResponse]:
    """Accept exactly the definition with this digest, and make the tool available."""
    await load_tool(service, tool_id)
    if not await service.store.pins.accept(tool_id, body.tool, body.sha256):
        raise conflict_error(f"The tool {body.tool!r} has no waiting definition with this digest. List the pins again.")
    server = service.spec_loader.get_server(tool_id)
    if server is not None:
        await server.recheck_pins()
    return await list_pins(service, tool_id)


def _to_response(pin: ToolPin) -> PinResponse:
    return PinResponse(
        tool=pin.tool,
        status="new" if not pin.sha256 else "changed" if pin.pending_sha256 else "accepted",
        pinned_at=pin.pinned_at,
        definition=pin.definition,
        pending=pin.pending,
        pending_sha256=pin.pending_sha256,
    )
