"""Finds the text values a query compares columns with, and similar values of the database."""

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
"""The largest number of values looked up per query."""


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

    They contain the text or occur in it, in any case. If none does, they are spelled like it.
    """
    name, path = literal.quote_names()
    folded = literal.value.casefold().strip()
    if not folded:
        return []
    inside = folded.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    text = f"lower(CAST({name} AS VARCHAR(200)))"
    contains = f"{text} LIKE {_quote_text(f'%{inside}%')} ESCAPE '\\'"
    occurs = f"{name} IS NOT NULL AND length({text}) > 2 AND {_quote_text(folded)} LIKE '%' || {text} || '%'"
    # Names and texts are quoted, and the database only reads.
    sql = f"SELECT DISTINCT CAST({name} AS VARCHAR(200)) AS v FROM {path}"  # noqa: S608
    values = await _fetch_texts(database, f"{sql} WHERE {contains} OR ({occurs}) LIMIT 20")
    if values:
        return sorted(values, key=lambda one: (one.casefold() != folded, abs(len(one) - len(literal.value)), one))
    others = await _fetch_texts(database, f"{sql} LIMIT {LOOKUP_LIMITS.max_rows}")
    similar = suggest_names(literal.value, others or ())
    return [other for other in similar if compute_similarity(literal.value, other) > MIN_SPELLING_SIMILARITY]


async def find_locations(database: Database, literal: TextLiteral) -> list[str]:
    """Return up to three other columns that have the text, as `table.column`."""
    locations: list[str] = []
    columns = [(table, column) for table in (await database.get_schema()).tables for column in table.columns]
    text_columns = [pair for pair in columns if get_column_kind(pair[1]) == "text"][:MAX_SEARCHED_COLUMNS]
    for table, column in text_columns:
        other = TextLiteral(table, column.name, literal.value)
        if other != literal and len(locations) < 3 and await value_exists(database, other, default=False):
            locations.append(f"{table.full_name}.{column.name}")
    return locations


async def _fetch_texts(database: Database, sql: str) -> list[str] | None:
    """Return the first column of a lookup, which is written for DuckDB; None if it fails."""
    translated = sqlglot.transpile(sql, read="duckdb", write=database.dialect, identify=True)[0]
    try:
        rows = (await database.run(translated, None, LOOKUP_LIMITS)).rows
    except ToolError:
        return None
    return [str(row[0]) for row in rows if row[0] is not None]


def find_text_literals(sql: str, database: Database, schema: DatabaseSchema) -> list[TextLiteral]:
    """Return the texts that the query compares with columns of text by = or IN."""
    tree = parse_query(sql, database.dialect)
    literals: dict[TextLiteral, None] = {}
    for node in tree.find_all(exp.EQ, exp.In) if tree else ():
        sides = [node.this] if isinstance(node, exp.In) else [node.this, node.expression]
        column = next((side for side in sides if isinstance(side, exp.Column)), None)
        table = _find_table(column, node, schema) if column is not None else None
        if column is None or table is None or node.find_ancestor(exp.Not):
            continue
        for operand in node.expressions or sides:
            if isinstance(operand, exp.Literal) and operand.is_string:
                literals[TextLiteral(table, column.name, operand.name)] = None
    return list(literals)[:MAX_LITERALS]


async def find_unmatched_condition(sql: str, database: Database) -> str:
    """Return the SQL of a condition in WHERE that no row satisfies, or "" if each of them has rows."""
    tree = parse_query(sql, database.dialect)
    if not isinstance(tree, exp.Select) or tree.args.get("with_") or not tree.args.get("where"):
        return ""
    where = tree.args["where"].this
    for condition in where.flatten() if isinstance(where, exp.And) else [where]:
        query = exp.select("1").where(condition.copy()).limit(1)
        for part in ("from_", "joins", "laterals"):
            query.set(part, tree.args.get(part))
        try:
            result = await database.run(query.sql(dialect=database.dialect), None, LOOKUP_LIMITS)
        except ToolError:
            continue
        if not result.rows:
            return str(condition.sql(dialect=database.dialect))
    return ""


async def value_exists(database: Database, literal: TextLiteral, *, default: bool = True) -> bool:
    """Return whether a row has the value; `default` if the query fails."""
    name, path = literal.quote_names()
    sql = f"SELECT 1 FROM {path} WHERE {name} = {_quote_text(literal.value)} LIMIT 1"  # noqa: S608 - quoted
    values = await _fetch_texts(database, sql)
    return default if values is None else bool(values)


def _find_table(column: Any, node: Any, schema: DatabaseSchema) -> Table | None:
    """Return the table a column of text belongs to, by its qualifier or by the SELECT's sources."""
    select = node.find_ancestor(exp.Select)
    sources = resolve_sources(select, schema) if select else {}
    if column.table:
        sources = {alias: table for alias, table in sources.items() if alias == column.table.casefold()}
    pairs = [(table, table.find_column(column.name)) for table in sources.values() if table is not None]
    fitting = [(table, found) for table, found in pairs if found is not None]
    return fitting[0][0] if len(fitting) == 1 and get_column_kind(fitting[0][1]) == "text" else None


def _quote_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
