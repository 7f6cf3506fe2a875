"""Calls that a person must allow: asked about, waited for, bound to their exact arguments."""

import asyncio
import contextlib
from collections.abc import Callable
from uuid import uuid4

from opposable.domain.call_context import ApprovalRequest, Approved, Denied
from opposable.domain.errors import StoreUnavailable
from opposable.domain.records import Approval, canonical_sha256, get_utc_now
from opposable.store.approvals import ApprovalRepository

APPROVAL_POLL_SECONDS = 0.5
"""Seconds between looks at the store: whoever decides may be in another process."""

EmitEvent = Callable[[str, dict[str, object]], None]


class Approver:
    """Asks about the calls of one run and waits for the word; `tell` is given what listeners should know.

    `wait` is how many seconds a person has; after them the call is refused.
    """

    def __init__(self, approvals: ApprovalRepository, emit: EmitEvent, owner: str, timeout_seconds: float) -> None:
        self._approvals = approvals
        self._emit = emit
        self._owner = owner
        self._timeout_seconds = timeout_seconds

    async def __call__(self, request: ApprovalRequest) -> Approved | Denied:
        """The person's word on exactly these arguments. Raises: `StoreUnavailable`."""
        approval = _create_approval(request, self._owner)
        await self._approvals.add(approval)
        about = {"approval_id": approval.approval_id, "call_id": approval.call_id, "name": request.name}
        shown = {"tool_id": approval.tool_id, "arguments": approval.arguments, "sha256": approval.sha256}
        self._emit("approval_needed", {**about, **shown})
        try:
            decided = await self._wait_for_decision(approval)
        except asyncio.CancelledError:
            with contextlib.suppress(StoreUnavailable):
                await self._approvals.decide(approval.approval_id, "expired", reason="the run ended")
            raise
        self._emit("approval_decided", {**about, "status": decided.status, "reason": decided.reason})
        if decided.status == "approved" and decided.sha256 == canonical_sha256(request.arguments):
            return Approved()
        return Denied(decided.reason)

    async def _wait_for_decision(self, approval: Approval) -> Approval:
        end = asyncio.get_running_loop().time() + self._timeout_seconds
        while asyncio.get_running_loop().time() < end:
            await asyncio.sleep(APPROVAL_POLL_SECONDS)
            with contextlib.suppress(StoreUnavailable):  # a store that is away for a while decides nothing
                there = await self._approvals.get(approval.approval_id)
                if there is None or there.status != "pending":
                    return there or approval
        reason = f"nobody decided within {self._timeout_seconds:g} seconds"
        late = await self._approvals.decide(approval.approval_id, "expired", reason=reason)
        return late or await self._approvals.get(approval.approval_id) or approval


def _create_approval(request: ApprovalRequest, owner: str) -> Approval:
    context = request.context
    return Approval(
        approval_id=uuid4().hex,
        run_id=context.run_id,
        call_id=context.call_id,
        tool_id=request.tool_id,
        arguments=request.arguments,
        sha256=canonical_sha256(request.arguments),
        created_at=get_utc_now(),
        agent_id=context.agent_id,
        conversation_id=context.conversation_id,
        owner=owner,
    )
