"""The routes of the failures that agents remember across runs."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Response
from pydantic import BaseModel, Field

from opposable.domain.records import Failure
from opposable.domain.tools import FailureKind
from opposable.service.service import Service
from opposable.web.api.dependencies import ApiRouter, RequireScope, ServiceDep
from opposable.web.api.pagination import AfterQuery, LimitQuery, PageResponse, ToolIdPath
from opposable.web.errors import error_responses, not_found_error

router = ApiRouter(prefix="/api", tags=["tools"], dependencies=[Depends(RequireScope("admin"))])
TOOL_FAILURES_PATH = "/tools/{tool_id}/failures"
FailureId = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", examples=["0" * 32])]
ScopeQuery = Annotated[
    str | None, Query(description="Only failures of this scope, see the field `scope`.", max_length=200)
]


class FailureResponse(BaseModel):
    """A failed call that agents remember across runs."""

    model_config = {"from_attributes": True}

    failure_id: str
    tool_id: str
    action: str
    kind: FailureKind
    fingerprint: str = Field(description="The fingerprints of the arguments and of the error.")
    scope: str = Field(
        description="AGENT, or owner:KEY/AGENT for an agent of an API key; shared:KEY for what agents of a key share.",
        examples=["support"],
    )
    message: str
    count: int
    first_seen: datetime | None
    last_seen: datetime | None
    correction: dict[str, Any] | None = Field(description="The latest correction of the call.")
    pinned: bool = Field(description="Whether the failure never expires.")


class ForgetResponse(BaseModel):
    """The number of deleted failures."""

    forgotten: int


class PinRequest(BaseModel):
    """Whether a failure is pinned. A pinned failure never expires."""

    model_config = {"extra": "forbid"}

    pinned: bool = True


@router.get(TOOL_FAILURES_PATH, responses=error_responses(404), summary="List the failures of a tool")
async def list_failures(
    service: ServiceDep, tool_id: ToolIdPath, scope: ScopeQuery = None, after: AfterQuery = "", limit: LimitQuery = 100
) -> PageResponse[FailureResponse]:
    """List the failures of a tool, the latest first."""
    page = await service.store.failures.list(tool_id=tool_id, scope=scope, after=after, limit=limit)
    return PageResponse(
        items=[FailureResponse.model_validate(failure) for failure in page.items], next=page.next_cursor
    )


@router.get("/failures", responses=error_responses(), summary="List the failures of all tools")
async def list_all_failures(
    service: ServiceDep, scope: ScopeQuery = None, after: AfterQuery = "", limit: LimitQuery = 100
) -> PageResponse[FailureResponse]:
    """List the failures of all tools, the latest first."""
    return await list_failures(service, "", scope, after, limit)


@router.put(
    f"{TOOL_FAILURES_PATH}/{{failure_id}}/pin",
    responses=error_responses(404),
    summary="Pin or unpin a failure",
)
async def pin_failure(
    service: ServiceDep, tool_id: ToolIdPath, failure_id: FailureId, pinning: PinRequest
) -> FailureResponse:
    """Pin a failure so that it never expires, or unpin it."""
    await _load_failure(service, tool_id, failure_id)
    await service.store.failures.set_pinned(failure_id, pinning.pinned)
    service.failure_memory.invalidate()
    return FailureResponse.model_validate(await _load_failure(service, tool_id, failure_id))


@router.delete(
    f"{TOOL_FAILURES_PATH}/{{failure_id}}", status_code=204, responses=error_responses(404), summary="Delete a failure"
)
async def forget_failure(service: ServiceDep, tool_id: ToolIdPath, failure_id: FailureId) -> Response:
    """Delete a failure."""
    await _load_failure(service, tool_id, failure_id)
    await service.store.failures.forget(failure_id)
    service.failure_memory.invalidate()
    return Response(status_code=204)


@router.delete(TOOL_FAILURES_PATH, responses=error_responses(), summary="Delete the failures of a tool")
async def forget_failures(service: ServiceDep, tool_id: ToolIdPath, scope: ScopeQuery = None) -> ForgetResponse:
    """Delete all failures of a tool, including pinned ones."""
    deleted_count = await service.store.failures.forget_tool(tool_id, scope)
    service.failure_memory.invalidate()
    return ForgetResponse(forgotten=deleted_count)


async def _load_failure(service: Service, tool_id: str, failure_id: str) -> Failure:
    failure = await service.store.failures.get(failure_id)
    if failure is None or failure.tool_id != tool_id:
        raise not_found_error(f"There is no failure {failure_id!r} of the tool {tool_id!r}.")
    return failure
