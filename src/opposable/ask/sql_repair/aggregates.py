"""Repairs aggregates: a missing GROUP BY, a total in place of a row, an aggregate in WHERE."""

from typing import Any

from opposable.ask.sql_repair import messages
from opposable.ask.sql_repair.result_shape import asks_for_each, asks_for_one_number
from opposable.ask.sql_repair.sql_tree import (
    RepairedSql,
    find_in_select,
    find_selects,
    get_where_conditions,
    parse_sql,
    set_where,
    split_conjuncts,
)
from opposable.sql.function_allowlist import Dialect


def repair_aggregates(sql: str, question: str, dialect: Dialect) -> RepairedSql:
    """Repair the aggregates of every SELECT.

    Columns selected with COUNT, SUM or AVG are added to GROUP BY, or removed if the question asks for one number.
    A column selected with MAX or MIN selects the row with that value, unless the question asks for each. Aggregates in
    WHERE move to HAVING, or to a subquery if a column is compared with one. SQL that cannot be parsed is unchanged.
    """
    tree = parse_sql(sql, dialect)
    if tree is None:
        return sql, ()
    corrections: list[str] = []
    folded = _merge_union_branches(tree)
    if folded is not None:
        tree, corrections = folded, [messages.union_merged()]
    for select in find_selects(tree):
        corrections += [*_move_aggregates_out_of_where(select), *_drop_duplicate_bounds(select)]
        corrections += _select_extreme_row(select, question, dialect) or _add_group_by(
            select, question, dialect, select is tree
        )
    return (tree.sql(dialect=dialect), tuple(corrections)) if corrections else (sql, ())


def _merge_union_branches(tree: Any) -> Any:
    """Merge a UNION of one SELECT per value into one SELECT with GROUP BY."""
    from sqlglot import exp

    sides: list[Any] = []
    rest = tree
    while isinstance(rest, exp.Union):
        sides.insert(0, rest.expression)
        rest = rest.this
    sides.insert(0, rest)
    if len(sides) < 2 or any(tree.args.get(part) for part in ("order", "limit")):
        return None
    if not all(
        isinstance(side, exp.Select) and side.args.get("where") and not side.args.get("group") for side in sides
    ):
        return None
    if not all(isinstance(one.unalias(), exp.AggFunc) for side in sides for one in side.selects):
        return None
    first = get_where_conditions(sides[0])
    for at, condition in enumerate(first):
        others = [_find_differing_value(sides[0], side, at) for side in sides[1:]]
        if isinstance(condition, exp.EQ) and isinstance(condition.expression, exp.Literal) and None not in others:
            made = sides[0].copy()
            every = [condition.expression, *others]
            conditions = get_where_conditions(made)
            conditions[at] = exp.In(this=condition.this.copy(), expressions=[one.copy() for one in every])
            set_where(made, conditions)
            numbers = {one.unalias().sql(): one for one in made.selects}
            made.set("expressions", [condition.this.copy(), *numbers.values()])
            made.set("group", exp.Group(expressions=[condition.this.copy()]))
            return made
    return None


def _find_differing_value(first: Any, other: Any, index: int) -> Any:
    """Return the value of the other SELECT's condition if nothing else differs, else None."""
    one, two = first.copy(), other.copy()
    mine, theirs = get_where_conditions(one), get_where_conditions(two)
    if len(mine) != len(theirs) or type(mine[index]) is not type(theirs[index]):
        return None
    value = theirs[index].expression.copy()
    theirs[index].set("expression", mine[index].expression.copy())
    same = [item.unalias() for item in one.selects] == [item.unalias() for item in two.selects]
    for select in (one, two):
        select.set("expressions", [])
    return value if same and one == two else None


def _move_aggregates_out_of_where(select: Any) -> list[str]:
    """Move aggregates out of WHERE, where engines reject them."""
    from sqlglot import exp

    where = select.args.get("where")
    if where is None or not _find_aggregates(where, select):
        return []
    remaining, having = [], []
    corrections: list[str] = []
    for condition in get_where_conditions(select):
        found = _find_aggregates(condition, select)
        plain = [column for column in _find_columns(condition, select) if not _is_aggregated(column, select)]
        if not found:
            remaining.append(condition)
        elif plain and len(found) == 1:
            inner = exp.select(found[0].copy()).from_(select.args["from_"].this.copy())
            inner.set("joins", [join.copy() for join in select.args.get("joins") or ()])
            corrections.append(messages.aggregate_of_all_rows(found[0].sql()))
            found[0].replace(exp.Subquery(this=inner))
            remaining.append(condition)
        else:
            having.append(condition)
            corrections.append(f"HAVING {condition.sql()}")
    set_where(select, remaining)
    already = select.args.get("having")
    every = [*(split_conjuncts(already.this) if already else ()), *having]
    select.set("having", exp.Having(this=exp.and_(*every, copy=True)) if every else None)
    return corrections


def _drop_duplicate_bounds(select: Any) -> list[str]:
    """Drop a bound from WHERE if HAVING sets it for the aggregate of the same column."""
    from sqlglot import exp

    having, conditions = select.args.get("having"), get_where_conditions(select)
    bounds = []
    for condition in split_conjuncts(having.this) if conditions and having is not None else ():
        if isinstance(condition, exp.Predicate) and isinstance(condition.this, exp.Avg | exp.Sum):
            plain = condition.copy()
            plain.set("this", condition.this.this.copy())
            bounds.append(plain)
    remaining = [one for one in conditions if one not in bounds]
    if len(remaining) == len(conditions):
        return []
    set_where(select, remaining)
    return [messages.aggregate_condition_only(bounds[0].sql())]


def _select_extreme_row(select: Any, question: str, dialect: Dialect) -> list[str]:
    """Select the row with the MAX or MIN instead of an ungrouped column; SQLite does so itself."""
    from sqlglot import exp

    bare, among = _find_plain_items(select), _find_aggregates(select, select)
    if dialect == "sqlite" or not bare or len(among) != 1 or select.args.get("group") or asks_for_each(question):
        return []
    one, order = among[0], select.args.get("order")
    if not isinstance(one, exp.Max | exp.Min) or select.args.get("having"):
        return []
    key = one.this.copy()
    corrections = messages.extreme_row_selected(one.sql())
    one.replace(key)
    if order is not None:
        return [corrections]
    select.set("order", exp.Order(expressions=[exp.Ordered(this=key.copy(), desc=isinstance(one, exp.Max))]))
    select.set("limit", exp.Limit(expression=exp.Literal.number(1)))
    return [corrections]


def _add_group_by(select: Any, question: str, dialect: Dialect, is_outermost: bool) -> list[str]:
    """Group by the columns that are selected with aggregates."""
    from sqlglot import exp

    among, bare = _find_aggregates(select, select), _find_plain_items(select)
    if not among or not bare or any(item.find(exp.Star) for item in bare):
        return []
    group = select.args.get("group")
    if group is not None:
        keys = {key.sql() for key in group.expressions}
        named = {one.alias for one in select.selects if one.alias}
        missing = [item for item in bare if item.sql() not in keys and item.alias_or_name not in keys]
        if dialect == "sqlite" or not missing or not all(isinstance(key, exp.Column) for key in group.expressions):
            return []
        if any(key in named for key in keys):
            return []
        group.set("expressions", [*group.expressions, *(item.unalias().copy() for item in missing)])
        return [messages.group_by_extended(", ".join(item.unalias().sql() for item in missing))]
    counted = [item for item in select.selects if item not in bare]
    if is_outermost and counted and asks_for_one_number(question) and not select.args.get("having"):
        select.set("expressions", counted)
        return [messages.part_removed(", ".join(item.sql() for item in bare))]
    if all(isinstance(one, exp.Max | exp.Min) for one in among) and not asks_for_each(question):
        return []
    select.set("group", exp.Group(expressions=[item.unalias().copy() for item in bare]))
    return [f"GROUP BY {', '.join(item.unalias().sql() for item in bare)}"]


def _find_columns(node: Any, select: Any) -> list[Any]:
    """Return the columns under `node` that belong to the SELECT."""
    from sqlglot import exp

    return [column for column in node.find_all(exp.Column) if column.find_ancestor(exp.Select) is select]


def _find_aggregates(node: Any, select: Any) -> list[Any]:
    """Return the SELECT's own aggregates under `node`, without window functions."""
    from sqlglot import exp

    found = [one for one in find_in_select(select, exp.AggFunc) if not one.expressions]  # max(a, b) is not an aggregate
    over = (exp.Window, exp.Select)
    return [
        one
        for one in found
        if not isinstance(one.find_ancestor(*over), exp.Window) and (node is select or _is_within(one, node))
    ]


def _is_within(descendant: Any, ancestor: Any) -> bool:
    while descendant is not None and descendant is not ancestor:
        descendant = descendant.parent
    return descendant is ancestor


def _is_aggregated(column: Any, select: Any) -> bool:
    from sqlglot import exp

    outer = column.find_ancestor(exp.AggFunc, exp.Select)
    return isinstance(outer, exp.AggFunc)


def _find_plain_items(select: Any) -> list[Any]:
    """Return the selected items with columns and without aggregates, windows or subqueries."""
    from sqlglot import exp

    items = [one for one in select.selects if not one.find(exp.AggFunc, exp.Window, exp.Select)]
    return [one for one in items if one.find(exp.Column, exp.Star)]
