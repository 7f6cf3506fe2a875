"""The routes of remembered failures: read, kept for good, forgotten."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import BaseModel, Field

from opposable.domain.records import Failure
from opposable.domain.tools import FailureKind
from opposable.service.service import Service
from opposable.web.api.dependencies import Needs, TheService
from opposable.web.api.pagination import After, Limit, Part, ToolId
from opposable.web.errors import documented, not_found

router = APIRouter(prefix="/api", tags=["tools"], dependencies=[Depends(Needs("admin"))])
OF_TOOL = "/tools/{tool_id}/failures"
FailureId = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", examples=["0" * 32])]
OfScope = Annotated[
    str | None, Query(description="Only what this agent knows; empty for what all share.", max_length=200)
]


class KeptFailure(BaseModel):
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


class Forgotten(BaseModel):
    """How many failures were forgotten."""

    forgotten: int


class Pinning(BaseModel):
    """Whether a failure is to be kept for good."""

    pinned: bool = True


@router.get(OF_TOOL, responses=documented(404), summary="What is known of a tool's failures")
async def list_failures(
    service: TheService, tool_id: ToolId, scope: OfScope = None, after: After = "", limit: Limit = 100
) -> Part[KeptFailure]:
    """The failures of a tool, the last seen first."""
    page = await service.store.failures.list(tool_id=tool_id, scope=scope, after=after, limit=limit)
    return Part(items=[_shown(one) for one in page.items], next=page.next)


@router.get("/failures", responses=documented(), summary="What is known of all tools' failures")
async def list_all_failures(
    service: TheService, scope: OfScope = None, after: After = "", limit: Limit = 100
) -> Part[KeptFailure]:
    """The failures of all tools, the last seen first."""
    return await list_failures(service, "", scope, after, limit)


@router.put(f"{OF_TOOL}/{{failure_id}}/pin", responses=documented(404), summary="Keep a failure for good, or no longer")
async def pin_failure(service: TheService, tool_id: ToolId, failure_id: FailureId, pinning: Pinning) -> KeptFailure:
    """Pin a failure, or let go of it."""
    await _failure(service, tool_id, failure_id)
    await service.store.failures.pin(failure_id, pinning.pinned)
    service.memory.renew()
    return _shown(await _failure(service, tool_id, failure_id))


@router.delete(f"{OF_TOOL}/{{failure_id}}", status_code=204, responses=documented(404), summary="Forget a failure")
async def forget_failure(service: TheService, tool_id: ToolId, failure_id: FailureId) -> Response:
    """Forget one failure."""
    await _failure(service, tool_id, failure_id)
    await service.store.failures.forget(failure_id)
    service.memory.renew()
    return Response(status_code=204)


@router.delete(OF_TOOL, responses=documented(), summary="Forget all failures of a tool")
async def forget_failures(service: TheService, tool_id: ToolId, scope: OfScope = None) -> Forgotten:
    """Forget what is known of a tool, pinned or not."""
    forgotten = await service.store.failures.forget_tool(tool_id, scope)
    service.memory.renew()
    return Forgotten(forgotten=forgotten)


async def _failure(service: Service, tool_id: str, failure_id: str) -> Failure:
    found = await service.store.failures.get(failure_id)
    if found is None or found.tool_id != tool_id:
        raise not_found(f"There is no failure {failure_id!r} of {tool_id!r}.")
    return found


def _shown(one: Failure) -> KeptFailure:
    return KeptFailure(**{name: getattr(one, name) for name in KeptFailure.model_fields})
