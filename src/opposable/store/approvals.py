"""Repository of human approvals of tool calls."""

from typing import Any, Literal

from sqlalchemy import Row, select, update
from sqlalchemy.exc import IntegrityError

from opposable.domain.errors import BadInput
from opposable.domain.records import Approval, ApprovalStatus, Page, get_utc_now
from opposable.store.database import Repository
from opposable.store.pagination import fetch_by_id_prefix, fetch_newest_first
from opposable.store.rows import to_record, to_row
from opposable.store.tables import approvals


class ApprovalRepository(Repository):
    """Requests for approval and the decisions on them."""

    async def add(self, approval: Approval) -> None:
        """Store a request for approval.

        Raises:
            BadInput: The id is taken.
        """
        row = to_row(approval, "approval_id") | {"id": approval.approval_id}
        try:
            await self._database.execute(approvals.insert().values(**row))
        except IntegrityError as error:
            raise BadInput(f"The approval {approval.approval_id!r} already exists. Use a new id.") from error

    async def get(self, approval_id: str) -> Approval | None:
        """Return the approval with this id."""
        [rows] = await self._database.fetch_inline(select(approvals).where(approvals.c.id == approval_id))
        return _to_approval(rows[0]) if rows else None

    async def list_by_id_prefix(self, id_prefix: str) -> tuple[Approval, ...]:
        """Return the first two approvals whose id starts with a prefix, ordered by id."""
        return await fetch_by_id_prefix(self._database, select(approvals), approvals.c.id, _to_approval, id_prefix)

    async def list(
        self, *, status: ApprovalStatus | None = None, owner: str | None = None, after: str = "", limit: int = 100
    ) -> Page[Approval]:
        """Return a page of approvals, newest first.

        `after` is the cursor of the previous page, `limit` a number from 1 to 1000.
        """
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
        """Decide a pending approval. The first of several decisions counts.

        Returns:
            The decided approval, or None when it is not pending.
        """
        is_pending = (approvals.c.id == approval_id) & (approvals.c.status == "pending")
        decision = {"status": status, "decided_by": decided_by, "reason": reason, "decided_at": get_utc_now()}
        statement = update(approvals).where(is_pending).values(**decision).returning(approvals)
        async with self._database.begin_write() as connection:
            row = (await connection.execute(statement)).one_or_none()
        return None if row is None else _to_approval(row)

    async def expire_pending(self, run_id: str, reason: str) -> None:
        """Mark the pending approvals of a run as expired."""
        is_pending = (approvals.c.run_id == run_id) & (approvals.c.status == "pending")
        decision = {"status": "expired", "reason": reason, "decided_at": get_utc_now()}
        await self._database.execute(update(approvals).where(is_pending).values(**decision))


def _to_approval(row: Row[Any]) -> Approval:
    return to_record(Approval, row, approval_id=row.id)
