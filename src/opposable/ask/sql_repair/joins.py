"""Adds joins that a column needs and removes joins that add nothing."""

from collections.abc import Collection
from typing import Any

from opposable.ask.sql_repair import messages
from opposable.ask.sql_repair.sql_tree import (
    RepairedSql,
    convert_to_left_join,
    drop_join,
    find_columns_in_select,
    find_foreign_keys,
    find_in_select,
    find_keys_between,
    find_selects,
    get_source_identifier,
    get_sources,
    parse_sql,
    repair_each_select,
    resolve_source_tables,
)
from opposable.domain.text_normalization import (
    extract_index_words,
    has_cjk,
    normalize_text,
    singularize,
    split_identifier,
)
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import Column, DatabaseSchema, Table, quote_name, quote_table_path

LocatedValue = tuple[str, str, str]
"""The full name of a table, the case-folded name of a column, and a value of that column."""


def add_needed_joins(sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """Join a table for each column that no source has, if one foreign key leads to it.

    SQL that cannot be parsed, or that several tables could complete, is unchanged.
    """
    return repair_each_select(sql, dialect, lambda select: _add_needed_joins(select, dialect, schema))


def _add_needed_joins(select: Any, dialect: Dialect, schema: DatabaseSchema) -> list[str]:
    corrections: list[str] = []
    sources = resolve_source_tables(select, schema)
    if sources is None:
        return []
    for column in find_columns_in_select(select):
        if _is_resolved(column, sources, select) or any(table.find_column(column.name) for table in sources.values()):
            continue  # the alias of the column is wrong: repair_names corrects it later
        found = _find_join_paths(column.name, sources, schema)
        if len(found) != 1:
            continue
        alias, own_key, table, other_key = found[0]
        name = next(f"t{n}" for n in range(len(sources) + 1, 99) if f"t{n}" not in sources)
        on = f"{_format_source_name(select, alias, dialect)}.{quote_name(own_key, dialect)} = {name}.{quote_name(other_key, dialect)}"
        select.join(f"{quote_table_path(table, dialect)} AS {name}", on=on, dialect=dialect, copy=False)
        sources[name] = table
        corrections.append(messages.table_joined(table.name, column.name))
        for other in find_columns_in_select(select):
            if other.name.casefold() == column.name.casefold() and not _is_resolved(other, sources, select):
                other.set("table", _make_identifier(name))
        column.set("table", _make_identifier(name))
    return corrections


def drop_key_only_joins(sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """Drop joins of tables whose key is the only used column, and use the foreign key instead.

    Every row with the key matches exactly one row there, so only rows with a dangling key are added.
    """
    return repair_each_select(sql, dialect, lambda select: _drop_key_only_joins(select, schema))


def _drop_key_only_joins(select: Any, schema: DatabaseSchema) -> list[str]:
    corrections: list[str] = []
    sources = resolve_source_tables(select, schema)
    for join in list(select.args.get("joins") or ()) if sources else ():
        spare = _find_replaceable_key(join, select, sources or {})
        if spare is None:
            continue
        alias, equal_column = spare
        for column in find_columns_in_select(select):
            if column.table.casefold() == alias:
                column.set("this", equal_column.this.copy())
                column.set("table", equal_column.args["table"].copy())
        drop_join(select, join)
        corrections.append(messages.part_removed(join.this.name))
    return corrections


def drop_unmentioned_joins(
    sql: str, question: str, dialect: Dialect, schema: DatabaseSchema, located_values: Collection[LocatedValue] = ()
) -> RepairedSql:
    """Drop joins of tables that the question does not mention and the query does not use.

    Such a join only multiplies or drops rows. A condition on a value moves to another source that has the value in a
    column of the same name. Names or comments are compared with a question in the same script only.

    Args:
        sql: The query.
        question: The question that the query answers.
        dialect: The SQL dialect.
        schema: The schema of the database.
        located_values: The columns of other sources that contain a value of the query.
    """
    question_words = {singularize(word) for word in extract_index_words(normalize_text(question))}

    def repair_select(select: Any) -> list[str]:
        corrections: list[str] = []
        sources = resolve_source_tables(select, schema)
        for join in list(reversed(select.args.get("joins") or ())) if sources else ():
            table = (sources or {})[join.this.alias_or_name.casefold()]
            if (
                join.side
                or _counts_rows(select)
                or not _is_in_question_script(table, question)
                or question_words & set(_get_table_words(table))
            ):
                continue
            if _detach_unused_table(join, select, sources or {}, located_values):
                drop_join(select, join)
                corrections.append(messages.part_removed(join.this.name))
        return corrections

    return repair_each_select(sql, dialect, repair_select)


def _counts_rows(select: Any) -> bool:
    """Return whether the SELECT counts rows; a joined table may be what it counts."""
    from sqlglot import exp

    return any(not isinstance(one.this, exp.Distinct) for one in find_in_select(select, exp.Count))


def _get_table_words(table: Table) -> list[str]:
    """Return the words of a table's name and comment."""
    return [*split_identifier(table.name), *split_identifier(table.comment or "")]


def _is_in_question_script(table: Table, question: str) -> bool:
    """Return whether the question and the table name use the same script."""
    return has_cjk(table.name + (table.comment or "")) if has_cjk(question) else not has_cjk(table.name)


def _detach_unused_table(
    join: Any, select: Any, sources: dict[str, Table], located_values: Collection[LocatedValue]
) -> bool:
    """Move the conditions on a joined table to another source; return whether it is then unused."""
    from sqlglot import exp

    alias = join.this.alias_or_name.casefold()
    within = set(map(id, join.args["on"].find_all(exp.Column))) if join.args.get("on") else set()
    columns = [column for column in select.find_all(exp.Column) if column.table.casefold() in (alias, "")]
    used = [column for column in columns if id(column) not in within]
    moves: list[tuple[Any, str]] = []
    for column in used:
        sought = column.parent.expression.name if isinstance(column.parent, exp.EQ) else ""
        having = [
            other
            for other, table in sources.items()
            if other != alias and (table.full_name, column.name.casefold(), sought) in located_values
        ]
        if not column.table or column.find_ancestor(exp.Where) is None or len(having) != 1:
            return False
        moves.append((column, having[0]))
    for column, other in moves:
        column.set("table", _get_identifier(select, other))
    return bool(within)


def _get_identifier(select: Any, alias: str) -> Any:
    return get_source_identifier(
        next(item for item in get_sources(select) if item.alias_or_name.casefold() == alias)
    ).copy()


def convert_to_outer_joins(sql: str, dialect: Dialect) -> RepairedSql:
    """Use LEFT JOIN where a condition searches rows without a match (`IS NULL` on its column)."""
    return repair_each_select(sql, dialect, _convert_to_outer_joins)


def _convert_to_outer_joins(select: Any) -> list[str]:
    from sqlglot import exp

    corrections: list[str] = []
    where, joined = select.args.get("where"), select.args.get("joins") or []
    missing = {
        node.this.table.casefold()
        for node in (where.find_all(exp.Is) if where else ())
        if isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Null)
    }
    start = select.args["from_"].this.alias_or_name.casefold() if joined and select.args.get("from_") else ""
    shown = {column.table.casefold() for one in select.selects for column in one.find_all(exp.Column)}
    if len(joined) == 1 and start in missing - shown:
        first, second = select.args["from_"].this.copy(), joined[0].this.copy()
        select.args["from_"].set("this", second)
        joined[0].set("this", first)
    for join in joined:
        inner = not join.side and join.kind in ("", "INNER")
        if inner and join.args.get("on") is not None and join.this.alias_or_name.casefold() in missing:
            corrections.append(convert_to_left_join(join))
    return corrections


def drop_self_joins(sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """Drop a join of a table to itself by its own key, which finds the same row again."""
    return repair_each_select(sql, dialect, lambda select: _drop_self_joins(select, schema))


def _drop_self_joins(select: Any, schema: DatabaseSchema) -> list[str]:
    from sqlglot import exp

    corrections: list[str] = []
    sources = resolve_source_tables(select, schema) or {}
    for join in list(select.args.get("joins") or ()) if sources else ():
        on, alias = join.args.get("on"), join.this.alias_or_name.casefold()
        sides = [on.this, on.expression] if isinstance(on, exp.EQ) else []
        if len(sides) < 2 or not all(isinstance(side, exp.Column) for side in sides) or sides[0].name != sides[1].name:
            continue
        other = next((side.table.casefold() for side in sides if side.table.casefold() != alias), "")
        table, key = sources.get(other), sources[alias].find_column(sides[0].name)
        if (
            table is None
            or table.full_name != sources[alias].full_name
            or key is None
            or not _is_sole_primary_key(key, table)
        ):
            continue
        drop_join(select, join)
        for column in select.find_all(exp.Column):
            if column.table.casefold() == alias:
                column.set("table", _get_identifier(select, other))
        corrections.append(messages.part_removed(join.this.alias_or_name))
    return corrections


def drop_sibling_joins(sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """Drop a join by a foreign key that both tables share, if one table has all used columns.

    Such a join pairs every row of one table with every row of the other that has the same parent.
    """
    return repair_each_select(sql, dialect, lambda select: _drop_sibling_join(select, schema))


def _drop_sibling_join(select: Any, schema: DatabaseSchema) -> list[str]:
    corrections: list[str] = []
    sources = resolve_source_tables(select, schema) or {}
    first = select.args.get("from_")
    join = (select.args.get("joins") or [None])[0]
    pair = _find_shared_parent(join, sources) if first is not None and join is not None and sources else None
    if pair is None:
        return []
    start = first.this.alias_or_name.casefold()  # is equal_column when either table could be dropped
    for alias, other in sorted((pair, pair[::-1]), key=lambda way: way[0] == start):
        used = [column for column in find_columns_in_select(select) if column.table.casefold() == alias]
        if all(sources[other].find_column(column.name) for column in used):
            for column in used:
                column.set("table", _get_identifier(select, other))
            if alias == start:
                first.set("this", join.this.copy())
            drop_join(select, join)
            corrections.append(messages.part_removed(sources[alias].name))
            break
    return corrections


def _find_shared_parent(join: Any, sources: dict[str, Table]) -> tuple[str, str] | None:
    """Return the aliases of a join whose two columns refer to the same column of a third table."""
    from sqlglot import exp

    on = join.args.get("on")
    sides = [on.this, on.expression] if isinstance(on, exp.EQ) and not join.side else []
    if not sides or not all(isinstance(side, exp.Column) and side.table.casefold() in sources for side in sides):
        return None
    found = [sources[side.table.casefold()].find_column(side.name) for side in sides]
    parents = {column.references.casefold() if column is not None and column.references else "" for column in found}
    return (sides[0].table.casefold(), sides[1].table.casefold()) if len(parents) == 1 and "" not in parents else None


def _is_sole_primary_key(key: Column, table: Table) -> bool:
    """Return whether the column alone is the primary key."""
    return key.primary_key and sum(column.primary_key for column in table.columns) == 1


def find_self_comparison(sql: str, dialect: Dialect) -> str:
    """Return the join condition that compares a column with itself, or "".

    A wrong correction of a name can produce such a condition.
    """
    from sqlglot import exp

    tree = parse_sql(sql, dialect)
    joins = tree.find_all(exp.Join) if tree is not None else ()
    equals = [one for join in joins if join.args.get("on") for one in join.args["on"].find_all(exp.EQ)]
    return next((one.sql() for one in equals if isinstance(one.this, exp.Column) and one.this == one.expression), "")


def drop_emptied_joins(sql: str, original_sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """Drop joins of tables that only had columns whose names were corrected to other tables.

    The key of such a table is replaced by the column it joins to. Joins of aggregates stay, since they select the rows.

    Args:
        sql: The query with corrected names.
        original_sql: The query before the correction.
        dialect: The SQL dialect.
        schema: The schema of the database.
    """
    from sqlglot import exp

    tree, old = parse_sql(sql, dialect), parse_sql(original_sql, dialect)
    if tree is None or old is None:
        return sql, ()
    used = [
        (column.table.casefold(), column.name)
        for column in old.find_all(exp.Column)
        if not column.find_ancestor(exp.Join)
    ]
    corrections: list[str] = []
    for select in find_selects(tree):
        sources = resolve_source_tables(select, schema) if not find_in_select(select, exp.AggFunc) else None
        for join in list(select.args.get("joins") or ()) if sources else ():
            alias = join.this.alias_or_name.casefold()
            lacked = any(name == alias and not (sources or {})[alias].find_column(column) for name, column in used)
            if lacked and not join.side and _replace_key_uses(join, select):
                drop_join(select, join)
                corrections.append(messages.part_removed(join.this.name))
    return (tree.sql(dialect=dialect), tuple(corrections)) if corrections else (sql, ())


def _replace_key_uses(join: Any, select: Any) -> bool:
    """Replace the key of a joined table by the column it joins to; return whether nothing else is used."""
    from sqlglot import exp

    on, alias = join.args.get("on"), join.this.alias_or_name.casefold()
    sides = [on.this, on.expression] if isinstance(on, exp.EQ) else []
    key = next((side for side in sides if side.table.casefold() == alias), None)
    other = next((side for side in sides if side.table.casefold() != alias), None)
    within = set(map(id, on.find_all(exp.Column))) if on is not None else set()
    columns = [
        one for one in select.find_all(exp.Column) if one.table.casefold() in (alias, "") and id(one) not in within
    ]
    if (
        key is None
        or other is None
        or any(not one.table or one.name.casefold() != key.name.casefold() for one in columns)
    ):
        return False
    for column in columns:
        column.replace(other.copy())
    return True


def _make_identifier(name: str) -> Any:
    from sqlglot import exp

    return exp.to_identifier(name)


def _format_source_name(select: Any, alias: str, dialect: Dialect) -> str:
    """Return the name of a source as the SELECT writes it, with quotes and case."""
    return str(_get_identifier(select, alias).sql(dialect=dialect))


def _is_resolved(column: Any, sources: dict[str, Table], select: Any) -> bool:
    """Return whether a column belongs to a source, is an alias, or cannot be resolved here."""
    if type(column.this).__name__ == "Star":
        return True
    if column.table:
        table = sources.get(column.table.casefold())
        return table is None or table.find_column(column.name) is not None
    if any(table.find_column(column.name) for table in sources.values()):
        return True
    nested = select.parent_select is not None
    return nested or any(one.alias.casefold() == column.name.casefold() for one in select.selects)


def _find_join_paths(
    column: str, sources: dict[str, Table], schema: DatabaseSchema
) -> list[tuple[str, str, Table, str]]:
    """Return tables with the column that a foreign key reaches: alias, key, table, its key."""
    found: dict[str, tuple[str, str, Table, str]] = {}
    read = {table.full_name for table in sources.values()}
    for table in schema.tables:
        if table.full_name in read or table.find_column(column) is None:
            continue
        for alias, source in sources.items():
            for key, other in find_keys_between(source, table):
                found.setdefault(table.full_name, (alias, key, table, other))
    return list(found.values())


def _find_replaceable_key(join: Any, select: Any, sources: dict[str, Table]) -> tuple[str, Any] | None:
    """Return the alias of a joined table whose key alone is used, and the equal column."""
    from sqlglot import exp

    on = join.args.get("on")
    if join.side or join.kind not in ("", "INNER") or not isinstance(on, exp.EQ):
        return None
    alias = join.this.alias_or_name.casefold()
    sides = [on.this, on.expression]
    if not all(isinstance(side, exp.Column) and side.table for side in sides):
        return None
    inner = next((side for side in sides if side.table.casefold() == alias), None)
    equal_column = next((side for side in sides if side.table.casefold() != alias), None)
    if inner is None or equal_column is None or equal_column.table.casefold() not in sources:
        return None
    keys = [
        (a.casefold(), b.casefold())
        for a, b in find_foreign_keys(sources[equal_column.table.casefold()], sources[alias])
    ]
    if (equal_column.name.casefold(), inner.name.casefold()) not in keys:
        return None
    columns = select.find_all(exp.Column)
    uses = [column for column in columns if column.table.casefold() == alias or not column.table]
    stars = [star for star in select.find_all(exp.Star) if not isinstance(star.parent, exp.Count)]
    if stars or any(column.name.casefold() != inner.name.casefold() for column in uses):
        return None
    return alias, equal_column
