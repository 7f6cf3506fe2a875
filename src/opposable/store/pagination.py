"""Cursor pagination of queries, newest first."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import orjson
from sqlalchemy import ColumnElement, Row, Select, select, tuple_

from opposable.domain.errors import BadInput
from opposable.domain.records import Page
from opposable.store.database import StoreDatabase

MAX_PAGE_SIZE = 1000
"""Items on one page."""

INVALID_CURSOR_MESSAGE = "The cursor is not valid. Omit it to start at the first page."

T = TypeVar("T")


def encode_cursor(timestamp: datetime, key: str) -> str:
    """Encode the position of a page's last item as opaque text."""
    return base64.urlsafe_b64encode(orjson.dumps([timestamp.astimezone(UTC).isoformat(), key])).decode().rstrip("=")


def decode_cursor(cursor: str) -> tuple[datetime, str]:
    """Return the timestamp and key of a cursor.

    Raises:
        BadInput: `encode_cursor` did not create the cursor.
    """
    try:
        timestamp_text, key = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        timestamp = datetime.fromisoformat(timestamp_text)
    except (ValueError, TypeError) as error:
        raise BadInput(INVALID_CURSOR_MESSAGE) from error
    if not isinstance(key, str) or timestamp.tzinfo is None:
        raise BadInput(INVALID_CURSOR_MESSAGE)
    return timestamp, key


def validate_limit(limit: int) -> int:
    """Return `limit`.

    Raises:
        BadInput: It is not from 1 to `MAX_PAGE_SIZE`.
    """
    if not 1 <= limit <= MAX_PAGE_SIZE:
        raise BadInput(f"limit is {limit}. Pass a number from 1 to {MAX_PAGE_SIZE}.")
    return limit


async def fetch_newest_first(
    database: StoreDatabase,
    query: Select[Any],
    time_column: ColumnElement[datetime],
    key_column: ColumnElement[str],
    to_item: Callable[[Row[Any]], T],
    *,
    after: str,
    limit: int,
) -> Page[T]:
    """Return one page of `query`, which has no order and limit, by time and key, both descending.

    The unique `key_column` orders rows of the same time. `after` is the cursor of the previous page.

    Raises:
        BadInput: The cursor or the limit is not valid.
    """
    page_size = validate_limit(limit)
    if after:
        position = tuple_(*decode_cursor(after), types=(time_column.type, key_column.type))
        query = query.where(tuple_(time_column, key_column) < position)
    query = query.order_by(time_column.desc(), key_column.desc()).limit(page_size + 1)
    rows = await database.fetch(query)
    items = tuple(to_item(row) for row in rows[:page_size])
    if len(rows) <= page_size:
        return Page(items)
    last_row = rows[page_size - 1]._mapping  # noqa: SLF001 - a documented attribute
    return Page(items, encode_cursor(last_row[time_column], last_row[key_column]))


async def fetch_by_id_prefix(
    database: StoreDatabase,
    query: Select[Any],
    key_column: ColumnElement[str],
    to_item: Callable[[Row[Any]], T],
    id_prefix: str,
) -> tuple[T, ...]:
    """Return the first two rows whose key starts with `id_prefix`, ordered by key: enough to see whether it is unique."""
    # the index alone has the keys: with the rows, PostgreSQL reads the whole table in the order of the index
    keys = select(key_column).where(key_column.startswith(id_prefix, autoescape=True)).order_by(key_column).limit(2)
    query = query.where(key_column.in_(keys.correlate(None))).order_by(key_column)
    return tuple(to_item(row) for row in await database.fetch(query))
