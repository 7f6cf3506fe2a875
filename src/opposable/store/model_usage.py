"""Repository of the tokens that each API key used of each model, by day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import Column, Row, Select, func, select

from opposable.domain.usage import Usage
from opposable.store.database import Repository
from opposable.store.tables import model_usage

_COUNTS = ("input_tokens", "output_tokens", "requests", "cached_tokens")  # columns, and fields of Usage in their order


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """The use of a model by an API key; `key_id` is "" for requests without a stored key."""

    key_id: str
    model: str
    usage: Usage


class ModelUsageRepository(Repository):
    """The tokens that each API key used of each model."""

    async def add(self, records: Sequence[ModelUsage], day: date) -> None:
        """Add the tokens of a day to those already stored."""
        if not records:
            return
        columns = model_usage.c
        insert = self._database.build_insert(model_usage)
        statement = insert.on_conflict_do_update(
            index_elements=["key_id", "model", "day"],
            set_={name: columns[name] + insert.excluded[name] for name in _COUNTS},
        )
        rows = [
            {
                "key_id": record.key_id,
                "model": record.model,
                "day": day.isoformat(),
                **{name: getattr(record.usage, name) for name in _COUNTS},
            }
            for record in sorted(records, key=lambda record: (record.key_id, record.model))  # one lock order
        ]
        async with self._database.begin_write() as connection:
            await connection.execute(statement, rows)

    async def list(self, since: date | None = None, until: date | None = None) -> tuple[ModelUsage, ...]:
        """Return the use of each model by each key in the days `since` to `until`, the most tokens first."""
        columns = model_usage.c
        tokens = func.sum(columns.input_tokens + columns.output_tokens)
        query = _sum_usage(since, until, columns.key_id, columns.model)
        rows = await self._database.fetch(query.order_by(tokens.desc(), columns.key_id, columns.model))
        return tuple(ModelUsage(row.key_id, row.model, _to_usage(row)) for row in rows)

    async def list_by_day(
        self, since: date | None = None, until: date | None = None
    ) -> tuple[tuple[date, str, Usage], ...]:
        """Return the day, model and use of each day and model, the earliest day first; see `list`."""
        columns = model_usage.c
        query = _sum_usage(since, until, columns.day, columns.model).order_by(columns.day, columns.model)
        rows = await self._database.fetch(query)
        return tuple((date.fromisoformat(row.day), row.model, _to_usage(row)) for row in rows)


def _sum_usage(since: date | None, until: date | None, *groups: Column[Any]) -> Select[Any]:
    columns = model_usage.c
    sums = [func.sum(columns[name]).label(name) for name in _COUNTS]
    query = select(*groups, *sums).group_by(*groups)
    if since is not None:
        query = query.where(columns.day >= since.isoformat())
    if until is not None:
        query = query.where(columns.day <= until.isoformat())
    return query


def _to_usage(row: Row[Any]) -> Usage:
    return Usage(*(int(getattr(row, name)) for name in _COUNTS))
