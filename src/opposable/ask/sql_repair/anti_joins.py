"""Repairs searches for rows without a match: IS NULL after an inner join, or a count of 0."""

from typing import Any

from opposable.ask.sql_repair.sql_tree import (
    RepairedSql,
    convert_to_left_join,
    get_where_conditions,
    repair_each_select,
    resolve_source_tables,
    set_where,
)
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import DatabaseSchema


def repair_anti_joins(sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """Convert inner joins that search for rows without a match.

    `IS NULL` of a column that a joined table lacks, and a count of 0 of an inner join, have no other meaning.
    """
    return repair_each_select(
        sql, dialect, lambda select: [*_convert_to_left_joins(select, schema), *_convert_to_not_exists(select)]
    )


def _convert_to_left_joins(select: Any, schema: DatabaseSchema) -> list[str]:
    """Use LEFT JOIN and the table's key for `IS NULL` of a column that the table lacks."""
    from sqlglot import exp

    sources, where = resolve_source_tables(select, schema), select.args.get("where")
    joins = {join.this.alias_or_name.casefold(): join for join in select.args.get("joins") or ()}
    corrections: list[str] = []
    for node in list(where.find_all(exp.Is)) if where and sources else ():
        column = node.this if isinstance(node.expression, exp.Null) and isinstance(node.this, exp.Column) else None
        alias = column.table.casefold() if column is not None else ""
        join = joins.get(alias)
        if column is None or join is None or join.side or not sources or sources[alias].find_column(column.name):
            continue
        keys = [one for one in (join.args.get("on") or join).find_all(exp.Column) if one.table.casefold() == alias]
        if keys:
            column.replace(keys[0].copy())
            corrections.append(convert_to_left_join(join))
    return corrections


def _convert_to_not_exists(select: Any) -> list[str]:
    """Use NOT EXISTS for `HAVING COUNT(…) = 0` over joined tables of which nothing is selected."""
    from sqlglot import exp

    having, joins = select.args.get("having"), select.args.get("joins") or []
    counted = having.this if having is not None else None
    if not joins or not isinstance(counted, exp.EQ) or not isinstance(counted.this, exp.Count):
        return []
    if counted.expression.name != "0" or any(join.args.get("on") is None for join in joins):
        return []
    first = select.args["from_"].this.alias_or_name.casefold()
    if any(column.table.casefold() != first for one in select.selects for column in one.find_all(exp.Column)):
        return []
    conditions = get_where_conditions(select)
    own = [one for one in conditions if all(column.table.casefold() == first for column in one.find_all(exp.Column))]
    inner = [one.copy() for one in conditions if one not in own]
    rest = exp.select("1").from_(joins[0].this.copy())
    rest.set("joins", [_copy_as_inner_join(join) for join in joins[1:]])
    rest.set("where", exp.Where(this=exp.and_(joins[0].args["on"].copy(), *inner)))
    select.set("joins", None)
    select.set("having", None)
    select.set("group", None)
    set_where(select, [*own, exp.Not(this=exp.Exists(this=rest))])
    return ["COUNT = 0 → NOT EXISTS"]


def _copy_as_inner_join(join: Any) -> Any:
    copied = join.copy()
    copied.set("side", None)
    return copied
