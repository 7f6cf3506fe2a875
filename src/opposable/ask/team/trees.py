"""SQL as a tree, and the parts of one SELECT in it."""

from typing import Any

from opposable.tools.sql.functions import Dialect
from opposable.tools.sql.schema import Schema, Table

Mended = tuple[str, tuple[str, ...]]
"""SQL, and what was changed in it, in words."""


def parsed(sql: str, dialect: Dialect) -> Any:
    """The tree of one statement; None where the SQL cannot be read."""
    import sqlglot

    try:
        return sqlglot.parse_one(sql, dialect=dialect)
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError):
        return None


def selects(tree: Any) -> list[Any]:
    """Every SELECT in the tree."""
    from sqlglot import exp

    return list(tree.find_all(exp.Select))


def own(select: Any, *kinds: Any) -> list[Any]:
    """The nodes of these kinds that belong to the SELECT itself and not to one within it."""
    from sqlglot import exp

    return [node for node in select.find_all(*kinds) if node.find_ancestor(exp.Select) is select]


def own_columns(select: Any) -> list[Any]:
    """The columns that belong to the SELECT itself and not to one within it."""
    from sqlglot import exp

    return own(select, exp.Column)


def plain_tables(select: Any, schema: Schema) -> dict[str, Table] | None:
    """The tables a SELECT reads by their aliases; None where it reads anything else."""
    from_ = select.args.get("from_")
    items = [from_.this] if from_ else []
    items += [join.this for join in select.args.get("joins") or ()]
    found: dict[str, Table] = {}
    for item in items:
        table = schema.find_table(item.name, item.db) if type(item).__name__ == "Table" else None
        if table is None:
            return None
        found[item.alias_or_name.casefold()] = table
    return found or None


def conjuncts(condition: Any) -> list[Any]:
    """The conditions that AND joins."""
    from sqlglot import exp

    if isinstance(condition, exp.Paren):
        return conjuncts(condition.this)
    if isinstance(condition, exp.And):
        return [*conjuncts(condition.this), *conjuncts(condition.expression)]
    return [condition]


def foreign_keys(source: Table, target: Table) -> list[tuple[str, str]]:
    """The foreign keys of `source` to `target`: its column and the other's."""
    pairs = []
    for column in source.columns:
        if column.references:
            table, _, key = column.references.rpartition(".")
            if table.casefold() in (target.full_name.casefold(), target.name.casefold()):
                pairs.append((column.name, key))
    return pairs
