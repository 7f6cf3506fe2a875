"""Calls that wait for a person."""

from typing import Any, Literal

from sqlalchemy import Row, select, update
from sqlalchemy.exc import IntegrityError

from opposable.domain.errors import BadInput
from opposable.domain.records import Approval, ApprovalStatus, Page, get_utc_now
from opposable.store.database import StoreDatabase
from opposable.store.pagination import fetch_newest_first
from opposable.store.tables import approvals


class ApprovalRepository:
    """What was asked of people, and what they decided."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database

    async def add(self, approval: Approval) -> None:
        """Ask. Raises: `BadInput` when the id is taken."""
        row = {name: getattr(approval, name) for name in _FIELD_NAMES} | {"id": approval.approval_id}
        try:
            async with self._database.begin_write() as connection:
                await connection.execute(approvals.insert().values(**row))
        except IntegrityError as error:
            raise BadInput(f"There is an approval {approval.approval_id!r} already.") from error

    async def get(self, approval_id: str) -> Approval | None:
        """The approval of that id."""
        async with self._database.begin_inline_read() as connection:
            row = (await connection.execute(select(approvals).where(approvals.c.id == approval_id))).one_or_none()
        return None if row is None else _to_approval(row)

    async def get_for_call(self, run_id: str, call_id: str, sha256: str) -> Approval | None:
        """The newest approval of exactly this call with exactly these arguments."""
        table = approvals.c
        query = select(approvals).where(table.run_id == run_id, table.call_id == call_id, table.sha256 == sha256)
        async with self._database.begin_read() as connection:
            row = (await connection.execute(query.order_by(table.created_at.desc()).limit(1))).one_or_none()
        return None if row is None else _to_approval(row)

    async def list(
        self, *, status: ApprovalStatus | None = None, owner: str | None = None, after: str = "", limit: int = 100
    ) -> Page[Approval]:
        """Approvals that fit, newest first; `after` is the last part's cursor."""
        conditions = [] if status is None else [approvals.c.status == status]
        if owner is not None:
            conditions.append(approvals.c.owner == owner)
        query = select(approvals).where(*conditions)
        return await fetch_newest_first(
            self._database, query, approvals.c.created_at, approvals.c.id, _to_approval, after=after, limit=limit
        )

    async def decide(
        self,
        approval_id: str,
        status: Literal["approved", "denied", "expired"],
        *,
        decided_by: str = "",
        reason: str = "",
    ) -> Approval | None:
        """Decide what is pending, once: of two deciders the first counts. None when it is not pending any more."""
        pending = (approvals.c.id == approval_id) & (approvals.c.status == "pending")
        decided = {"status": status, "decided_by": decided_by, "reason": reason, "decided_at": get_utc_now()}
        change = update(approvals).where(pending).values(**decided).returning(approvals)
        async with self._database.begin_write() as connection:
            row = (await connection.execute(change)).one_or_none()
        return None if row is None else _to_approval(row)


_FIELD_NAMES = (
    "run_id",
    "call_id",
    "tool_id",
    "agent_id",
    "conversation_id",
    "owner",
    "arguments",
    "sha256",
    "status",
    "decided_by",
    "reason",
    "created_at",
    "decided_at",
)


def _to_approval(row: Row[Any]) -> Approval:
    return Approval(approval_id=row.id, **{name: getattr(row, name) for name in _FIELD_NAMES})
