"""Finds the text values a query compares columns with, and similar values of the database."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from opposable.ask.catalog.table_samples import get_column_kind
from opposable.ask.sql_trees import exp, parse_query, resolve_sources, sqlglot
from opposable.domain.errors import ToolError
from opposable.sql.database import Database, QueryLimits
from opposable.sql.name_similarity import compute_similarity, suggest_names
from opposable.sql.schema import DatabaseSchema, Table, quote_name, quote_table_path

LOOKUP_LIMITS = QueryLimits(max_rows=2_000, max_cell_characters=200, timeout_seconds=2.0)
"""The limits of lookups, so also of the values that are compared by spelling."""
MIN_SPELLING_SIMILARITY = 0.7
MAX_SEARCHED_COLUMNS = 60
"""The limit of columns that are searched for a value of another column."""
MAX_LITERALS = 6
"""The largest number of comparisons looked up per query, and of missing texts."""


@dataclass(frozen=True, slots=True)
class TextLiteral:
    """A text that a query compares a column with."""

    table: Table
    column: str
    value: str

    def quote_names(self) -> tuple[str, str]:
        """Return the column and the table in the quotes of DuckDB, which lookups are written for."""
        return quote_name(self.column, "duckdb"), quote_table_path(self.table, "duckdb")


async def find_near_values(database: Database, literal: TextLiteral) -> list[str]:
    """Return the values of the column that are similar to a text, nearest first; empty if the query fails.

    They contain the text or occur in it, in any case. If none does, they are spelled like it, with the same numbers.
    """
    name, path = literal.quote_names()
    folded = literal.value.casefold().strip()
    if not folded:
        return []
    inside = folded.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    text = f"lower(CAST({name} AS VARCHAR(200)))"
    contains = f"{text} LIKE {exp.Literal.string(f'%{inside}%')} ESCAPE '\\'"
    occurs = f"{name} IS NOT NULL AND length({text}) > 2 AND {exp.Literal.string(folded)} LIKE '%' || {text} || '%'"
    # Names and texts are quoted, and the database only reads.
    sql = f"SELECT DISTINCT CAST({name} AS VARCHAR(200)) AS v FROM {path}"  # noqa: S608
    values = await _fetch_texts(database, f"{sql} WHERE {contains} OR ({occurs}) LIMIT 20")
    if values:
        return sorted(values, key=lambda one: (one.casefold() != folded, abs(len(one) - len(literal.value)), one))
    others = await _fetch_texts(database, f"{sql} LIMIT {LOOKUP_LIMITS.max_rows}")
    numbers = {one: [*map(int, re.findall(r"\d+", one))] for one in (literal.value, *(others or ()))}
    similar = suggest_names(literal.value, [one for one in others or () if numbers[one] == numbers[literal.value]])
    return [other for other in similar if compute_similarity(literal.value, other) > MIN_SPELLING_SIMILARITY]


async def find_locations(database: Database, literal: TextLiteral) -> list[str]:
    """Return up to three other columns that have the text, as `table.column`."""
    locations: list[str] = []
    columns = [(table, column) for table in (await database.get_schema()).tables for column in table.columns]
    others = [TextLiteral(table, one.name, literal.value) for table, one in columns if get_column_kind(one) == "text"]
    for other in others[:MAX_SEARCHED_COLUMNS]:
        if other != literal and len(locations) < 3 and await any_value_exists(database, [other], default=False):
            locations.append(f"{other.table.full_name}.{other.column}")
    return locations


async def _fetch_texts(database: Database, sql: str) -> list[str] | None:
    """Return the first column of a lookup, which is written for DuckDB; None if it fails."""
    translated = sqlglot.transpile(sql, read="duckdb", write=database.dialect, identify=True)[0]
    try:
        rows = (await database.run(translated, None, LOOKUP_LIMITS)).rows
    except ToolError:
        return None
    return [str(row[0]) for row in rows if row[0] is not None]


async def find_missing_literals(sql: str, database: Database) -> list[TextLiteral]:
    """Return the texts that no row has, of required comparisons by = or IN; of a list, if no row has any of them."""
    tree, schema = parse_query(sql, database.dialect), await database.get_schema()
    lists: list[list[TextLiteral]] = []
    for node in tree.find_all(exp.EQ, exp.In) if tree else ():
        sides = [node.this] if isinstance(node, exp.In) else [node.this, node.expression]
        column = next((side for side in sides if isinstance(side, exp.Column)), None)
        table = _find_table(column, node, schema) if column is not None else None
        operands = [side for side in node.expressions or sides if isinstance(side, exp.Literal) and side.is_string]
        if column is not None and table and len(operands) == max(1, len(node.expressions)) and _is_required(node):
            lists.append([TextLiteral(table, column.name, operand.name) for operand in operands])
    missing = [text for texts in lists[:MAX_LITERALS] if not await any_value_exists(database, texts) for text in texts]
    return list(dict.fromkeys(missing))[:MAX_LITERALS]


def _is_required(node: Any) -> bool:
    """Return whether each row must satisfy a comparison: not under OR, NOT, EXCEPT, an outer join or another one."""
    while (parent := node.parent) is not None:
        is_value = not isinstance(node, exp.Query) or any(item.find(exp.Count) for item in node.selects)
        is_subtracted = isinstance(parent, exp.Except) and node.arg_key == "expression"
        is_optional = isinstance(parent, exp.Not | exp.Or | exp.Xor) or (isinstance(parent, exp.Join) and parent.side)
        if is_subtracted or is_optional or (isinstance(parent, exp.Predicate) and is_value):
            return False
        node = parent
    return True


async def find_unmatched_condition(sql: str, database: Database) -> str:
    """Return the SQL of a condition in WHERE that no row satisfies; "" if each has rows, or the tables join none."""
    tree = parse_query(sql, database.dialect)
    if not isinstance(tree, exp.Select) or tree.args.get("with_") or not tree.args.get("where"):
        return ""
    where = tree.args["where"].this
    for condition in [exp.true(), *(where.flatten() if isinstance(where, exp.And) else [where])]:
        query = exp.select("1").where(condition.copy()).limit(1)
        for part in ("from_", "joins", "laterals"):
            query.set(part, tree.args.get(part))
        with suppress(ToolError):
            if not (await database.run(query.sql(dialect=database.dialect), None, LOOKUP_LIMITS)).rows:
                return "" if condition == exp.true() else str(condition.sql(dialect=database.dialect))
    return ""


async def any_value_exists(database: Database, literals: Sequence[TextLiteral], *, default: bool = True) -> bool:
    """Return whether a row has one of the values of a column; `default` if the query fails."""
    name, path = literals[0].quote_names()
    texts = ", ".join(str(exp.Literal.string(literal.value)) for literal in literals)
    sql = f"SELECT 1 FROM {path} WHERE {name} IN ({texts}) LIMIT 1"  # noqa: S608 - quoted
    values = await _fetch_texts(database, sql)
    return default if values is None else bool(values)


def _find_table(column: Any, node: Any, schema: DatabaseSchema) -> Table | None:
    """Return the table a column of text belongs to, by its qualifier or by the SELECT's sources."""
    select = node.find_ancestor(exp.Select)
    sources = resolve_sources(select, schema) if select else {}
    tables = [table for alias, table in sources.items() if column.table.casefold() in ("", alias) and table is not None]
    found = [(table, named) for table in tables if (named := table.find_column(column.name))]
    return found[0][0] if len(found) == 1 and get_column_kind(found[0][1]) == "text" else None
