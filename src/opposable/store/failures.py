"""Repository of tool failures that runs share."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    JSON,
    FromClause,
    Row,
    Select,
    Text,
    bindparam,
    cast,
    delete,
    func,
    select,
    true,
    update,
)

from opposable.domain.records import Failure, Page, get_utc_now
from opposable.store.database import Repository
from opposable.store.pagination import fetch_by_id_prefix, fetch_newest_first
from opposable.store.rows import to_record, to_row
from opposable.store.tables import build_informative_condition, failures

DELETE_BATCH_ROWS = 1000
"""Rows deleted in one transaction. Other writers get a turn between transactions."""


class FailureRepository(Repository):
    """Failures of tool calls, with the corrections that made the calls work."""

    async def add(self, new_failures: Sequence[Failure]) -> None:
        """Store failures. A known failure adds to its count and takes the new message."""
        rows = [_to_row(failure) for failure in new_failures]
        if not rows:
            return
        insert = self._database.build_insert(failures)
        upsert = insert.on_conflict_do_update(
            index_elements=["id"],
            set_={
                "count": failures.c.count + insert.excluded.count,
                "last_seen": insert.excluded.last_seen,
                "message": insert.excluded.message,
            },
        )
        rows.sort(key=lambda row: str(row["id"]))  # one lock order for all processes avoids deadlocks
        async with self._database.begin_write() as connection:
            await connection.execute(upsert, rows)

    async def get_failures_by_tool(
        self, tool_ids: Sequence[str], scopes: Sequence[str] = ("",), *, limit_per_tool: int = 20
    ) -> dict[str, tuple[Failure, ...]]:
        """Return informative failures of each tool, newest first, by tool id.

        A failure is informative when it recurred, was corrected or is pinned. There are at most `limit_per_tool` per
        tool and scope, in addition to pinned ones. The cost does not grow with the number of stored failures.
        """
        parameters = {"tools": list(dict.fromkeys(tool_ids)), "scopes": list(dict.fromkeys(scopes))}
        if not parameters["tools"] or not parameters["scopes"]:
            return {}
        is_sqlite = self._database.is_sqlite
        failures_by_tool: dict[str, dict[str, Failure]] = {}
        async with self._database.begin_read() as connection:
            for query in (_select_newest(is_sqlite, limit_per_tool), _select_pinned(is_sqlite)):
                for row in (await connection.execute(query, parameters)).all():
                    failures_by_tool.setdefault(row.tool_id, {})[row.id] = _to_failure(row)
        return {
            tool_id: tuple(sorted(failures_by_id.values(), key=_get_last_seen, reverse=True))
            for tool_id, failures_by_id in failures_by_tool.items()
        }

    async def list_by_id_prefix(self, id_prefix: str) -> tuple[Failure, ...]:
        """Return the first two failures whose id starts with a prefix, ordered by id."""
        return await fetch_by_id_prefix(self._database, select(failures), failures.c.id, _to_failure, id_prefix)

    async def get(self, failure_id: str) -> Failure | None:
        """Return the failure with this id."""
        rows = await self._database.fetch(select(failures).where(failures.c.id == failure_id))
        return _to_failure(rows[0]) if rows else None

    async def list(
        self, *, tool_id: str = "", scope: str | None = None, after: str = "", limit: int = 100
    ) -> Page[Failure]:
        """Return a page of failures, the last seen first.

        `after` is the cursor of the previous page, `limit` a number from 1 to 1000.
        """
        conditions = [failures.c.tool_id == tool_id] if tool_id else []
        if scope is not None:
            conditions.append(failures.c.scope == scope)
        query = select(failures).where(*conditions)
        return await fetch_newest_first(
            self._database, query, failures.c.last_seen, failures.c.id, _to_failure, after=after, limit=limit
        )

    async def correct(self, failure_id: str, correction: dict[str, Any] | None) -> bool:
        """Store the correction of a failure. Return whether the failure exists."""
        return await self._update(failure_id, correction=correction)

    async def set_pinned(self, failure_id: str, pinned: bool) -> bool:
        """Exempt a failure from deletion by age, or stop that. Return whether it exists."""
        return await self._update(failure_id, pinned=pinned)

    async def forget(self, failure_id: str) -> bool:
        """Delete a failure. Return whether it existed."""
        return await self._database.execute(delete(failures).where(failures.c.id == failure_id)) > 0

    async def forget_tool(self, tool_id: str, scope: str | None = None) -> int:
        """Delete the failures of a tool, or those in one scope. Return their number."""
        conditions = [failures.c.tool_id == tool_id, *([] if scope is None else [failures.c.scope == scope])]
        return await self._database.execute(delete(failures).where(*conditions))

    async def forget_before(self, moment: datetime) -> int:
        """Delete failures last seen before `moment`, except pinned ones. Return their number."""
        outdated = select(failures.c.id).where(failures.c.last_seen < moment, ~failures.c.pinned)
        batch = outdated.order_by(failures.c.last_seen, failures.c.id).limit(DELETE_BATCH_ROWS)
        if not await self._database.fetch(batch.limit(1)):  # as a rule: do not lock out writers
            return 0
        total = 0
        while True:
            async with self._database.begin_write() as connection:
                ids = (await connection.scalars(batch)).all()
                await connection.execute(delete(failures).where(failures.c.id.in_(ids)))
            total += len(ids)
            if len(ids) < DELETE_BATCH_ROWS:
                return total

    async def _update(self, failure_id: str, **values: Any) -> bool:
        return await self._database.execute(update(failures).where(failures.c.id == failure_id).values(**values)) > 0


def _expand_bound_list(name: str, is_sqlite: bool) -> FromClause:
    """Return the strings of the list parameter `name` as a table with the column `value`."""
    if is_sqlite:
        return func.json_each(bindparam(name, type_=JSON)).table_valued("value", name=name)
    return func.unnest(cast(bindparam(name), ARRAY(Text))).table_valued("value", name=name).render_derived()


def _select_newest(is_sqlite: bool, limit_per_tool: int) -> Select[Any]:
    """Select the last failures of each tool in each scope, with one index lookup per pair."""
    tools, scopes = _expand_bound_list("tools", is_sqlite), _expand_bound_list("scopes", is_sqlite)
    inner = failures.alias("inner_failures")
    last = select(inner if not is_sqlite else inner.c.id).where(
        inner.c.tool_id == tools.c.value, inner.c.scope == scopes.c.value, build_informative_condition(inner)
    )
    last = last.order_by(inner.c.last_seen.desc()).limit(limit_per_tool)
    pairs = tools.join(scopes, true())
    if not is_sqlite:
        newest = last.lateral("newest")
        return select(newest).select_from(pairs.join(newest, true()))
    return select(failures).select_from(pairs.join(failures, failures.c.id.in_(last.correlate(tools, scopes))))


def _select_pinned(is_sqlite: bool) -> Select[Any]:
    tools, scopes = _expand_bound_list("tools", is_sqlite), _expand_bound_list("scopes", is_sqlite)
    return select(failures).where(
        failures.c.pinned,
        failures.c.tool_id.in_(select(tools.c.value)),
        failures.c.scope.in_(select(scopes.c.value)),
    )


def _to_row(failure: Failure) -> dict[str, Any]:
    current_time = get_utc_now()
    return to_row(failure) | {
        "id": failure.failure_id,
        "first_seen": failure.first_seen or failure.last_seen or current_time,
        "last_seen": failure.last_seen or current_time,
    }


def _to_failure(row: Row[Any]) -> Failure:
    return to_record(Failure, row)


def _get_last_seen(failure: Failure) -> datetime:
    return failure.last_seen or get_utc_now()
