"""Joins put right: a table that a column needs is joined, one that adds nothing is left out."""

from collections.abc import Sequence
from typing import Any

from opposable.ask.catalog.words import folded, index_words, is_cjk, name_words, singular
from opposable.tools.sql.functions import Dialect
from opposable.tools.sql.schema import Schema, Table, quoted, quoted_path

Mended = tuple[str, tuple[str, ...]]
"""SQL, and what was changed in it, in words."""


def with_needed(sql: str, dialect: Dialect, schema: Schema) -> Mended:
    """The SQL with a table joined for each column that no table read has, where one foreign key leads there.

    Unchanged where the SQL cannot be read, or more than one table could be meant.
    """
    tree = _select(sql, dialect)
    if tree is None:
        return sql, ()
    told: list[str] = []
    for select in _selects(tree):
        sources = _sources(select, schema)
        if sources is None:
            continue
        for column in _own_columns(select):
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
            for other in _own_columns(select):
                if other.name.casefold() == column.name.casefold() and not _known(other, sources, select):
                    other.set("table", _identifier(name))
            column.set("table", _identifier(name))
    return (tree.sql(dialect=dialect), tuple(told)) if told else (sql, ())


def without_spare(sql: str, dialect: Dialect, schema: Schema) -> Mended:
    """The SQL without tables of which only the key is used that a foreign key of another table holds as well.

    Every row that has the key has just one row there, so nothing is lost but rows whose key leads nowhere.
    """
    tree = _select(sql, dialect)
    if tree is None:
        return sql, ()
    told: list[str] = []
    for select in _selects(tree):
        sources = _sources(select, schema)
        for join in list(select.args.get("joins") or ()) if sources else ():
            spare = _spare(join, select, sources or {})
            if spare is None:
                continue
            alias, kept = spare
            for column in _own_columns(select):
                if column.table.casefold() == alias:
                    column.set("this", kept.this.copy())
                    column.set("table", kept.args["table"].copy())
            select.set("joins", [other for other in select.args["joins"] if other is not join])
            told.append(f"without {join.this.name}")
    return (tree.sql(dialect=dialect), tuple(told)) if told else (sql, ())


def without_unasked(sql: str, question: str, dialect: Dialect, schema: Schema) -> Mended:
    """The SQL without joined tables of which no column is used and of which the question says no word.

    Such a join only multiplies rows or drops them. Names and question must be in one script to be compared.
    """
    from sqlglot import exp

    tree = _select(sql, dialect)
    if tree is None:
        return sql, ()
    asked = {singular(word) for word in index_words(folded(question))}
    told: list[str] = []
    for select in _selects(tree):
        sources = _sources(select, schema)
        for join in list(select.args.get("joins") or ()) if sources else ():
            alias = join.this.alias_or_name.casefold()
            words = set(name_words(join.this.name))
            if is_cjk(question) != is_cjk(join.this.name) or words & asked or join.side:
                continue
            within = set(map(id, join.args["on"].find_all(exp.Column))) if join.args.get("on") else set()
            used = [column for column in select.find_all(exp.Column) if column.table.casefold() in (alias, "")]
            if within and all(id(column) in within for column in used):
                select.set("joins", [other for other in select.args["joins"] if other is not join])
                told.append(f"without {join.this.name}")
    return (tree.sql(dialect=dialect), tuple(told)) if told else (sql, ())


def with_outer(sql: str, dialect: Dialect) -> Mended:
    """The SQL with LEFT JOIN where it looks for rows that have none in a joined table (`IS NULL` on its column)."""
    from sqlglot import exp

    tree = _select(sql, dialect)
    if tree is None:
        return sql, ()
    told: list[str] = []
    for select in _selects(tree):
        where = select.args.get("where")
        missing = {
            node.this.table.casefold()
            for node in (where.find_all(exp.Is) if where else ())
            if isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Null)
        }
        for join in select.args.get("joins") or ():
            inner = not join.side and join.kind in ("", "INNER")
            if inner and join.args.get("on") is not None and join.this.alias_or_name.casefold() in missing:
                join.set("kind", None)
                join.set("side", "LEFT")
                told.append(f"LEFT JOIN {join.this.name}")
    return (tree.sql(dialect=dialect), tuple(told)) if told else (sql, ())


def _select(sql: str, dialect: Dialect) -> Any:
    import sqlglot

    try:
        return sqlglot.parse_one(sql, dialect=dialect)
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError):
        return None


def _selects(tree: Any) -> list[Any]:
    from sqlglot import exp

    return list(tree.find_all(exp.Select))


def _identifier(name: str) -> Any:
    from sqlglot import exp

    return exp.to_identifier(name)


def _sources(select: Any, schema: Schema) -> dict[str, Table] | None:
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


def _as_written(select: Any, alias: str, dialect: Dialect) -> str:
    """The name of a table read as the SELECT writes it, quotes and case included."""
    items = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())]
    item = next(item for item in items if item.alias_or_name.casefold() == alias)
    node = item.args["alias"].this if item.args.get("alias") else item.this
    return str(node.sql(dialect=dialect))


def _own_columns(select: Any) -> list[Any]:
    from sqlglot import exp

    return [column for column in select.find_all(exp.Column) if column.find_ancestor(exp.Select) is select]


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
            for own, other in [*_keys(source, table), *((b, a) for a, b in _keys(table, source))]:
                found.setdefault(table.full_name, (alias, own, table, other))
    return list(found.values())


def _keys(source: Table, target: Table) -> Sequence[tuple[str, str]]:
    """The foreign keys of `source` to `target`: its column and the other's."""
    pairs = []
    for column in source.columns:
        if column.references:
            table, _, key = column.references.rpartition(".")
            if table.casefold() in (target.full_name.casefold(), target.name.casefold()):
                pairs.append((column.name, key))
    return pairs


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
    keys = [(a.casefold(), b.casefold()) for a, b in _keys(sources[kept.table.casefold()], sources[alias])]
    if (kept.name.casefold(), inner.name.casefold()) not in keys:
        return None
    columns = select.find_all(exp.Column)
    uses = [column for column in columns if column.table.casefold() == alias or not column.table]
    stars = [star for star in select.find_all(exp.Star) if not isinstance(star.parent, exp.Count)]
    if stars or any(column.name.casefold() != inner.name.casefold() for column in uses):
        return None
    return alias, kept
