"""The routes of approvals: tool calls that wait for a human decision."""

import logging
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Depends, Path
from pydantic import BaseModel, Field
from starlette.responses import Response

from opposable.app.inputs import replace_surrogates
from opposable.domain.json_forms import approval_to_json
from opposable.domain.records import Approval, ApprovalStatus
from opposable.service.service import Service
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.pagination import AfterQuery, LimitQuery, PageResponse
from opposable.web.api.serializers import json_response
from opposable.web.errors import conflict_error, error_responses, not_found_error
from opposable.web.principal import Principal

log = logging.getLogger("opposable.approvals")
router = ApiRouter(prefix="/api/approvals", tags=["approvals"])
REQUIRE_READ, REQUIRE_DECIDE = [Depends(RequireScope("chat", "approve"))], [Depends(RequireScope("approve"))]

ApprovalId = Annotated[str, Path(pattern=r"^[A-Za-z0-9\-]{1,36}$", examples=["0d3f6c1f8a5b4d0e9c7a6b5d4e3f2a1b"])]


class ApprovalResponse(BaseModel):
    """A tool call that waits for a decision, or was decided, with its exact arguments."""

    approval_id: str
    run_id: str
    call_id: str
    tool_id: str
    agent_id: str = ""
    conversation_id: str = ""
    arguments: dict[str, Any]
    sha256: str = Field(description="SHA-256 of the arguments as JSON with sorted keys and without spaces.")
    status: ApprovalStatus
    decided_by: str = ""
    reason: str = ""
    created_at: datetime
    decided_at: datetime | None = None


class ApprovalDecision(BaseModel):
    """A decision on one call with exactly these arguments."""

    model_config = {"extra": "forbid"}

    decision: Literal["approve", "deny"] = Field(examples=["approve"])
    reason: str = Field(default="", max_length=2000, description="The reason; the model receives that of a denial.")
    sha256: str = Field(
        default="", max_length=64, description="SHA-256 of the arguments that the person saw. A mismatch is rejected."
    )


@router.get(
    "",
    dependencies=REQUIRE_READ,
    response_model=PageResponse[ApprovalResponse],
    responses=error_responses(),
    summary="List approvals",
)
async def list_approvals(
    service: ServiceDep,
    principal: PrincipalDep,
    status: ApprovalStatus | None = None,
    after: AfterQuery = "",
    limit: LimitQuery = 100,
) -> Response:
    """List the approvals, newest first.

    Without the scope `approve`, these are the approvals of the API key.
    """
    owner = None if principal.has_scope("approve") else principal.key_id
    page = await service.store.approvals.list(status=status, owner=owner, after=after, limit=limit)
    return json_response({"items": [approval_to_json(approval) for approval in page.items], "next": page.next_cursor})


@router.get(
    "/{approval_id}",
    dependencies=REQUIRE_READ,
    response_model=ApprovalResponse,
    responses=error_responses(404),
    summary="Get an approval",
)
async def get_approval(service: ServiceDep, principal: PrincipalDep, approval_id: ApprovalId) -> Response:
    """Get a tool call that waits for a decision, or was decided."""
    return json_response(approval_to_json(await _load_approval(service, principal, approval_id)))


@router.post(
    "/{approval_id}",
    dependencies=REQUIRE_DECIDE,
    response_model=ApprovalResponse,
    responses=error_responses(404, 409),
    summary="Approve or deny a call",
)
async def decide_approval(
    service: ServiceDep, principal: PrincipalDep, approval_id: ApprovalId, decision: ApprovalDecision
) -> Response:
    """Approve or deny a call.

    This needs the scope `approve`: a key that can only chat cannot approve its own calls. The first decision is
    final, and valid only for exactly these arguments.
    """
    approval = await _load_approval(service, principal, approval_id)
    if decision.sha256 and decision.sha256 != approval.sha256:
        raise conflict_error("The arguments have another SHA-256. Get the approval again and check its arguments.")
    status: Literal["approved", "denied"] = "approved" if decision.decision == "approve" else "denied"
    by = principal.key_id or principal.name
    reason = replace_surrogates(decision.reason)
    decided = await service.store.approvals.decide(approval_id, status, decided_by=by, reason=reason)
    if decided is None:
        raise conflict_error("The call was already decided, or its run has ended.")
    ids = {"approval_id": approval_id, "run_id": approval.run_id, "tool": approval.tool_id}
    log.info("approval decided", extra={**ids, "status": status, "decided_by": by})
    return json_response(approval_to_json(decided))


async def _load_approval(service: Service, principal: Principal, approval_id: str) -> Approval:
    approval = await service.store.approvals.get(approval_id)
    if approval is None or (approval.owner != principal.key_id and not principal.has_scope("approve")):
        raise not_found_error(f"There is no approval {approval_id!r}.")
    return approval
