"""Joins put right: a table that a column needs is joined, one that adds nothing is left out."""

from collections.abc import Collection
from typing import Any

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
"""A table's full name, the folded name of a column, and a value that stands in it."""


def add_needed_joins(sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """The SQL with a table joined for each column that no table read has, where one foreign key leads there.

    Unchanged where the SQL cannot be read, or more than one table could be meant.
    """
    return repair_each_select(sql, dialect, lambda select: _add_needed_joins(select, dialect, schema))


def _add_needed_joins(select: Any, dialect: Dialect, schema: DatabaseSchema) -> list[str]:
    told: list[str] = []
    sources = resolve_source_tables(select, schema)
    if sources is None:
        return []
    for column in find_columns_in_select(select):
        if _is_resolved(column, sources, select) or any(table.find_column(column.name) for table in sources.values()):
            continue  # a column of a table read stands under a wrong alias: names are put right later
        found = _find_join_paths(column.name, sources, schema)
        if len(found) != 1:
            continue
        alias, own_key, table, other_key = found[0]
        name = next(f"t{n}" for n in range(len(sources) + 1, 99) if f"t{n}" not in sources)
        on = f"{_format_source_name(select, alias, dialect)}.{quote_name(own_key, dialect)} = {name}.{quote_name(other_key, dialect)}"
        select.join(f"{quote_table_path(table, dialect)} AS {name}", on=on, dialect=dialect, copy=False)
        sources[name] = table
        told.append(f"{table.name} joined for {column.name}")
        for other in find_columns_in_select(select):
            if other.name.casefold() == column.name.casefold() and not _is_resolved(other, sources, select):
                other.set("table", _make_identifier(name))
        column.set("table", _make_identifier(name))
    return told


def drop_key_only_joins(sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """The SQL without tables of which only the key is used that a foreign key of another table holds as well.

    Every row that has the key has just one row there, so nothing is lost but rows whose key leads nowhere.
    """
    return repair_each_select(sql, dialect, lambda select: _drop_key_only_joins(select, schema))


def _drop_key_only_joins(select: Any, schema: DatabaseSchema) -> list[str]:
    told: list[str] = []
    sources = resolve_source_tables(select, schema)
    for join in list(select.args.get("joins") or ()) if sources else ():
        spare = _find_replaceable_key(join, select, sources or {})
        if spare is None:
            continue
        alias, kept = spare
        for column in find_columns_in_select(select):
            if column.table.casefold() == alias:
                column.set("this", kept.this.copy())
                column.set("table", kept.args["table"].copy())
        drop_join(select, join)
        told.append(f"without {join.this.name}")
    return told


def drop_unmentioned_joins(
    sql: str, question: str, dialect: Dialect, schema: DatabaseSchema, located_values: Collection[LocatedValue] = ()
) -> RepairedSql:
    """The SQL without joined tables of which the question says no word, and of which nothing is used.

    Such a join only multiplies rows or drops them. Where only a value is looked for in one, and that stands (`also`) in
    a column called the same of one other table read, it is looked for there. Names, or comments, and question must be
    in one script to be compared.
    """
    asked = {singularize(word) for word in extract_index_words(normalize_text(question))}

    def mend(select: Any) -> list[str]:
        told: list[str] = []
        sources = resolve_source_tables(select, schema)
        for join in list(reversed(select.args.get("joins") or ())) if sources else ():
            table = (sources or {})[join.this.alias_or_name.casefold()]
            if (
                join.side
                or _counts_rows(select)
                or not _is_in_question_script(table, question)
                or asked & set(_get_table_words(table))
            ):
                continue
            if _detach_unused_table(join, select, sources or {}, located_values):
                drop_join(select, join)
                told.append(f"without {join.this.name}")
        return told

    return repair_each_select(sql, dialect, mend)


def _counts_rows(select: Any) -> bool:
    """Whether the SELECT counts rows, of whichever table the column is: a joined table may be there to be counted."""
    from sqlglot import exp

    return any(not isinstance(one.this, exp.Distinct) for one in find_in_select(select, exp.Count))


def _get_table_words(table: Table) -> list[str]:
    """The words a table goes by: its name's and its comment's."""
    return [*split_identifier(table.name), *split_identifier(table.comment or "")]


def _is_in_question_script(table: Table, question: str) -> bool:
    """Whether a question would name the table in the script it is called in."""
    return has_cjk(table.name + (table.comment or "")) if has_cjk(question) else not has_cjk(table.name)


def _detach_unused_table(
    join: Any, select: Any, sources: dict[str, Table], located_values: Collection[LocatedValue]
) -> bool:
    """Whether nothing of a joined table is used, once a value looked for in it is looked for in another table read."""
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
    """The SQL with LEFT JOIN where it looks for rows that have none in a joined table (`IS NULL` on its column)."""
    return repair_each_select(sql, dialect, _convert_to_outer_joins)


def _convert_to_outer_joins(select: Any) -> list[str]:
    from sqlglot import exp

    told: list[str] = []
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
            told.append(convert_to_left_join(join))
    return told


def drop_self_joins(sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """The SQL without a table joined to itself by its own key: that is the same row again."""
    return repair_each_select(sql, dialect, lambda select: _drop_self_joins(select, schema))


def _drop_self_joins(select: Any, schema: DatabaseSchema) -> list[str]:
    from sqlglot import exp

    told: list[str] = []
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
        told.append(f"without {join.this.alias_or_name}")
    return told


def drop_sibling_joins(sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """The SQL without a table joined by what both have of a third, where the other has all of it that is used.

    Such a join brings every row of the one with every row of the other that has the same; that is not meant.
    """
    return repair_each_select(sql, dialect, lambda select: _drop_sibling_join(select, schema))


def _drop_sibling_join(select: Any, schema: DatabaseSchema) -> list[str]:
    told: list[str] = []
    sources = resolve_source_tables(select, schema) or {}
    first = select.args.get("from_")
    join = (select.args.get("joins") or [None])[0]
    pair = _find_shared_parent(join, sources) if first is not None and join is not None and sources else None
    if pair is None:
        return []
    start = first.this.alias_or_name.casefold()  # stays where either could
    for alias, other in sorted((pair, pair[::-1]), key=lambda way: way[0] == start):
        used = [column for column in find_columns_in_select(select) if column.table.casefold() == alias]
        if all(sources[other].find_column(column.name) for column in used):
            for column in used:
                column.set("table", _get_identifier(select, other))
            if alias == start:
                first.set("this", join.this.copy())
            drop_join(select, join)
            told.append(f"without {sources[alias].name}")
            break
    return told


def _find_shared_parent(join: Any, sources: dict[str, Table]) -> tuple[str, str] | None:
    """The aliases that a join holds together by columns that both refer to one column of a third table."""
    from sqlglot import exp

    on = join.args.get("on")
    sides = [on.this, on.expression] if isinstance(on, exp.EQ) and not join.side else []
    if not sides or not all(isinstance(side, exp.Column) and side.table.casefold() in sources for side in sides):
        return None
    found = [sources[side.table.casefold()].find_column(side.name) for side in sides]
    parents = {column.references.casefold() if column is not None and column.references else "" for column in found}
    return (sides[0].table.casefold(), sides[1].table.casefold()) if len(parents) == 1 and "" not in parents else None


def _is_sole_primary_key(key: Column, table: Table) -> bool:
    """Whether the column by itself is the table's key."""
    return key.primary_key and sum(column.primary_key for column in table.columns) == 1


def find_self_comparison(sql: str, dialect: Dialect) -> str:
    """The condition of a join that compares a column with itself, or "": what comes of a name that was put right wrongly."""
    from sqlglot import exp

    tree = parse_sql(sql, dialect)
    joins = tree.find_all(exp.Join) if tree is not None else ()
    equals = [one for join in joins if join.args.get("on") for one in join.args["on"].find_all(exp.EQ)]
    return next((one.sql() for one in equals if isinstance(one.this, exp.Column) and one.this == one.expression), "")


def drop_emptied_joins(sql: str, original_sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """The SQL without joined tables of which `before`, its names not yet put right, used columns that are others' now.

    Their key is the other table's that they are joined by. Where rows are counted or added up the tables stay: they say
    which rows.
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
    told: list[str] = []
    for select in find_selects(tree):
        sources = resolve_source_tables(select, schema) if not find_in_select(select, exp.AggFunc) else None
        for join in list(select.args.get("joins") or ()) if sources else ():
            alias = join.this.alias_or_name.casefold()
            lacked = any(name == alias and not (sources or {})[alias].find_column(column) for name, column in used)
            if lacked and not join.side and _replace_key_uses(join, select):
                drop_join(select, join)
                told.append(f"without {join.this.name}")
    return (tree.sql(dialect=dialect), tuple(told)) if told else (sql, ())


def _replace_key_uses(join: Any, select: Any) -> bool:
    """Whether of a joined table only the key is used, once it stands as the other table's that it is joined by."""
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
    """The name of a table read as the SELECT writes it, quotes and case included."""
    return str(_get_identifier(select, alias).sql(dialect=dialect))


def _is_resolved(column: Any, sources: dict[str, Table], select: Any) -> bool:
    """Whether a column is one of the tables read, a name given in the SELECT, or not ours to judge."""
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
    """The tables that have the column and to which a foreign key leads from a table read: alias, key, table, its key."""
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
    """The alias of a joined table of which only its key is used, and the column that holds the same."""
    from sqlglot import exp

    on = join.args.get("on")
    if join.side or join.kind not in ("", "INNER") or not isinstance(on, exp.EQ):
        return None
    alias = join.this.alias_or_name.casefold()
    sides = [on.this, on.expression]
    if not all(isinstance(side, exp.Column) and side.table for side in sides):
        return None
    inner = next((side for side in sides if side.table.casefold() == alias), None)
    kept = next((side for side in sides if side.table.casefold() != alias), None)
    if inner is None or kept is None or kept.table.casefold() not in sources:
        return None
    keys = [(a.casefold(), b.casefold()) for a, b in find_foreign_keys(sources[kept.table.casefold()], sources[alias])]
    if (kept.name.casefold(), inner.name.casefold()) not in keys:
        return None
    columns = select.find_all(exp.Column)
    uses = [column for column in columns if column.table.casefold() == alias or not column.table]
    stars = [star for star in select.find_all(exp.Star) if not isinstance(star.parent, exp.Count)]
    if stars or any(column.name.casefold() != inner.name.casefold() for column in uses):
        return None
    return alias, kept
