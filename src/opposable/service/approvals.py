"""Human approval of tool calls, bound to their exact arguments."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from opposable.domain.call_context import ApprovalRequest, Approved, CallContext, Denied
from opposable.domain.errors import StoreUnavailable
from opposable.domain.records import Approval, canonical_sha256, get_utc_now
from opposable.store.approvals import ApprovalRepository

APPROVAL_POLL_SECONDS = 0.5
"""Seconds between reads of the store: the decision can be made in another process."""

log = logging.getLogger("opposable.approvals")

EmitEvent = Callable[[str, dict[str, object]], None]
"""Called with the kind and the data of an event."""


class Approver:
    """Requests human approval for the calls of one run and waits for the decisions.

    Args:
        approvals: Where requests and decisions are stored.
        emit: Called with the events approval_needed and approval_decided.
        owner: The id of the API key that owns the run, "" without keys.
        timeout_seconds: How long to wait; after that the call is denied.
    """

    def __init__(self, approvals: ApprovalRepository, emit: EmitEvent, owner: str, timeout_seconds: float) -> None:
        self._approvals = approvals
        self._emit = emit
        self._owner = owner
        self._timeout_seconds = timeout_seconds

    async def __call__(self, request: ApprovalRequest) -> Approved | Denied:
        """Return the decision on exactly these arguments.

        Raises:
            StoreUnavailable: If the request cannot be stored.
        """
        approval = create_approval(request.context, request.tool_id, request.arguments, self._owner)
        ids = {"approval_id": approval.approval_id, "call_id": approval.call_id, "name": request.name}
        details = {"tool_id": approval.tool_id, "arguments": approval.arguments, "sha256": approval.sha256}
        log_ids = {"approval_id": approval.approval_id, "run_id": approval.run_id, "tool": approval.tool_id}
        try:
            await self._approvals.add(approval)
            self._emit("approval_needed", {**ids, **details})
            log.info("approval requested", extra=log_ids)
            decision = await self._wait_for_decision(approval)
        except asyncio.CancelledError:
            with contextlib.suppress(StoreUnavailable):
                await self._approvals.decide(approval.approval_id, "expired", reason="the run ended")
            raise
        self._emit("approval_decided", {**ids, "status": decision.status, "reason": decision.reason})
        if decision.status == "approved" and decision.sha256 == canonical_sha256(request.arguments):
            return Approved()
        return Denied(decision.reason)

    async def _wait_for_decision(self, approval: Approval) -> Approval:
        deadline = asyncio.get_running_loop().time() + self._timeout_seconds
        while asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(APPROVAL_POLL_SECONDS)
            with contextlib.suppress(StoreUnavailable):  # keep waiting through an outage of the store
                stored = await self._approvals.get(approval.approval_id)
                if stored is None or stored.status != "pending":
                    return stored or approval
        reason = f"no one decided within {self._timeout_seconds:g} seconds"
        expired = await self._approvals.decide(approval.approval_id, "expired", reason=reason)
        return expired or await self._approvals.get(approval.approval_id) or approval


def create_approval(
    context: CallContext, tool_id: str, arguments: dict[str, Any], owner: str, *, approval_id: str = "", note: str = ""
) -> Approval:
    """Return the pending approval of a call, with a new id by default; `note` is shown to the person."""
    return Approval(
        approval_id=approval_id or uuid4().hex,
        run_id=context.run_id,
        call_id=context.call_id,
        tool_id=tool_id,
        arguments=arguments,
        sha256=canonical_sha256(arguments),
        created_at=get_utc_now(),
        agent_id=context.agent_id,
        conversation_id=context.conversation_id,
        owner=owner,
        reason=note,
    )
