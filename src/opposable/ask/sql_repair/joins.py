"""Joins put right: a table that a column needs is joined, one that adds nothing is left out."""

from collections.abc import Collection
from typing import Any

from opposable.ask.catalog.text_normalization import folded, index_words, is_cjk, name_words, singular
from opposable.ask.sql_repair.sql_tree import (
    Mended,
    drop_join,
    foreign_keys,
    goes_by,
    in_each_select,
    keys_between,
    make_outer,
    own,
    own_columns,
    parsed,
    plain_tables,
    read_by,
    selects,
)
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import Column, Schema, Table, quoted, quoted_path

Standing = tuple[str, str, str]
"""A table's full name, the folded name of a column, and a value that stands in it."""


def with_needed(sql: str, dialect: Dialect, schema: Schema) -> Mended:
    """The SQL with a table joined for each column that no table read has, where one foreign key leads there.

    Unchanged where the SQL cannot be read, or more than one table could be meant.
    """
    return in_each_select(sql, dialect, lambda select: _join_needed(select, dialect, schema))


def _join_needed(select: Any, dialect: Dialect, schema: Schema) -> list[str]:
    told: list[str] = []
    sources = plain_tables(select, schema)
    if sources is None:
        return []
    for column in own_columns(select):
        if _known(column, sources, select) or any(table.find_column(column.name) for table in sources.values()):
            continue  # a column of a table read stands under a wrong alias: names are put right later
        found = _ways(column.name, sources, schema)
        if len(found) != 1:
            continue
        alias, own_key, table, other_key = found[0]
        name = next(f"t{n}" for n in range(len(sources) + 1, 99) if f"t{n}" not in sources)
        on = f"{_as_written(select, alias, dialect)}.{quoted(own_key, dialect)} = {name}.{quoted(other_key, dialect)}"
        select.join(f"{quoted_path(table, dialect)} AS {name}", on=on, dialect=dialect, copy=False)
        sources[name] = table
        told.append(f"{table.name} joined for {column.name}")
        for other in own_columns(select):
            if other.name.casefold() == column.name.casefold() and not _known(other, sources, select):
                other.set("table", _identifier(name))
        column.set("table", _identifier(name))
    return told


def without_spare(sql: str, dialect: Dialect, schema: Schema) -> Mended:
    """The SQL without tables of which only the key is used that a foreign key of another table holds as well.

    Every row that has the key has just one row there, so nothing is lost but rows whose key leads nowhere.
    """
    return in_each_select(sql, dialect, lambda select: _drop_spare(select, schema))


def _drop_spare(select: Any, schema: Schema) -> list[str]:
    told: list[str] = []
    sources = plain_tables(select, schema)
    for join in list(select.args.get("joins") or ()) if sources else ():
        spare = _spare(join, select, sources or {})
        if spare is None:
            continue
        alias, kept = spare
        for column in own_columns(select):
            if column.table.casefold() == alias:
                column.set("this", kept.this.copy())
                column.set("table", kept.args["table"].copy())
        drop_join(select, join)
        told.append(f"without {join.this.name}")
    return told


def without_unasked(
    sql: str, question: str, dialect: Dialect, schema: Schema, also: Collection[Standing] = ()
) -> Mended:
    """The SQL without joined tables of which the question says no word, and of which nothing is used.

    Such a join only multiplies rows or drops them. Where only a value is looked for in one, and that stands (`also`) in
    a column called the same of one other table read, it is looked for there. Names, or comments, and question must be
    in one script to be compared.
    """
    asked = {singular(word) for word in index_words(folded(question))}

    def mend(select: Any) -> list[str]:
        told: list[str] = []
        sources = plain_tables(select, schema)
        for join in list(reversed(select.args.get("joins") or ())) if sources else ():
            table = (sources or {})[join.this.alias_or_name.casefold()]
            if join.side or _counts_rows(select) or not _comparable(table, question) or asked & set(_called(table)):
                continue
            if _idle(join, select, sources or {}, also):
                drop_join(select, join)
                told.append(f"without {join.this.name}")
        return told

    return in_each_select(sql, dialect, mend)


def _counts_rows(select: Any) -> bool:
    """Whether the SELECT counts rows, of whichever table the column is: a joined table may be there to be counted."""
    from sqlglot import exp

    return any(not isinstance(one.this, exp.Distinct) for one in own(select, exp.Count))


def _called(table: Table) -> list[str]:
    """The words a table goes by: its name's and its comment's."""
    return [*name_words(table.name), *name_words(table.comment or "")]


def _comparable(table: Table, question: str) -> bool:
    """Whether a question would name the table in the script it is called in."""
    return is_cjk(table.name + (table.comment or "")) if is_cjk(question) else not is_cjk(table.name)


def _idle(join: Any, select: Any, sources: dict[str, Table], also: Collection[Standing]) -> bool:
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
            if other != alias and (table.full_name, column.name.casefold(), sought) in also
        ]
        if not column.table or column.find_ancestor(exp.Where) is None or len(having) != 1:
            return False
        moves.append((column, having[0]))
    for column, other in moves:
        column.set("table", _identifier_of(select, other))
    return bool(within)


def _identifier_of(select: Any, alias: str) -> Any:
    return goes_by(next(item for item in read_by(select) if item.alias_or_name.casefold() == alias)).copy()


def with_outer(sql: str, dialect: Dialect) -> Mended:
    """The SQL with LEFT JOIN where it looks for rows that have none in a joined table (`IS NULL` on its column)."""
    return in_each_select(sql, dialect, _look_outside)


def _look_outside(select: Any) -> list[str]:
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
            told.append(make_outer(join))
    return told


def without_same(sql: str, dialect: Dialect, schema: Schema) -> Mended:
    """The SQL without a table joined to itself by its own key: that is the same row again."""
    return in_each_select(sql, dialect, lambda select: _drop_same(select, schema))


def _drop_same(select: Any, schema: Schema) -> list[str]:
    from sqlglot import exp

    told: list[str] = []
    sources = plain_tables(select, schema) or {}
    for join in list(select.args.get("joins") or ()) if sources else ():
        on, alias = join.args.get("on"), join.this.alias_or_name.casefold()
        sides = [on.this, on.expression] if isinstance(on, exp.EQ) else []
        if len(sides) < 2 or not all(isinstance(side, exp.Column) for side in sides) or sides[0].name != sides[1].name:
            continue
        other = next((side.table.casefold() for side in sides if side.table.casefold() != alias), "")
        table, key = sources.get(other), sources[alias].find_column(sides[0].name)
        if table is None or table.full_name != sources[alias].full_name or key is None or not _alone(key, table):
            continue
        drop_join(select, join)
        for column in select.find_all(exp.Column):
            if column.table.casefold() == alias:
                column.set("table", _identifier_of(select, other))
        told.append(f"without {join.this.alias_or_name}")
    return told


def without_sibling(sql: str, dialect: Dialect, schema: Schema) -> Mended:
    """The SQL without a table joined by what both have of a third, where the other has all of it that is used.

    Such a join brings every row of the one with every row of the other that has the same; that is not meant.
    """
    return in_each_select(sql, dialect, lambda select: _drop_sibling(select, schema))


def _drop_sibling(select: Any, schema: Schema) -> list[str]:
    told: list[str] = []
    sources = plain_tables(select, schema) or {}
    first = select.args.get("from_")
    join = (select.args.get("joins") or [None])[0]
    pair = _shared_parent(join, sources) if first is not None and join is not None and sources else None
    if pair is None:
        return []
    start = first.this.alias_or_name.casefold()  # stays where either could
    for alias, other in sorted((pair, pair[::-1]), key=lambda way: way[0] == start):
        used = [column for column in own_columns(select) if column.table.casefold() == alias]
        if all(sources[other].find_column(column.name) for column in used):
            for column in used:
                column.set("table", _identifier_of(select, other))
            if alias == start:
                first.set("this", join.this.copy())
            drop_join(select, join)
            told.append(f"without {sources[alias].name}")
            break
    return told


def _shared_parent(join: Any, sources: dict[str, Table]) -> tuple[str, str] | None:
    """The aliases that a join holds together by columns that both refer to one column of a third table."""
    from sqlglot import exp

    on = join.args.get("on")
    sides = [on.this, on.expression] if isinstance(on, exp.EQ) and not join.side else []
    if not sides or not all(isinstance(side, exp.Column) and side.table.casefold() in sources for side in sides):
        return None
    found = [sources[side.table.casefold()].find_column(side.name) for side in sides]
    parents = {column.references.casefold() if column is not None and column.references else "" for column in found}
    return (sides[0].table.casefold(), sides[1].table.casefold()) if len(parents) == 1 and "" not in parents else None


def _alone(key: Column, table: Table) -> bool:
    """Whether the column by itself is the table's key."""
    return key.primary_key and sum(column.primary_key for column in table.columns) == 1


def joins_nothing(sql: str, dialect: Dialect) -> str:
    """The condition of a join that compares a column with itself, or "": what comes of a name that was put right wrongly."""
    from sqlglot import exp

    tree = parsed(sql, dialect)
    joins = tree.find_all(exp.Join) if tree is not None else ()
    equals = [one for join in joins if join.args.get("on") for one in join.args["on"].find_all(exp.EQ)]
    return next((one.sql() for one in equals if isinstance(one.this, exp.Column) and one.this == one.expression), "")


def without_emptied(sql: str, before: str, dialect: Dialect, schema: Schema) -> Mended:
    """The SQL without joined tables of which `before`, its names not yet put right, used columns that are others' now.

    Their key is the other table's that they are joined by. Where rows are counted or added up the tables stay: they say
    which rows.
    """
    from sqlglot import exp

    tree, old = parsed(sql, dialect), parsed(before, dialect)
    if tree is None or old is None:
        return sql, ()
    used = [
        (column.table.casefold(), column.name)
        for column in old.find_all(exp.Column)
        if not column.find_ancestor(exp.Join)
    ]
    told: list[str] = []
    for select in selects(tree):
        sources = plain_tables(select, schema) if not own(select, exp.AggFunc) else None
        for join in list(select.args.get("joins") or ()) if sources else ():
            alias = join.this.alias_or_name.casefold()
            lacked = any(name == alias and not (sources or {})[alias].find_column(column) for name, column in used)
            if lacked and not join.side and _key_only(join, select):
                drop_join(select, join)
                told.append(f"without {join.this.name}")
    return (tree.sql(dialect=dialect), tuple(told)) if told else (sql, ())


def _key_only(join: Any, select: Any) -> bool:
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


def _identifier(name: str) -> Any:
    from sqlglot import exp

    return exp.to_identifier(name)


def _as_written(select: Any, alias: str, dialect: Dialect) -> str:
    """The name of a table read as the SELECT writes it, quotes and case included."""
    return str(_identifier_of(select, alias).sql(dialect=dialect))


def _known(column: Any, sources: dict[str, Table], select: Any) -> bool:
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


def _ways(column: str, sources: dict[str, Table], schema: Schema) -> list[tuple[str, str, Table, str]]:
    """The tables that have the column and to which a foreign key leads from a table read: alias, key, table, its key."""
    found: dict[str, tuple[str, str, Table, str]] = {}
    read = {table.full_name for table in sources.values()}
    for table in schema.tables:
        if table.full_name in read or table.find_column(column) is None:
            continue
        for alias, source in sources.items():
            for key, other in keys_between(source, table):
                found.setdefault(table.full_name, (alias, key, table, other))
    return list(found.values())


def _spare(join: Any, select: Any, sources: dict[str, Table]) -> tuple[str, Any] | None:
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
    keys = [(a.casefold(), b.casefold()) for a, b in foreign_keys(sources[kept.table.casefold()], sources[alias])]
    if (kept.name.casefold(), inner.name.casefold()) not in keys:
        return None
    columns = select.find_all(exp.Column)
    uses = [column for column in columns if column.table.casefold() == alias or not column.table]
    stars = [star for star in select.find_all(exp.Star) if not isinstance(star.parent, exp.Count)]
    if stars or any(column.name.casefold() != inner.name.casefold() for column in uses):
        return None
    return alias, kept
