"""Cuts PostgreSQL's cells on the server, so that no cell larger than its limit ever travels."""

import contextlib
from collections.abc import Sequence
from typing import Any, Literal

import orjson

Kind = Literal["plain", "text", "bytes", "nested"]

_FIXED = frozenset(
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
        "interval",
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
_TEXT = frozenset({"text", "varchar", "bpchar", "citext", "xml", "unknown", "tsvector", "tsquery", "bit", "varbit"})


def kind_of(column: Any) -> Kind:
    """How a column of a cursor's description is cut."""
    name = str(column.type_display).partition("(")[0].strip() if column.type_display else ""
    if name in _FIXED:
        return "plain"
    if name in _TEXT:
        return "text"
    return "bytes" if name == "bytea" else "nested"


def bounded(sql: str, kinds: Sequence[Kind], characters: int) -> str:
    """`sql` with its texts, blobs and nested values cut to `characters` and one more, that tells that it was cut."""
    names = [f"c{i}" for i in range(1, len(kinds) + 1)]
    cut = ", ".join(_cut(name, kind, characters + 1) for name, kind in zip(names, kinds, strict=True))
    return f"SELECT {cut} FROM ({sql}\n) AS bounded({', '.join(names)})"  # noqa: S608 - the query itself, in parentheses


def _cut(name: str, kind: Kind, characters: int) -> str:
    match kind:
        case "plain":
            return name
        case "text":
            return f"pg_catalog.left({name}::text, {characters})"
        case "bytes":
            return f"'<blob ' || pg_catalog.octet_length({name}) || ' bytes>'"
        case "nested":
            return f"pg_catalog.left(pg_catalog.to_json({name})::text, {characters})"


def read_cell(value: Any, kind: Kind, characters: int) -> Any:
    """What a cut cell means: a nested value that is whole becomes lists and objects again."""
    if kind != "nested" or not isinstance(value, str) or len(value) > characters:
        return value
    with contextlib.suppress(orjson.JSONDecodeError):
        return orjson.loads(value)
    return value
