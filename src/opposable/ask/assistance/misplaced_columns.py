"""Repairs a column that its table does not have: another table of the query has it, or one foreign key leads to it."""

from typing import Any

from opposable.ask.sql_trees import exp, list_sources, parse_query, resolve_sources
from opposable.domain.localized_text import LocalizedText
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import DatabaseSchema, Table, quote_name, quote_table_path

TABLE_JOINED = LocalizedText("{table} joined for {column}", "为 {column} 连接了 {table}")
COLUMN_MOVED = LocalizedText("{column} read from {table}", "{column} 取自 {table}")


def repair_misplaced_columns(sql: str, dialect: Dialect, schema: DatabaseSchema) -> tuple[str, tuple[str, ...]]:
    """Return rejected SQL with its misplaced columns repaired, and the corrections; unchanged if several could be meant.

    Columns that are compared with each other are not read from another table: it may join all rows with all.
    """
    tree = parse_query(sql, dialect)
    selects = list(tree.find_all(exp.Select)) if tree else []
    corrections = dict.fromkeys(line for select in selects for line in _repair_columns(select, dialect, schema))
    return (tree.sql(dialect=dialect), tuple(corrections)) if corrections else (sql, ())


def _repair_columns(select: Any, dialect: Dialect, schema: DatabaseSchema) -> list[str]:
    corrections: list[str] = []
    resolved = resolve_sources(select, schema)
    sources = {alias: table for alias, table in resolved.items() if table is not None}
    if len(sources) < len(resolved):
        return []
    for column in [*select.find_all(exp.Column)]:
        if column.find_ancestor(exp.Select) is not select or _is_resolved(column, sources, select):
            continue
        owners = [alias for alias, table in sources.items() if table.find_column(column.name)]
        if len(owners) == 1 and not _is_join_condition(column):
            column.set("table", _get_source_identifier(select, owners[0]))
            corrections.append(COLUMN_MOVED.format(column=column.name, table=sources[owners[0]].name))
        if owners:
            continue
        joins = _find_joins(column, sources, schema)
        if len(joins) != 1:
            continue
        alias, own_key, table, other_key = joins[0]
        name = next(f"t{n}" for n in range(len(sources) + 1, 99) if f"t{n}" not in sources)
        owner = _get_source_identifier(select, alias).sql(dialect=dialect)
        on = f"{owner}.{quote_name(own_key, dialect)} = {name}.{quote_name(other_key, dialect)}"
        select.join(f"{quote_table_path(table, dialect)} AS {name}", on=on, dialect=dialect, copy=False)
        tables, join = select.args["joins"], column.find_ancestor(exp.Join, exp.Select)
        if isinstance(join, exp.Join):  # its condition may name its own table and earlier ones
            tables.insert(tables.index(join), added := tables.pop())
            if join.alias_or_name.casefold() == alias:
                conditions = join.args["on"], added.args["on"]
                added.set("on", conditions[0])
                join.set("on", conditions[1])
        sources[name] = table
        corrections.append(TABLE_JOINED.format(table=table.name, column=column.name))
        column.set("table", exp.to_identifier(name))
    return corrections


def _get_source_identifier(select: Any, alias: str) -> Any:
    """Return a copy of the name of a source as the SELECT writes it, with quotes and case."""
    source = next(item for item in list_sources(select) if item.alias_or_name.casefold() == alias)
    return (source.args["alias"].this if source.args.get("alias") else source.this).copy()


def _is_join_condition(column: Any) -> bool:
    """Return whether a column is in the condition of a join, or compared with another column."""
    in_join = isinstance(column.find_ancestor(exp.Join, exp.Select), exp.Join)
    comparison = column.find_ancestor(exp.Predicate, exp.Select)
    return in_join or (isinstance(comparison, exp.Predicate) and len(list(comparison.find_all(exp.Column))) > 1)


def _is_resolved(column: Any, sources: dict[str, Table], select: Any) -> bool:
    """Return whether a column belongs to a source, is an alias, or cannot be resolved here."""
    if isinstance(column.this, exp.Star):
        return True
    if column.table:
        table = sources.get(column.table.casefold())
        return table is None or table.find_column(column.name) is not None
    if any(table.find_column(column.name) for table in sources.values()) or select.parent_select is not None:
        return True
    return any(item.alias.casefold() == column.name.casefold() for item in select.selects)


def _find_joins(column: Any, sources: dict[str, Table], schema: DatabaseSchema) -> list[tuple[str, str, Table, str]]:
    """Return how a foreign key leads to the column, from its own table if it can, as (alias, key, table, its key)."""
    used_names = {table.full_name for table in sources.values()}
    joins = [
        (alias, key, table, other_key)
        for table in schema.tables
        if table.full_name not in used_names and table.find_column(column.name)
        for alias, source in sources.items()
        for key, other_key in (*_find_keys(source, table), *(keys[::-1] for keys in _find_keys(table, source)))
    ]
    own_joins = [join for join in joins if join[0] == column.table.casefold()]
    is_found = own_joins or _is_join_condition(column)  # from others, the join may be one of all rows with all
    return own_joins if is_found else list({join[2].full_name: join for join in reversed(joins)}.values())


def _find_keys(source: Table, target: Table) -> list[tuple[str, str]]:
    """Return the foreign keys of `source` to `target` as pairs of column names."""
    names = (target.full_name.casefold(), target.name.casefold())
    references = [(column.name, *column.references.rpartition(".")) for column in source.columns if column.references]
    return [(column, key) for column, table, _, key in references if table.casefold() in names]
