"""Finds the text values a query compares columns with, and replaces values that no row has."""

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
    """A text that a query compares a column with, at `sql[start:end]`, quotes included."""

    table: Table
    column: str
    value: str
    start: int
    end: int


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
    """Return the texts that the query compares with columns by =, IN, or LIKE without wildcards."""
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(sql, dialect=database.dialect)
    except sqlglot.errors.SqlglotError:
        return []
    found = []
    for node in tree.find_all(exp.EQ, exp.In, exp.Like):
        column = node.this if isinstance(node.this, exp.Column) else node.args.get("expression")
        if not isinstance(column, exp.Column):
            continue
        table = _find_table(column, node, schema)
        if table is None:
            continue
        others = node.expressions if isinstance(node, exp.In) else [node.this, node.args.get("expression")]
        for other in others:
            if isinstance(other, exp.Literal) and other.is_string and "%" not in other.name:
                found += _locate_literal(sql, table, column.name, other)
    return found[:MAX_LITERALS]


async def value_exists(database: Database, literal: TextLiteral) -> bool:
    """Return whether a row has the value; true if the query fails."""
    name, path = quote_name(literal.column, database.dialect), quote_table_path(literal.table, database.dialect)
    try:
        sql = f"SELECT 1 FROM {path} WHERE {name} = {_quote_text(literal.value)} LIMIT 1"  # noqa: S608 - quoted
        rows = await database.run(sql, None, LOOKUP_LIMITS)
    except ToolError:
        return True
    return bool(rows.rows)


def replace_literals(sql: str, changes: Sequence[tuple[TextLiteral, str]]) -> str:
    """Replace the texts of literals."""
    for literal, value in sorted(changes, key=lambda change: -change[0].start):
        sql = sql[: literal.start] + _quote_text(value) + sql[literal.end :]
    return sql


def move_literal(
    sql: str, database: Database, literal: TextLiteral, locations: Sequence[ValueLocation]
) -> tuple[str, ValueLocation] | None:
    """Compare the literal with the column that contains it.

    Returns:
        The SQL and the location; None unless exactly one location belongs to a source of the same SELECT.
    """
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(sql, dialect=database.dialect)
    found = [
        node
        for node in tree.find_all(exp.EQ)
        if isinstance(node.this, exp.Column)
        and isinstance(node.expression, exp.Literal)
        and (node.this.name.casefold(), node.expression.name) == (literal.column.casefold(), literal.value)
    ]
    if len(found) != 1:
        return None
    column, select = found[0].this, found[0].find_ancestor(exp.Select)
    if select is None:
        return None
    sources = [source for source in select.find_all(exp.Table) if source.find_ancestor(exp.Select) is select]
    fitting = [
        (source, place)
        for place in locations
        for source in sources
        if source.name.casefold() == place.table.rpartition(".")[2].casefold()
    ]
    if len(fitting) != 1:
        return None
    source, place = fitting[0]
    named = sqlglot.parse_one(quote_name(place.column, database.dialect), into=exp.Identifier, dialect=database.dialect)
    column.set("this", named)
    column.set("table", exp.to_identifier(source.alias_or_name) if len(sources) > 1 else None)
    found[0].set("expression", exp.Literal.string(place.value))
    return tree.sql(dialect=database.dialect), place


def _locate_literal(sql: str, table: Table, column: str, node: Any) -> list[TextLiteral]:
    """Return the literal with its position, if its quoted text occurs once in the SQL."""
    written = _quote_text(node.name)
    start = sql.find(written)
    if start < 0 or sql.find(written, start + 1) >= 0:
        return []
    return [TextLiteral(table, column, node.name, start, start + len(written))]


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
