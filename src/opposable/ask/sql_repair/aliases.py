"""Repairs aliases that two tables share or that are misspelt."""

import difflib
from collections import Counter
from typing import Any

from opposable.ask.sql_repair import messages
from opposable.ask.sql_repair.sql_tree import find_columns_in_select, get_sources, repair_each_select
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import DatabaseSchema, Table

_MIN_SIMILARITY = 0.7


def repair_aliases(sql: str, dialect: Dialect, schema: DatabaseSchema) -> tuple[str, tuple[str, ...]]:
    """Give every table its own alias and correct misspelt qualifiers.

    A column with a shared alias goes to the table that has it, or to the first of several. Returns the SQL and the
    corrections. SQL that cannot be parsed is unchanged.
    """

    def repair_select(select: Any) -> list[str]:
        items = _resolve_tables(select, schema)
        return (
            [*_separate_shared_aliases(select, items), *_correct_misspelt_qualifiers(select, items)]
            if items is not None
            else []
        )

    return repair_each_select(sql, dialect, repair_select)


def _resolve_tables(select: Any, schema: DatabaseSchema) -> list[tuple[Any, Table]] | None:
    """Return the sources of a SELECT with their tables; None if a source is not a table."""
    from sqlglot import exp

    items = get_sources(select)
    found = [(item, schema.find_table(item.name, item.db) if isinstance(item, exp.Table) else None) for item in items]
    return [(item, table) for item, table in found if table is not None] if all(t for _, t in found) else None


def _separate_shared_aliases(select: Any, sources: list[tuple[Any, Table]]) -> list[str]:
    """Give tables that share an alias one each, and qualify their columns."""
    from sqlglot import exp

    counts = Counter(item.alias_or_name.casefold() for item, _ in sources)
    shared = next((alias for alias, count in counts.items() if count > 1), "")
    sharing = [(item, table) for item, table in sources if item.alias_or_name.casefold() == shared]
    if not shared or len({table.full_name for _, table in sharing}) < len(sharing):
        return []
    names: list[str] = []
    for number, (item, _) in enumerate(sharing):
        free = (f"{shared}{n}" for n in range(number + 1, 99) if f"{shared}{n}" not in {*counts, *names})
        names.append(item.alias_or_name if number == 0 else next(free))
        item.set("alias", exp.TableAlias(this=exp.to_identifier(names[-1])))
    for column in find_columns_in_select(select):
        if column.table.casefold() == shared:
            having = [name for name, (_, table) in zip(names, sharing, strict=True) if table.find_column(column.name)]
            second = isinstance(column.parent, exp.EQ) and column.parent.expression is column
            same = second and column.parent.this == column
            chosen = having[1 if same and len(having) > 1 else 0] if having else names[0]
            column.set("table", exp.to_identifier(chosen))
    _separate_join_keys(select, names)
    return [messages.aliases_separated(shared)]


def _separate_join_keys(select: Any, aliases: list[str]) -> None:
    """Qualify an ON that compares a column with itself: the right side is the joined table's."""
    from sqlglot import exp

    for join in select.args.get("joins") or ():
        own = join.this.alias_or_name
        on = join.args.get("on")
        for equal in on.find_all(exp.EQ) if on is not None and own in aliases else ():
            if isinstance(equal.this, exp.Column) and equal.this == equal.expression:
                equal.this.set("table", exp.to_identifier(aliases[0]))
                equal.expression.set("table", exp.to_identifier(own))


def _correct_misspelt_qualifiers(select: Any, sources: list[tuple[Any, Table]]) -> list[str]:
    """Correct an unknown qualifier if exactly one similar alias has the column."""
    from sqlglot import exp

    if select.parent_select is not None:
        return []
    known = {item.alias_or_name.casefold(): table for item, table in sources}
    corrections: list[str] = []
    for column in find_columns_in_select(select):
        wrong = column.table.casefold()
        if not wrong or wrong in known:
            continue
        near = difflib.get_close_matches(wrong, known, n=2, cutoff=_MIN_SIMILARITY)
        fitting = [alias for alias in near if known[alias].find_column(column.name)]
        if len(fitting) == 1:
            corrections += (
                [f"{column.table} → {fitting[0]}"] if f"{column.table} → {fitting[0]}" not in corrections else []
            )
            column.set("table", exp.to_identifier(fitting[0]))
    return corrections
