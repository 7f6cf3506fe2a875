"""What a tool call of a durable run passes through: human approval, and the check for an unknown outcome."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from opposable.domain.call_context import ApprovalHandler, ApprovalRequest, Approved, CallContext, Denied
from opposable.domain.tools import ToolResult
from opposable.durable import messages as texts
from opposable.service.approvals import create_approval
from opposable.service.store_retries import retry_while_unavailable
from opposable.store.store import Store

SIBLING_POLL_SECONDS = 0.05
"""Seconds between looks at the other calls of a run, while one waits for a person."""

EmitEvent = Callable[[str, dict[str, Any]], object]
"""Called with the kind and the data of an event."""


class RunSuspended(BaseException):
    """A run that waits for a person. Not an `Exception`, so that no policy turns it into a failed call."""


@dataclass(frozen=True, slots=True)
class GuardedCall:
    """A call that may be made with `approve`, unless there is a `refusal`."""

    approve: ApprovalHandler
    refusal: ToolResult | None = None


class CallGuard:
    """Guards the calls of one run.

    Args:
        store: Where approvals and attempts are stored.
        emit: Called with the events approval_needed and approval_decided.
        owner: The id of the API key that owns the run, "" without keys.
    """

    def __init__(self, store: Store, emit: EmitEvent, owner: str) -> None:
        self._store = store
        self._emit = emit
        self._owner = owner
        self._active_calls = 0

    @asynccontextmanager
    async def open_call(
        self, context: CallContext, tool_id: str, arguments: dict[str, Any], *, repeatable: bool
    ) -> AsyncIterator[GuardedCall]:
        """Guard a call. One that is not repeatable and was started before needs approval to start again.

        Raises:
            RunSuspended: A person must decide. It is raised when no other call of the run is active.
        """
        self._active_calls += 1
        try:
            if repeatable:
                yield GuardedCall(self._decide_request)
                return
            attempts = await retry_while_unavailable(
                lambda: self._store.queued_runs.count_attempts(context.idempotency_key)
            )
            refusal = await self._approve_repetition(context, tool_id, arguments, attempts) if attempts else None
            if refusal is None:
                await self._set_attempts(context, attempts + 1)
            yield GuardedCall(lambda request: self._decide_request(request, attempts), refusal)
        finally:
            self._active_calls -= 1

    async def _approve_repetition(
        self, context: CallContext, tool_id: str, arguments: dict[str, Any], attempts: int
    ) -> ToolResult | None:
        """Ask a person whether to repeat a call whose outcome is unknown; return the result if not."""
        decision = await self._decide(context, tool_id, arguments, f"repeat {attempts}", texts.UNKNOWN_OUTCOME_NOTE)
        if isinstance(decision, Approved):
            return None
        content = texts.unknown_outcome_message(tool_id, decision.reason, context.language)
        return ToolResult(context.call_id, tool_id, content, "denied", attempts=attempts)

    async def _decide_request(self, request: ApprovalRequest, attempts: int | None = None) -> Approved | Denied:
        """Decide on a call that needs approval in any case. Until then it has not been started."""
        if attempts is not None:
            await self._set_attempts(request.context, attempts)
        decision = await self._decide(request.context, request.tool_id, request.arguments, "", "")
        if attempts is not None and isinstance(decision, Approved):
            await self._set_attempts(request.context, attempts + 1)
        return decision

    async def _decide(
        self, context: CallContext, tool_id: str, arguments: dict[str, Any], purpose: str, note: str
    ) -> Approved | Denied:
        key = f"{context.idempotency_key} {purpose}"
        approval_id = hashlib.sha256(key.encode()).hexdigest()[:32]  # the same after a takeover
        approval = create_approval(context, tool_id, arguments, self._owner, approval_id=approval_id, note=note)
        approvals = self._store.approvals
        stored = await retry_while_unavailable(lambda: approvals.get(approval.approval_id))
        if stored is None:
            await retry_while_unavailable(lambda: approvals.add(approval))
            stored = approval
        ids = {"approval_id": approval.approval_id, "call_id": approval.call_id, "name": tool_id}
        details = {"tool_id": tool_id, "arguments": arguments, "sha256": approval.sha256, "note": note}
        self._emit("approval_needed", {**ids, **details})
        if stored.status == "pending":
            await self._wait_for_other_calls()
            raise RunSuspended
        self._emit("approval_decided", {**ids, "status": stored.status, "reason": stored.reason})
        is_approved = stored.status == "approved" and stored.sha256 == approval.sha256
        return Approved() if is_approved else Denied(stored.reason)

    async def _wait_for_other_calls(self) -> None:
        """Wait until every other call has ended or waits for a person too: a suspension would cancel it."""
        self._active_calls -= 1
        try:
            while self._active_calls:  # noqa: ASYNC110 - the count changes often, a wait for a person is rare
                await asyncio.sleep(SIBLING_POLL_SECONDS)
        finally:
            self._active_calls += 1

    async def _set_attempts(self, context: CallContext, attempts: int) -> None:
        set_attempts = self._store.queued_runs.set_attempts
        await retry_while_unavailable(lambda: set_attempts(context.idempotency_key, context.run_id, attempts))
