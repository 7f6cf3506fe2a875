"""Failures as they are remembered across runs."""

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

from opposable.domain.records import SHARED_SCOPE, Failure, Page, get_utc_now
from opposable.store.database import StoreDatabase
from opposable.store.pagination import fetch_newest_first
from opposable.store.tables import build_informative_condition, failures

DELETE_BATCH_ROWS = 1000
"""Rows forgotten in one transaction: writers come in between."""


class FailureRepository:
    """What went wrong before, and what put it right."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database

    async def add(self, new_failures: Sequence[Failure]) -> None:
        """Remember failures: one that is known counts higher, and its message is the newest."""
        rows = [_to_row(one) for one in new_failures]
        if not rows:
            return
        insert = self._database.build_insert(failures)
        new = insert.excluded
        known = insert.on_conflict_do_update(
            index_elements=["id"],
            set_={"count": failures.c.count + new.count, "last_seen": new.last_seen, "message": new.message},
        )
        async with self._database.begin_write() as connection:
            await connection.execute(known, sorted(rows, key=lambda row: str(row["id"])))  # one order: no deadlocks

    async def get_failures_for_call(
        self, tool_id: str, action: str, fingerprint: str, scopes: Sequence[str] = (SHARED_SCOPE,)
    ) -> tuple[Failure, ...]:
        """What is known of exactly this call in any of these scopes, most frequent first."""
        query = select(failures).where(
            failures.c.tool_id == tool_id,
            failures.c.action == action,
            failures.c.fingerprint == fingerprint,
            failures.c.scope.in_(scopes),
        )
        async with self._database.begin_read() as connection:
            rows = (await connection.execute(query.order_by(failures.c.count.desc(), failures.c.id))).all()
        return tuple(_to_failure(row) for row in rows)

    async def get_failures_by_tool(
        self, tool_ids: Sequence[str], scopes: Sequence[str] = (SHARED_SCOPE,), *, limit_per_tool: int = 20
    ) -> dict[str, tuple[Failure, ...]]:
        """What the failures of each of these tools teach, newest first: what came once and was never put right is not told.

        At most `each` of a tool in a scope, beside those that are pinned. It costs the same however many are kept.
        """
        given = {"tools": list(dict.fromkeys(tool_ids)), "scopes": list(dict.fromkeys(scopes))}
        if not given["tools"] or not given["scopes"]:
            return {}
        found: dict[str, dict[str, Failure]] = {}
        async with self._database.begin_read() as connection:
            for query in (
                _select_newest(self._database.is_sqlite, limit_per_tool),
                _select_pinned(self._database.is_sqlite),
            ):
                for row in (await connection.execute(query, given)).all():
                    found.setdefault(row.tool_id, {})[row.id] = _to_failure(row)
        return {tool: tuple(sorted(them.values(), key=_get_last_seen, reverse=True)) for tool, them in found.items()}

    async def list_by_id_prefix(self, id_prefix: str, limit: int = 2) -> tuple[Failure, ...]:
        """Failures whose id begins so, at most so many."""
        query = select(failures).where(failures.c.id >= id_prefix, failures.c.id < f"{id_prefix}g").limit(limit)
        async with self._database.begin_read() as connection:
            rows = (await connection.execute(query.order_by(failures.c.id))).all()
        return tuple(_to_failure(row) for row in rows)

    async def get(self, failure_id: str) -> Failure | None:
        """The failure of that id."""
        async with self._database.begin_read() as connection:
            row = (await connection.execute(select(failures).where(failures.c.id == failure_id))).one_or_none()
        return None if row is None else _to_failure(row)

    async def list(
        self, *, tool_id: str = "", scope: str | None = None, after: str = "", limit: int = 100
    ) -> Page[Failure]:
        """Failures that fit, the last seen first; `after` is the last part's cursor."""
        conditions = [failures.c.tool_id == tool_id] if tool_id else []
        if scope is not None:
            conditions.append(failures.c.scope == scope)
        query = select(failures).where(*conditions)
        return await fetch_newest_first(
            self._database, query, failures.c.last_seen, failures.c.id, _to_failure, after=after, limit=limit
        )

    async def correct(self, failure_id: str, correction: dict[str, Any] | None) -> bool:
        """Keep what put a failure right. Returns whether there is such a failure."""
        return await self._update(failure_id, correction=correction)

    async def set_pinned(self, failure_id: str, pinned: bool) -> bool:
        """Keep a failure for good, or no longer. Returns whether there is one."""
        return await self._update(failure_id, pinned=pinned)

    async def forget(self, failure_id: str) -> bool:
        """Forget a failure. Returns whether there was one."""
        async with self._database.begin_write() as connection:
            done = await connection.execute(delete(failures).where(failures.c.id == failure_id))
        return done.rowcount > 0

    async def forget_tool(self, tool_id: str, scope: str | None = None) -> int:
        """Forget all of a tool, or what one scope knows of it. Returns how many."""
        conditions = [failures.c.tool_id == tool_id, *([] if scope is None else [failures.c.scope == scope])]
        async with self._database.begin_write() as connection:
            return (await connection.execute(delete(failures).where(*conditions))).rowcount

    async def forget_before(self, moment: datetime) -> int:
        """Forget what was not seen since, pinned ones apart, a batch at a time. Returns how many."""
        old = select(failures.c.id).where(failures.c.last_seen < moment, ~failures.c.pinned)
        some = old.order_by(failures.c.last_seen, failures.c.id).limit(DELETE_BATCH_ROWS)
        async with self._database.begin_read() as connection:  # most often there is none: no writer is held up
            if (await connection.execute(some.limit(1))).first() is None:
                return 0
        total = 0
        while True:
            async with self._database.begin_write() as connection:
                ids = (await connection.scalars(some)).all()
                await connection.execute(delete(failures).where(failures.c.id.in_(ids)))
            total += len(ids)
            if len(ids) < DELETE_BATCH_ROWS:
                return total

    async def _update(self, failure_id: str, **values: Any) -> bool:
        async with self._database.begin_write() as connection:
            done = await connection.execute(update(failures).where(failures.c.id == failure_id).values(**values))
        return done.rowcount > 0


def _expand_bound_list(name: str, is_sqlite: bool) -> FromClause:
    """The texts of the list bound under `name`, as a table with the column `value`."""
    if is_sqlite:
        return func.json_each(bindparam(name, type_=JSON)).table_valued("value", name=name)
    return func.unnest(cast(bindparam(name), ARRAY(Text))).table_valued("value", name=name).render_derived()


def _select_newest(is_sqlite: bool, limit_per_tool: int) -> Select[Any]:
    """The last failures of each tool in each scope: each of them found in the index by itself."""
    tools, scopes = _expand_bound_list("tools", is_sqlite), _expand_bound_list("scopes", is_sqlite)
    one = failures.alias("one")
    last = select(one if not is_sqlite else one.c.id).where(
        one.c.tool_id == tools.c.value, one.c.scope == scopes.c.value, build_informative_condition(one)
    )
    last = last.order_by(one.c.last_seen.desc()).limit(limit_per_tool)
    pairs = tools.join(scopes, true())
    if not is_sqlite:
        found = last.lateral("found")
        return select(found).select_from(pairs.join(found, true()))
    return select(failures).select_from(pairs.join(failures, failures.c.id.in_(last.correlate(tools, scopes))))


def _select_pinned(is_sqlite: bool) -> Select[Any]:
    tools, scopes = _expand_bound_list("tools", is_sqlite), _expand_bound_list("scopes", is_sqlite)
    return select(failures).where(
        failures.c.pinned,
        failures.c.tool_id.in_(select(tools.c.value)),
        failures.c.scope.in_(select(scopes.c.value)),
    )


def _to_row(failure: Failure) -> dict[str, Any]:
    moment = get_utc_now()
    return {
        "id": failure.failure_id,
        "scope": failure.scope,
        "tool_id": failure.tool_id,
        "action": failure.action,
        "kind": failure.kind,
        "fingerprint": failure.fingerprint,
        "message": failure.message,
        "count": failure.count,
        "first_seen": failure.first_seen or failure.last_seen or moment,
        "last_seen": failure.last_seen or moment,
        "correction": failure.correction,
        "pinned": failure.pinned,
    }


def _to_failure(row: Row[Any]) -> Failure:
    return Failure(
        tool_id=row.tool_id,
        action=row.action,
        kind=row.kind,
        fingerprint=row.fingerprint,
        scope=row.scope,
        message=row.message,
        count=row._mapping["count"],  # noqa: SLF001 - a row has a method of that name
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        correction=row.correction,
        pinned=row.pinned,
    )


def _get_last_seen(failure: Failure) -> datetime:
    return failure.last_seen or get_utc_now()
