"""The values a query compares columns with, and those of them that no row has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from opposable.domain.errors import ToolError
from opposable.sql.database import Database, Limits
from opposable.sql.schema import Schema, Table, quoted, quoted_path

LIMITS = Limits(rows=20, cell_characters=200, seconds=2.0)
MOST = 6
"""Values of one query that are looked up."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A text that a query compares a column with. `start` and `end` are where it stands in the SQL, quotes included."""

    table: Table
    column: str
    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Place:
    """A value and the column it stands in; `table` is a full name."""

    table: str
    column: str
    value: str


class NearValues(Protocol):
    """Finds real values of a column that a text may have been meant for."""

    async def near(self, table: Table, column: str, value: str) -> Sequence[str]:
        """The nearest first; none where nothing is near."""
        ...

    async def places(self, value: str) -> Sequence[Place]:
        """Where the very text stands, whatever its case; none where that is not known."""
        ...


class ValuesByQuery:
    """Finds near values by asking the database itself: the same in another case, or with the text inside."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def near(self, table: Table, column: str, value: str) -> Sequence[str]:
        """As `NearValues.near`; none where the database does not answer in time."""
        name, path = quoted(column, self._database.dialect), quoted_path(table, self._database.dialect)
        folded = value.casefold().strip()
        if not folded:
            return ()
        inside = folded.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        text = f"lower(CAST({name} AS VARCHAR(200)))"
        has = f"{text} LIKE {_text(f'%{inside}%')} ESCAPE '\\'"
        within = f"{name} IS NOT NULL AND length({text}) > 2 AND {_text(folded)} LIKE '%' || {text} || '%'"
        # Names and texts are quoted, and the database only reads.
        sql = f"SELECT DISTINCT CAST({name} AS VARCHAR(200)) AS v FROM {path} WHERE {has} OR ({within}) LIMIT 20"  # noqa: S608
        try:
            rows = await self._database.run(sql, None, LIMITS)
        except ToolError:
            return ()
        found = [str(row[0]) for row in rows.rows if row[0] is not None]
        return sorted(found, key=lambda one: (one.casefold().strip() != folded, abs(len(one) - len(value)), one))

    async def places(self, value: str) -> Sequence[Place]:
        """As `NearValues.places`: not known."""
        return ()


def literals(sql: str, database: Database, schema: Schema) -> list[Literal]:
    """The texts that the query compares a table's column with by =, IN or LIKE without wildcards."""
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
        table = _table_of(column, node, schema)
        if table is None:
            continue
        others = node.expressions if isinstance(node, exp.In) else [node.this, node.args.get("expression")]
        for other in others:
            if isinstance(other, exp.Literal) and other.is_string and "%" not in other.name:
                found += _placed(sql, table, column.name, other)
    return found[:MOST]


async def exists(database: Database, literal: Literal) -> bool:
    """Whether some row has the value; true where that cannot be found out."""
    name, path = quoted(literal.column, database.dialect), quoted_path(literal.table, database.dialect)
    try:
        rows = await database.run(f"SELECT 1 FROM {path} WHERE {name} = {_text(literal.value)} LIMIT 1", None, LIMITS)  # noqa: S608
    except ToolError:
        return True
    return bool(rows.rows)


def replaced(sql: str, changes: Sequence[tuple[Literal, str]]) -> str:
    """The SQL with each literal's text replaced."""
    for literal, value in sorted(changes, key=lambda change: -change[0].start):
        sql = sql[: literal.start] + _text(value) + sql[literal.end :]
    return sql


def moved(sql: str, database: Database, literal: Literal, places: Sequence[Place]) -> tuple[str, Place] | None:
    """The SQL with the literal compared with the column it stands in; None unless just one of those is at hand there.

    At hand are the columns of the tables that the same SELECT reads.
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
        for place in places
        for source in sources
        if source.name.casefold() == place.table.rpartition(".")[2].casefold()
    ]
    if len(fitting) != 1:
        return None
    source, place = fitting[0]
    named = sqlglot.parse_one(quoted(place.column, database.dialect), into=exp.Identifier, dialect=database.dialect)
    column.set("this", named)
    column.set("table", exp.to_identifier(source.alias_or_name) if len(sources) > 1 else None)
    found[0].set("expression", exp.Literal.string(place.value))
    return tree.sql(dialect=database.dialect), place


def _placed(sql: str, table: Table, column: str, node: Any) -> list[Literal]:
    """The literal with its place in the text: where it stands there just once, quoted."""
    written = _text(node.name)
    start = sql.find(written)
    if start < 0 or sql.find(written, start + 1) >= 0:
        return []
    return [Literal(table, column, node.name, start, start + len(written))]


def _table_of(column: Any, node: Any, schema: Schema) -> Table | None:
    """The table a column belongs to: by its qualifier, else the one in the same SELECT that has it."""
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


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
