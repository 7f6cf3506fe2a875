"""Tables, comments and sizes of a ClickHouse data directory."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from opposable.domain.errors import InvalidArguments, ToolRefused
from opposable.sql.function_allowlist import (
    FUNCTIONS_BY_DIALECT,
    KEYWORDS_BY_DIALECT,
    TABLE_FUNCTIONS_BY_DIALECT,
)
from opposable.sql.schema import Column, DatabaseSchema, Table
from opposable.sql.statement_guard import parse_safe_query, refuse_unlisted_tables

_TABLES_SQL = """
SELECT database, name, engine, comment, total_rows, as_select FROM system.tables
WHERE database NOT IN ('system', 'information_schema', 'INFORMATION_SCHEMA') AND NOT is_temporary
  AND name NOT LIKE '.inner%' ORDER BY database != 'default', database, name
"""
_COLUMNS_SQL = """
SELECT database, table, name, type, is_in_primary_key, comment, default_expression FROM system.columns
WHERE database NOT IN ('system', 'information_schema', 'INFORMATION_SCHEMA') ORDER BY database, table, position
"""
_FUNCTIONS_SQL = "SELECT lower(name) FROM system.functions UNION ALL SELECT lower(name) FROM system.table_functions"
_STORED_ENGINES = frozenset({"Memory", "Log", "StripeLog", "TinyLog"})
"""Engines besides the MergeTree family whose rows are in the directory: others may read files or servers."""
_VIEW_ENGINES = frozenset({"View", "MaterializedView"})


def read_schema(fetch: Callable[[str], list[Any]], check: Callable[[str, frozenset[str]], None]) -> DatabaseSchema:
    """Read the tables of the directory, and the views that read only these, the database `default` first.

    `check` raises `ToolRefused` for SQL that calls functions that are not allowed; its second argument are their names.
    """
    columns: dict[tuple[str, str], list[Any]] = {}
    for database, table, *column in fetch(_COLUMNS_SQL):
        columns.setdefault((database, table), []).append(column)
    allowed = FUNCTIONS_BY_DIALECT["clickhouse"] | TABLE_FUNCTIONS_BY_DIALECT["clickhouse"]
    refused = frozenset(name for (name,) in fetch(_FUNCTIONS_SQL)) - allowed - KEYWORDS_BY_DIALECT["clickhouse"]
    schema = DatabaseSchema((), "default", "clickhouse", refused_functions=refused)
    views: list[tuple[Table, str]] = []
    for database, name, engine, comment, rows, select in fetch(_TABLES_SQL):
        own = columns.get((database, name), [])
        kind = "view" if engine in _VIEW_ENGINES else "table"
        table_columns = tuple(_to_column(*column) for column in own)
        count = int(rows) if rows is not None and kind == "table" else None
        table = Table(name, table_columns, "" if database == "default" else database, kind, comment or None, count)
        if kind == "view":
            views.append((table, select))
        elif engine.endswith("MergeTree") or engine in _STORED_ENGINES:
            computed = [column[-1] for column in own if column[-1]]
            if all(_is_safe(f"SELECT {expression}", schema, check) for expression in computed):
                schema = _add_table(schema, table)
    while trusted := [
        table for table, select in views if _is_safe(select, schema, check) and table not in schema.tables
    ]:
        for table in trusted:
            schema = _add_table(schema, table)
    return schema


def _add_table(schema: DatabaseSchema, table: Table) -> DatabaseSchema:
    return replace(schema, tables=(*schema.tables, table))


def _is_safe(sql: str, schema: DatabaseSchema, check: Callable[[str, frozenset[str]], None]) -> bool:
    """Whether a view, or the expressions of computed columns, read only tables of the schema."""
    try:
        refuse_unlisted_tables(parse_safe_query(sql, "clickhouse", schema), schema)
        check(sql, schema.refused_functions)
    except (InvalidArguments, ToolRefused):
        return False
    return True


def _to_column(name: str, type_: str, is_in_key: int, comment: str, _default: str) -> Column:
    nullable = type_.startswith(("Nullable(", "LowCardinality(Nullable("))
    return Column(name, type_, nullable, bool(is_in_key), comment=comment or None)
