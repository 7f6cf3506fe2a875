"""SQL as a tree, and the parts of one SELECT in it."""

from collections.abc import Callable, Sequence
from typing import Any

from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import Schema, Table

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


def in_each_select(sql: str, dialect: Dialect, mend: Callable[[Any], Sequence[str]]) -> Mended:
    """The SQL with each SELECT mended by `mend`, which says what it changed; as it was where it cannot be read."""
    tree = parsed(sql, dialect)
    told = [line for select in selects(tree) for line in mend(select)] if tree is not None else []
    return (tree.sql(dialect=dialect), tuple(told)) if told else (sql, ())


def own(select: Any, *kinds: Any) -> list[Any]:
    """The nodes of these kinds that belong to the SELECT itself and not to one within it."""
    from sqlglot import exp

    return [node for node in select.find_all(*kinds) if node.find_ancestor(exp.Select) is select]


def own_columns(select: Any) -> list[Any]:
    """The columns that belong to the SELECT itself and not to one within it."""
    from sqlglot import exp

    return own(select, exp.Column)


def read_by(select: Any) -> list[Any]:
    """What a SELECT reads, as it is written: in its FROM, then in its joins."""
    from_ = select.args.get("from_")
    return [*([from_.this] if from_ else []), *(join.this for join in select.args.get("joins") or ())]


def goes_by(item: Any) -> Any:
    """The identifier that something read goes by: its alias, else its name."""
    return item.args["alias"].this if item.args.get("alias") else item.this


def plain_tables(select: Any, schema: Schema) -> dict[str, Table] | None:
    """The tables a SELECT reads by their aliases; None where it reads anything else."""
    found: dict[str, Table] = {}
    for item in read_by(select):
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


def in_where(select: Any) -> list[Any]:
    """The conditions of a SELECT's WHERE."""
    where = select.args.get("where")
    return conjuncts(where.this) if where is not None else []


def set_where(select: Any, conditions: Sequence[Any]) -> None:
    """Gives a SELECT a WHERE of these conditions, or none."""
    from sqlglot import exp

    select.set("where", exp.Where(this=exp.and_(*conditions, copy=True)) if conditions else None)


def drop_join(select: Any, join: Any) -> None:
    """Takes a join out of a SELECT."""
    select.set("joins", [other for other in select.args["joins"] if other is not join])


def make_outer(join: Any) -> str:
    """Makes a join a LEFT JOIN; what was done, in words."""
    join.set("kind", None)
    join.set("side", "LEFT")
    return f"LEFT JOIN {join.this.name}"


def foreign_keys(source: Table, target: Table) -> list[tuple[str, str]]:
    """The foreign keys of `source` to `target`: its column and the other's."""
    pairs = []
    for column in source.columns:
        if column.references:
            table, _, key = column.references.rpartition(".")
            if table.casefold() in (target.full_name.casefold(), target.name.casefold()):
                pairs.append((column.name, key))
    return pairs


def keys_between(one: Table, other: Table) -> list[tuple[str, str]]:
    """The pairs of columns that foreign keys join the tables by, in either direction."""
    return [*foreign_keys(one, other), *((y, x) for x, y in foreign_keys(other, one))]
