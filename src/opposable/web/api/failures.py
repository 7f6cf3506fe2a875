"""The routes of remembered failures: read, kept for good, forgotten."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import BaseModel, Field

from opposable.domain.records import Failure
from opposable.domain.tools import FailureKind
from opposable.service.service import Service
from opposable.web.api.dependencies import RequireScope, ServiceDep
from opposable.web.api.pagination import AfterQuery, LimitQuery, PageResponse, ToolIdPath
from opposable.web.errors import error_responses, not_found_error

router = APIRouter(prefix="/api", tags=["tools"], dependencies=[Depends(RequireScope("admin"))])
TOOL_FAILURES_PATH = "/tools/{tool_id}/failures"
FailureId = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", examples=["0" * 32])]
ScopeQuery = Annotated[
    str | None, Query(description="Only what this agent knows; empty for what all share.", max_length=200)
]


class FailureResponse(BaseModel):
    """A call that failed, as it is remembered across runs."""

    failure_id: str
    tool_id: str
    action: str
    kind: FailureKind
    fingerprint: str = Field(description="Of the arguments that failed.")
    scope: str = Field(description="The agent that knows it; empty where all share it.")
    message: str
    count: int
    first_seen: datetime | None
    last_seen: datetime | None
    correction: dict[str, Any] | None = Field(description="What put it right the last time.")
    pinned: bool = Field(description="Whether it is kept for good.")


class ForgetResponse(BaseModel):
    """How many failures were forgotten."""

    forgotten: int


class PinRequest(BaseModel):
    """Whether a failure is to be kept for good."""

    pinned: bool = True


@router.get(TOOL_FAILURES_PATH, responses=error_responses(404), summary="What is known of a tool's failures")
async def list_failures(
    service: ServiceDep, tool_id: ToolIdPath, scope: ScopeQuery = None, after: AfterQuery = "", limit: LimitQuery = 100
) -> PageResponse[FailureResponse]:
    """The failures of a tool, the last seen first."""
    page = await service.store.failures.list(tool_id=tool_id, scope=scope, after=after, limit=limit)
    return PageResponse(items=[_to_response(one) for one in page.items], next=page.next_cursor)


@router.get("/failures", responses=error_responses(), summary="What is known of all tools' failures")
async def list_all_failures(
    service: ServiceDep, scope: ScopeQuery = None, after: AfterQuery = "", limit: LimitQuery = 100
) -> PageResponse[FailureResponse]:
    """The failures of all tools, the last seen first."""
    return await list_failures(service, "", scope, after, limit)


@router.put(
    f"{TOOL_FAILURES_PATH}/{{failure_id}}/pin",
    responses=error_responses(404),
    summary="Keep a failure for good, or no longer",
)
async def pin_failure(
    service: ServiceDep, tool_id: ToolIdPath, failure_id: FailureId, pinning: PinRequest
) -> FailureResponse:
    """Pin a failure, or let go of it."""
    await _load_failure(service, tool_id, failure_id)
    await service.store.failures.set_pinned(failure_id, pinning.pinned)
    service.failure_memory.invalidate()
    return _to_response(await _load_failure(service, tool_id, failure_id))


@router.delete(
    f"{TOOL_FAILURES_PATH}/{{failure_id}}", status_code=204, responses=error_responses(404), summary="Forget a failure"
)
async def forget_failure(service: ServiceDep, tool_id: ToolIdPath, failure_id: FailureId) -> Response:
    """Forget one failure."""
    await _load_failure(service, tool_id, failure_id)
    await service.store.failures.forget(failure_id)
    service.failure_memory.invalidate()
    return Response(status_code=204)


@router.delete(TOOL_FAILURES_PATH, responses=error_responses(), summary="Forget all failures of a tool")
async def forget_failures(service: ServiceDep, tool_id: ToolIdPath, scope: ScopeQuery = None) -> ForgetResponse:
    """Forget what is known of a tool, pinned or not."""
    forgotten = await service.store.failures.forget_tool(tool_id, scope)
    service.failure_memory.invalidate()
    return ForgetResponse(forgotten=forgotten)


async def _load_failure(service: Service, tool_id: str, failure_id: str) -> Failure:
    found = await service.store.failures.get(failure_id)
    if found is None or found.tool_id != tool_id:
        raise not_found_error(f"There is no failure {failure_id!r} of {tool_id!r}.")
    return found


def _to_response(failure: Failure) -> FailureResponse:
    return FailureResponse(**{name: getattr(failure, name) for name in FailureResponse.model_fields})
