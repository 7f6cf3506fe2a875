"""Truncation of cells on the PostgreSQL server, before their transfer."""

import contextlib
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal

TruncationKind = Literal["plain", "text", "padded", "bytes", "nested"]

_FIXED_SIZE_TYPES = frozenset(
    [
        "bool",
        "int2",
        "int4",
        "int8",
        "float4",
        "float8",
        "numeric",
        "oid",
        "date",
        "time",
        "timetz",
        "timestamp",
        "timestamptz",
        "uuid",
        "tid",
        "xid",
        "cid",
        "money",
        '"char"',
        "name",
        "macaddr",
        "macaddr8",
        "inet",
        "cidr",
        "point",
        "box",
        "circle",
        "line",
        "lseg",
    ]
)
_TEXT_TYPES = frozenset(
    {"text", "varchar", "citext", "xml", "unknown", "tsvector", "tsquery", "bit", "varbit", "interval"}
)
"""Types that the server writes as text. A Python interval has no months and years."""


def get_truncation_kind(column: Any) -> TruncationKind:
    """Return how to truncate a column of a cursor's description."""
    display = str(column.type_display or "")
    name = "" if display.endswith("[]") else display.partition("(")[0].strip()
    if name in _FIXED_SIZE_TYPES:
        return "plain"
    if name in _TEXT_TYPES:
        return "text"
    kinds: dict[str, TruncationKind] = {"bytea": "bytes", "bpchar": "padded"}
    return kinds.get(name, "nested")


def wrap_with_truncation(sql: str, kinds: Sequence[TruncationKind], max_characters: int) -> str:
    """Wrap `sql` to truncate its cells to `max_characters` + 1.

    The extra character marks a truncated cell.
    """
    names = [f"c{i}" for i in range(1, len(kinds) + 1)]
    cut = ", ".join(
        _build_cell_expression(name, kind, max_characters + 1) for name, kind in zip(names, kinds, strict=True)
    )
    return f"SELECT {cut} FROM ({sql}\n) AS bounded({', '.join(names)})"  # noqa: S608 - the query itself, in parentheses


def _build_cell_expression(name: str, kind: TruncationKind, max_characters: int) -> str:
    match kind:
        case "plain":
            return name
        case "text":
            return f"pg_catalog.left({name}::text, {max_characters})"
        case "padded":  # a cast to text would remove the spaces at the end
            return f"pg_catalog.left(pg_catalog.textin(pg_catalog.bpcharout({name})), {max_characters})"
        case "bytes":
            return f"'<blob ' || pg_catalog.octet_length({name}) || ' bytes>'"
        case "nested":
            return f"pg_catalog.left(pg_catalog.to_json({name})::text, {max_characters})"


def decode_cell(value: Any, kind: TruncationKind, max_characters: int) -> Any:
    """Return the value of a cell.

    A nested value that was not truncated is parsed from JSON, with all digits of its numbers.
    """
    if kind != "nested" or not isinstance(value, str) or len(value) > max_characters:
        return value
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(value, parse_float=Decimal)
    return value
