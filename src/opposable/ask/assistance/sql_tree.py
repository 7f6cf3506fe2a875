"""Parses SQL into a tree and finds the parts of a SELECT."""

from collections.abc import Callable, Sequence
from typing import Any

from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import DatabaseSchema, Table

RepairedSql = tuple[str, tuple[str, ...]]
"""SQL and the corrections made in it."""


def parse_sql(sql: str, dialect: Dialect) -> Any:
    """Return the tree of one statement, or None if the SQL cannot be parsed."""
    import sqlglot

    try:
        return sqlglot.parse_one(sql, dialect=dialect)
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError):
        return None


def find_selects(tree: Any) -> list[Any]:
    """Return every SELECT in the tree."""
    from sqlglot import exp

    return list(tree.find_all(exp.Select))


def repair_each_select(sql: str, dialect: Dialect, repair: Callable[[Any], Sequence[str]]) -> RepairedSql:
    """Apply `repair` to each SELECT; `repair` returns its corrections."""
    tree = parse_sql(sql, dialect)
    corrections = [line for select in find_selects(tree) for line in repair(select)] if tree is not None else []
    return (tree.sql(dialect=dialect), tuple(corrections)) if corrections else (sql, ())


def find_in_select(select: Any, *kinds: Any) -> list[Any]:
    """Return the nodes of these types that belong to the SELECT itself, not to a subquery."""
    from sqlglot import exp

    return [node for node in select.find_all(*kinds) if node.find_ancestor(exp.Select) is select]


def find_columns_in_select(select: Any) -> list[Any]:
    """Return the columns that belong to the SELECT itself, not to a subquery."""
    from sqlglot import exp

    return find_in_select(select, exp.Column)


def get_sources(select: Any) -> list[Any]:
    """Return the sources of a SELECT: of FROM, then of the joins."""
    from_ = select.args.get("from_")
    return [*([from_.this] if from_ else []), *(join.this for join in select.args.get("joins") or ())]


def get_source_identifier(source: Any) -> Any:
    """Return the identifier of a source: its alias, else its name."""
    return source.args["alias"].this if source.args.get("alias") else source.this


def resolve_source_tables(select: Any, schema: DatabaseSchema) -> dict[str, Table] | None:
    """Return the tables of a SELECT by alias; None if a source is not a table."""
    found: dict[str, Table] = {}
    for item in get_sources(select):
        table = schema.find_table(item.name, item.db) if type(item).__name__ == "Table" else None
        if table is None:
            return None
        found[item.alias_or_name.casefold()] = table
    return found or None


def find_foreign_keys(source: Table, target: Table) -> list[tuple[str, str]]:
    """Return the foreign keys of `source` to `target` as pairs of column names."""
    pairs = []
    for column in source.columns:
        if column.references:
            table, _, key = column.references.rpartition(".")
            if table.casefold() in (target.full_name.casefold(), target.name.casefold()):
                pairs.append((column.name, key))
    return pairs


def find_keys_between(first: Table, second: Table) -> list[tuple[str, str]]:
    """Return the pairs of columns that foreign keys connect, in either direction."""
    return [*find_foreign_keys(first, second), *((y, x) for x, y in find_foreign_keys(second, first))]
