"""Long lists in parts: newest first, each part beginning where the last one ended."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import orjson
from sqlalchemy import ColumnElement, Row, Select, tuple_

from opposable.domain.errors import BadInput
from opposable.domain.records import Page
from opposable.store.database import Database

LARGEST = 1000
"""Items of one part at most."""

NO_CURSOR = "This cursor was not given out here; begin without one."

T = TypeVar("T")


def cursor(at: datetime, key: str) -> str:
    """Where a part ended, as an opaque text."""
    return base64.urlsafe_b64encode(orjson.dumps([at.astimezone(UTC).isoformat(), key])).decode().rstrip("=")


def place(cursor: str) -> tuple[datetime, str]:
    """Where the next part begins. Raises: `BadInput` for a cursor that is none."""
    try:
        at, key = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        moment = datetime.fromisoformat(at)
    except (ValueError, TypeError) as error:
        raise BadInput(NO_CURSOR) from error
    if not isinstance(key, str) or moment.tzinfo is None:
        raise BadInput(NO_CURSOR)
    return moment, key


def size(limit: int) -> int:
    """The number of items asked for. Raises: `BadInput` when it is not from 1 to `LARGEST`."""
    if not 1 <= limit <= LARGEST:
        raise BadInput(f"limit is {limit}; it can be from 1 to {LARGEST}.")
    return limit


async def newest_first(
    database: Database,
    query: Select[Any],
    at: ColumnElement[datetime],
    key: ColumnElement[str],
    make: Callable[[Row[Any]], T],
    *,
    after: str,
    limit: int,
) -> Page[T]:
    """One part of `query`, ordered by `at` and `key` falling; `after` is the last part's cursor.

    Raises: `BadInput` for a wrong cursor or limit.
    """
    wanted = size(limit)
    if after:
        query = query.where(tuple_(at, key) < tuple_(*place(after), types=(at.type, key.type)))
    async with database.reading() as connection:
        rows = (await connection.execute(query.order_by(at.desc(), key.desc()).limit(wanted + 1))).all()
    items = tuple(make(row) for row in rows[:wanted])
    if len(rows) <= wanted:
        return Page(items)
    last = rows[wanted - 1]._mapping  # noqa: SLF001 - the documented name
    return Page(items, cursor(last[at], last[key]))
