"""SQL as a tree, and the parts of one SELECT in it."""

from collections.abc import Callable, Sequence
from typing import Any

from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import DatabaseSchema, Table

RepairedSql = tuple[str, tuple[str, ...]]
"""SQL, and what was changed in it, in words."""


def parse_sql(sql: str, dialect: Dialect) -> Any:
    """The tree of one statement; None where the SQL cannot be read."""
    import sqlglot

    try:
        return sqlglot.parse_one(sql, dialect=dialect)
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError):
        return None


def find_selects(tree: Any) -> list[Any]:
    """Every SELECT in the tree."""
    from sqlglot import exp

    return list(tree.find_all(exp.Select))


def repair_each_select(sql: str, dialect: Dialect, repair: Callable[[Any], Sequence[str]]) -> RepairedSql:
    """The SQL with each SELECT mended by `mend`, which says what it changed; as it was where it cannot be read."""
    tree = parse_sql(sql, dialect)
    told = [line for select in find_selects(tree) for line in repair(select)] if tree is not None else []
    return (tree.sql(dialect=dialect), tuple(told)) if told else (sql, ())


def find_in_select(select: Any, *kinds: Any) -> list[Any]:
    """The nodes of these kinds that belong to the SELECT itself and not to one within it."""
    from sqlglot import exp

    return [node for node in select.find_all(*kinds) if node.find_ancestor(exp.Select) is select]


def find_columns_in_select(select: Any) -> list[Any]:
    """The columns that belong to the SELECT itself and not to one within it."""
    from sqlglot import exp

    return find_in_select(select, exp.Column)


def get_sources(select: Any) -> list[Any]:
    """What a SELECT reads, as it is written: in its FROM, then in its joins."""
    from_ = select.args.get("from_")
    return [*([from_.this] if from_ else []), *(join.this for join in select.args.get("joins") or ())]


def get_source_identifier(source: Any) -> Any:
    """The identifier that something read goes by: its alias, else its name."""
    return source.args["alias"].this if source.args.get("alias") else source.this


def resolve_source_tables(select: Any, schema: DatabaseSchema) -> dict[str, Table] | None:
    """The tables a SELECT reads by their aliases; None where it reads anything else."""
    found: dict[str, Table] = {}
    for item in get_sources(select):
        table = schema.find_table(item.name, item.db) if type(item).__name__ == "Table" else None
        if table is None:
            return None
        found[item.alias_or_name.casefold()] = table
    return found or None


def split_conjuncts(condition: Any) -> list[Any]:
    """The conditions that AND joins."""
    from sqlglot import exp

    if isinstance(condition, exp.Paren):
        return split_conjuncts(condition.this)
    if isinstance(condition, exp.And):
        return [*split_conjuncts(condition.this), *split_conjuncts(condition.expression)]
    return [condition]


def get_where_conditions(select: Any) -> list[Any]:
    """The conditions of a SELECT's WHERE."""
    where = select.args.get("where")
    return split_conjuncts(where.this) if where is not None else []


def set_where(select: Any, conditions: Sequence[Any]) -> None:
    """Gives a SELECT a WHERE of these conditions, or none."""
    from sqlglot import exp

    select.set("where", exp.Where(this=exp.and_(*conditions, copy=True)) if conditions else None)


def drop_join(select: Any, join: Any) -> None:
    """Takes a join out of a SELECT."""
    select.set("joins", [other for other in select.args["joins"] if other is not join])


def convert_to_left_join(join: Any) -> str:
    """Makes a join a LEFT JOIN; what was done, in words."""
    join.set("kind", None)
    join.set("side", "LEFT")
    return f"LEFT JOIN {join.this.name}"


def find_foreign_keys(source: Table, target: Table) -> list[tuple[str, str]]:
    """The foreign keys of `source` to `target`: its column and the other's."""
    pairs = []
    for column in source.columns:
        if column.references:
            table, _, key = column.references.rpartition(".")
            if table.casefold() in (target.full_name.casefold(), target.name.casefold()):
                pairs.append((column.name, key))
    return pairs


def find_keys_between(first: Table, second: Table) -> list[tuple[str, str]]:
    """The pairs of columns that foreign keys join the tables by, in either direction."""
    return [*find_foreign_keys(first, second), *((y, x) for x, y in find_foreign_keys(second, first))]
