"""Tools that let a model read the schema and the rows of a database."""

from typing import Any

from opposable.domain.argument_problems import must_be
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolFailed, ToolRefused
from opposable.sql.database import DEFAULT_LIMITS, Database, QueryLimits, QueryResult
from opposable.sql.errors import QueryTimedOut
from opposable.sql.name_checker import check_names
from opposable.sql.name_problems import NameProblem
from opposable.sql.name_repair import RepairedQuery, repair_names
from opposable.sql.placeholders import BoundSql, bind_placeholders, find_other_marks
from opposable.sql.result_rows import sample_columns
from opposable.sql.schema import DatabaseSchema, Table, to_one_line
from opposable.sql.statement_guard import parse_safe_query
from opposable.sql.translation import SourceDialect, translate

MAX_ROWS = 1_000
TOOL_ALIASES = {"execute_sql": "sql.execute", "get_schema": "schema.list_columns", "validate_sql": "sql.validate"}
"""Alternative names of these tools, with their ids."""
PARAMETER_ALIASES = {"table_name": "table", "database": ""}
"""Alternative names of parameters. `database` is ignored: the tools are over one database."""


class SchemaTools:
    """What the database holds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_tables(self) -> list[dict[str, Any]]:
        """List all tables and views of the database with their sizes."""
        return [_table_to_json(table) for table in (await self._database.get_schema()).tables]

    async def list_columns(
        self, table: str, include_types: bool = True, samples: bool = False
    ) -> dict[str, str | list[dict[str, Any]]]:
        """List the columns of one table, with keys and comments.

        Args:
            table: Name of the table, as list_tables gives it.
            include_types: Also tell each column's type and whether it may be null.
            samples: Also show a few real values of each column.
        """
        found_table = _require_table(await self._database.get_schema(), table)
        values = await sample_columns(self._database, found_table) if samples else {}
        columns: list[dict[str, Any]] = []
        for column in found_table.columns:
            entry: dict[str, Any] = {"name": column.name}
            if include_types:
                entry |= {"type": column.type, "nullable": column.nullable}
            entry |= {"primary_key": True} if column.primary_key else {}
            entry |= {"references": column.references} if column.references else {}
            entry |= {"comment": to_one_line(column.comment)} if column.comment else {}
            entry |= {"samples": values.get(column.name, [])} if samples else {}
            columns.append(entry)
        return {"table": found_table.full_name, "columns": columns}


class SqlTools:
    """Queries: checked, repaired, run.

    With `binds_placeholders`, `{{name}}` stands for a value; otherwise it is text of the query.
    """

    def __init__(
        self, database: Database, limits: QueryLimits = DEFAULT_LIMITS, *, binds_placeholders: bool = True
    ) -> None:
        self._database = database
        self._limits = limits
        self._binds_placeholders = binds_placeholders

    async def validate(self, sql: str) -> dict[str, Any]:
        """Check that a query is one safe SELECT, that its names exist, and that the database can plan it.

        Args:
            sql: The query. {{name}} stands for a value given later.
        """
        bound = await self._bind_with_nulls(sql)
        if not await self._accept(bound):
            query = parse_safe_query(bound.sql, self._database.dialect, await self._database.get_schema())
            _raise_problems(check_names(query, await self._database.get_schema()), query.sql)
            await self._database.explain(query.sql, bound.values, self._limits)
        return {"valid": True, "dialect": self._database.dialect}

    async def validate_columns(self, sql: str, table: str | None = None) -> dict[str, Any]:
        """Check every table and column name of a query against the database.

        Args:
            sql: The query.
            table: Only report problems of this table's columns; all are reported without it.
        """
        schema = await self._database.get_schema()
        bound = await self._bind_with_nulls(sql)
        query = parse_safe_query(bound.sql, self._database.dialect, schema)
        problems = check_names(query, schema)
        if self._database.dialect != "sqlite" and problems and await self._accept(bound):
            problems = ()  # SQLite alone accepts unknown names: in double quotes, as text
        if table is not None:
            name = _require_table(schema, table).full_name
            problems = tuple(p for p in problems if name in p.tables)
        return {
            "valid": not problems,
            "problems": [
                {"name": p.name, "problem": p.message, "fix": p.repair.description if p.repair else None}
                for p in problems
            ],
        }

    async def auto_fix_columns(self, sql: str) -> dict[str, Any]:
        """Put wrong table and column names right where only one name can have been meant.

        Args:
            sql: The query.
        """
        schema = await self._database.get_schema()
        bound = await self._bind_with_nulls(sql)
        if await self._accept(bound):
            return {"sql": sql, "corrections": [], "problems": []}
        repaired = repair_names(bound.sql, self._database.dialect, schema)
        return {
            "sql": bound.restore_placeholders(repaired.query.sql),
            "corrections": list(repaired.corrections),
            "problems": [problem.message for problem in repaired.problems],
        }

    async def refine(self, sql: str, read_dialect: SourceDialect | None = None) -> dict[str, Any]:
        """Mend a query that does not run here: names that can mean only one thing are put right.

        Args:
            sql: The query.
            read_dialect: The SQL dialect it is written in, if it is another one. It is translated from that dialect.
        """
        corrections, candidate = [], sql
        try:
            if read_dialect is not None and read_dialect != self._database.dialect:
                candidate = translate(sql, read_dialect, self._database.dialect, await self._database.get_schema())
                corrections = [f"translated from {read_dialect}"]
            bound = await self._bind_with_nulls(candidate)
            if await self._accept(bound):
                return {"sql": candidate, "valid": True, "corrections": corrections, "problem": None}
            repaired = await self._repair(bound)
        except (ToolRefused, ToolFailed, InvalidArguments) as error:
            return {"sql": sql, "valid": False, "corrections": [], "problem": str(error)}
        corrections += repaired.corrections
        repaired_sql = bound.restore_placeholders(repaired.query.sql)
        return {"sql": repaired_sql, "valid": True, "corrections": corrections, "problem": None}

    async def execute(
        self, sql: str, parameters: dict[str, Any] | None = None, limit: int | None = None
    ) -> dict[str, Any]:
        """Run one SELECT and return its rows. Wrong names are put right first where that is certain.

        Args:
            sql: The query. {{name}} stands for the value of that name in parameters.
            parameters: Values for the {{name}}s in the query.
            limit: The most rows to return, 1 to 1000 (default: 100).
        """
        limit = self._limits.max_rows if limit is None else limit
        if limit < 1:
            raise InvalidArguments((FieldProblem("limit", must_be("1 to 1000"), str(limit)),))
        bound = BoundSql(sql, dialect=self._database.dialect)
        if self._binds_placeholders:
            names = (await self._database.get_schema()).names
            bound = bind_placeholders(sql, self._database.dialect, parameters, identifiers=names)
        accepted = await self._accept(bound)
        if not accepted and (problems := find_other_marks(bound, parameters or {})):
            raise InvalidArguments(problems)
        repaired = accepted or await self._repair(bound)
        bounds = QueryLimits(min(limit, MAX_ROWS), self._limits.max_cell_characters, self._limits.timeout_seconds)
        result = await self._database.run(repaired.query.sql, bound.values, bounds)
        reported_sql = sql if accepted and not bound.values else bound.restore_placeholders(repaired.query.sql)
        return _result_to_json(result, reported_sql, repaired.corrections)

    async def _accept(self, bound: BoundSql) -> RepairedQuery | None:
        """Return the query unchanged if it is safe and the engine accepts it, else None. Raises: `ToolRefused`."""
        schema = await self._database.get_schema()
        try:
            query = parse_safe_query(bound.sql, self._database.dialect, schema)
        except InvalidArguments:
            return None
        try:
            await self._database.explain(query.sql, bound.values, self._limits)
        except QueryTimedOut:
            raise
        except (ToolFailed, ToolRefused):  # PostgreSQL's tables without rights, or without existence
            return None
        return RepairedQuery(query, (), ())

    async def _repair(self, bound: BoundSql) -> RepairedQuery:
        repaired = repair_names(bound.sql, self._database.dialect, await self._database.get_schema())
        _raise_problems(repaired.problems, repaired.query.sql)
        await self._database.explain(repaired.query.sql, bound.values, self._limits)
        return repaired

    async def _bind_with_nulls(self, sql: str) -> BoundSql:
        """Bind every placeholder to NULL, for checks before the values are known."""
        names = (await self._database.get_schema()).names
        return bind_placeholders(sql, self._database.dialect, missing_is_null=True, identifiers=names)


def _require_table(schema: DatabaseSchema, name: str) -> Table:
    table = schema.find_table(name)
    if table is not None:
        return table
    if similar_names := schema.similar_tables(name):
        problem = f"there is no such table; did you mean {', '.join(similar_names)}?"
    else:
        names = ", ".join(table.full_name for table in schema.tables[:20])
        problem = f"there is no such table; the tables are {names}"
    raise InvalidArguments((FieldProblem("table", problem, name),))


def _table_to_json(table: Table) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": table.full_name, "kind": table.kind, "columns": len(table.columns)}
    if table.row_count is not None:
        entry |= {"rows": table.row_count} if table.is_row_count_exact else {"rows_about": table.row_count}
    return entry | ({"comment": to_one_line(table.comment)} if table.comment else {})


def _result_to_json(result: QueryResult, sql: str, corrections: tuple[str, ...]) -> dict[str, Any]:
    return {
        "columns": list(result.columns),
        "rows": [list(row) for row in result.rows],
        "row_count": len(result.rows),
        "truncated": result.truncated,
        "cut_cells": result.truncated_cells,
        "seconds": result.seconds,
        "sql": sql,
        "corrections": list(corrections),
    }


def _raise_problems(problems: tuple[NameProblem, ...], sql: str) -> None:
    if problems:
        raise InvalidArguments(tuple(FieldProblem("sql", p.message, to_one_line(sql)) for p in problems))
