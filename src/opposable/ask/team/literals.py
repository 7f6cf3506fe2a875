"""Finds the text values a query compares columns with, and similar values of the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from opposable.domain.errors import ToolError
from opposable.sql.database import Database, QueryLimits
from opposable.sql.schema import DatabaseSchema, Table, quote_name, quote_table_path

LOOKUP_LIMITS = QueryLimits(max_rows=20, max_cell_characters=200, timeout_seconds=2.0)
MAX_LITERALS = 6
"""The largest number of values looked up per query."""


@dataclass(frozen=True, slots=True)
class TextLiteral:
    """A text that a query compares a column with."""

    table: Table
    column: str
    value: str


@dataclass(frozen=True, slots=True)
class ValueLocation:
    """A value and the column that contains it; `table` is a full name."""

    table: str
    column: str
    value: str


class ValueFinder(Protocol):
    """Finds values of the database that are similar to a text."""

    async def find_near_values(self, table: Table, column: str, value: str) -> Sequence[str]:
        """Return the similar values of a column, nearest first."""
        ...

    async def find_locations(self, value: str) -> Sequence[ValueLocation]:
        """Return the columns that contain the text in any case; empty if that is unknown."""
        ...


class QueryValueFinder:
    """Finds similar values with a query: equal in another case, or containing the text."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_near_values(self, table: Table, column: str, value: str) -> Sequence[str]:
        """Return the similar values; empty if the query fails or times out."""
        name, path = quote_name(column, self._database.dialect), quote_table_path(table, self._database.dialect)
        folded = value.casefold().strip()
        if not folded:
            return ()
        inside = folded.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        text = f"lower(CAST({name} AS VARCHAR(200)))"
        has = f"{text} LIKE {_quote_text(f'%{inside}%')} ESCAPE '\\'"
        within = f"{name} IS NOT NULL AND length({text}) > 2 AND {_quote_text(folded)} LIKE '%' || {text} || '%'"
        # Names and texts are quoted, and the database only reads.
        sql = f"SELECT DISTINCT CAST({name} AS VARCHAR(200)) AS v FROM {path} WHERE {has} OR ({within}) LIMIT 20"  # noqa: S608
        try:
            rows = await self._database.run(sql, None, LOOKUP_LIMITS)
        except ToolError:
            return ()
        found = [str(row[0]) for row in rows.rows if row[0] is not None]
        return sorted(found, key=lambda one: (one.casefold().strip() != folded, abs(len(one) - len(value)), one))

    async def find_locations(self, value: str) -> Sequence[ValueLocation]:
        """Return nothing: a query does not search all columns."""
        return ()


def find_text_literals(sql: str, database: Database, schema: DatabaseSchema) -> list[TextLiteral]:
    """Return the texts that the query compares with columns by = or IN."""
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(sql, dialect=database.dialect)
    except sqlglot.errors.SqlglotError:
        return []
    literals: dict[TextLiteral, None] = {}
    for node in tree.find_all(exp.EQ, exp.In):
        if node.find_ancestor(exp.Not):
            continue
        column = node.this if isinstance(node.this, exp.Column) else node.args.get("expression")
        if not isinstance(column, exp.Column) or (table := _find_table(column, node, schema)) is None:
            continue
        operands = node.expressions if isinstance(node, exp.In) else [node.this, node.args.get("expression")]
        for operand in operands:
            if isinstance(operand, exp.Literal) and operand.is_string:
                literals[TextLiteral(table, column.name, operand.name)] = None
    return list(literals)[:MAX_LITERALS]


async def find_unmatched_condition(sql: str, database: Database) -> str:
    """Return the SQL of a condition in WHERE that no row satisfies, or "" if each of them has rows."""
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(sql, dialect=database.dialect)
    except sqlglot.errors.SqlglotError:
        return ""
    where = tree.args.get("where") if isinstance(tree, exp.Select) and not tree.args.get("with_") else None
    for condition in (
        where.this.flatten() if where and isinstance(where.this, exp.And) else [where.this] if where else ()
    ):
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


async def value_exists(database: Database, literal: TextLiteral) -> bool:
    """Return whether a row has the value; true if the query fails."""
    name, path = quote_name(literal.column, database.dialect), quote_table_path(literal.table, database.dialect)
    try:
        sql = f"SELECT 1 FROM {path} WHERE {name} = {_quote_text(literal.value)} LIMIT 1"  # noqa: S608 - quoted
        rows = await database.run(sql, None, LOOKUP_LIMITS)
    except ToolError:
        return True
    return bool(rows.rows)


def _find_table(column: Any, node: Any, schema: DatabaseSchema) -> Table | None:
    """Return the table a column belongs to, by its qualifier or by the SELECT's sources."""
    from sqlglot import exp

    select = node.find_ancestor(exp.Select)
    if select is None:
        return None
    sources = [source for source in select.find_all(exp.Table) if source.find_ancestor(exp.Select) is select]
    tables = [(source.alias_or_name.casefold(), schema.find_table(source.name, source.db)) for source in sources]
    wanted = column.table.casefold()
    fitting = [
        table
        for alias, table in tables
        if table is not None and (alias == wanted if wanted else table.find_column(column.name))
    ]
    return fitting[0] if len(fitting) == 1 and fitting[0].find_column(column.name) else None


def _quote_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
