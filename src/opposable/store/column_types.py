"""SQLAlchemy column types that behave the same on SQLite and PostgreSQL."""

import json
import math
from datetime import UTC, datetime
from typing import Any

import orjson
from sqlalchemy import JSON, DateTime, Dialect, String, Text, TypeDecorator
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from opposable.domain.json_text import preview_json

JsonColumn = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""Any JSON value. None is stored as NULL."""

TextList = JSON(none_as_null=True).with_variant(ARRAY(Text), "postgresql")
"""A list of strings: TEXT[] on PostgreSQL, JSON on SQLite."""


class UtcDateTime(TypeDecorator[datetime]):
    """An aware datetime, stored as a TIMESTAMP in UTC. Naive datetimes raise `ValueError`."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert an aware datetime to naive UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone. Pass an aware datetime.")
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert naive UTC to an aware datetime."""
        return None if value is None else value.replace(tzinfo=UTC)


class CleanText(TypeDecorator[str]):
    """Text of any length. NUL and lone surrogates, which databases reject, become U+FFFD."""

    impl: Any = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Replace the characters that databases reject."""
        return None if value is None else clean_text(value)


class CleanString(CleanText):
    """Like `CleanText`, with at most `length` characters."""

    impl = String
    cache_ok = True


class utc_now(FunctionElement[datetime]):  # noqa: N801 - named as SQL names functions
    """The current time of the database server, in UTC."""

    inherit_cache = True
    type = DateTime()


@compiles(utc_now)
def _compile_utc_now(element: utc_now, compiler: SQLCompiler, **options: Any) -> str:
    return "CURRENT_TIMESTAMP"


@compiles(utc_now, "postgresql")
def _compile_utc_now_postgresql(element: utc_now, compiler: SQLCompiler, **options: Any) -> str:
    return "timezone('utc', now())"


def clean_text(text: str) -> str:
    """Return `text` with NUL and lone surrogates replaced by U+FFFD."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
    return text


def to_json(value: Any) -> str:
    """Serialize a value as JSON that every database accepts. Unknown types become their `str`."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, RecursionError):
        return json.dumps(_clean_value(value), ensure_ascii=False)
    return text if "\\u0000" not in text else json.dumps(_clean_value(value), ensure_ascii=False)


def from_json(text: str | bytes) -> Any:
    """Parse JSON text."""
    return json.loads(text)  # orjson rejects integers above 64 bits


def _clean_value(value: Any, depth: int = 0) -> Any:
    if depth > 200 and isinstance(value, dict | list | tuple):
        return clean_text(preview_json(value, 1000))
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(key)): _clean_value(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean_value(inner, depth + 1) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else clean_text(str(value))
