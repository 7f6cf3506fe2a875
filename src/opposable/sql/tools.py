"""The tools a model reads a database with: what it holds, whether a query is right, and what it brings."""

import contextlib
from collections.abc import Iterator
from typing import Any

from opposable.domain.errors import FieldProblem, InvalidArguments, ToolFailed, ToolRefused
from opposable.sql.database import Database, Limits, Rows
from opposable.sql.function_allowlist import Dialect
from opposable.sql.name_checker import NameProblem, check_names
from opposable.sql.name_repair import Fixed, fix_names
from opposable.sql.placeholders import Bound, bind
from opposable.sql.schema import Schema, Table, one_line
from opposable.sql.statement_guard import MAX_CHARACTERS, guard

MAX_ROWS = 1_000
ALIASES = {"execute_sql": "sql.execute", "get_schema": "schema.list_columns", "validate_sql": "sql.validate"}
"""Other names these tools are known by, with their ids."""
_OTHER_DIALECTS = ("mysql", "tsql", "sqlite", "duckdb", "postgres", "bigquery", "snowflake", "oracle")


class SchemaTools:
    """What the database holds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_tables(self) -> list[dict[str, Any]]:
        """List all tables and views of the database with their sizes."""
        return [_told_table(table) for table in (await self._database.schema()).tables]

    async def list_columns(
        self, table: str, include_types: bool = True, samples: bool = False
    ) -> dict[str, str | list[dict[str, Any]]]:
        """List the columns of one table, with keys and comments.

        Args:
            table: Name of the table, as list_tables gives it.
            include_types: Also tell each column's type and whether it may be null.
            samples: Also show a few real values of each column.
        """
        found = _table(await self._database.schema(), table)
        values = await self._database.samples(found.full_name) if samples else {}
        columns: list[dict[str, Any]] = []
        for column in found.columns:
            told: dict[str, Any] = {"name": column.name}
            if include_types:
                told |= {"type": column.type, "nullable": column.nullable}
            told |= {"primary_key": True} if column.primary_key else {}
            told |= {"references": column.references} if column.references else {}
            told |= {"comment": one_line(column.comment)} if column.comment else {}
            told |= {"samples": values.get(column.name, [])} if samples else {}
            columns.append(told)
        return {"table": found.full_name, "columns": columns}


class SqlTools:
    """Queries: checked, repaired, run."""

    def __init__(self, database: Database, limits: Limits | None = None) -> None:
        self._database = database
        self._limits = limits or Limits()

    async def validate(self, sql: str) -> dict[str, Any]:
        """Check that a query is one safe SELECT, that its names exist, and that the database can plan it.

        Args:
            sql: The query. {{name}} stands for a value given later.
        """
        bound = await self._bound_loosely(sql)
        query = guard(bound.sql, self._database.dialect, await self._database.schema())
        _raise_problems(check_names(query, await self._database.schema()), query.sql)
        await self._database.explain(query.sql, bound.values, self._limits)
        return {"valid": True, "dialect": self._database.dialect}

    async def validate_columns(self, sql: str, table: str | None = None) -> dict[str, Any]:
        """Check every table and column name of a query against the database.

        Args:
            sql: The query.
            table: Only report problems of this table's columns; all are reported without it.
        """
        schema = await self._database.schema()
        query = guard((await self._bound_loosely(sql)).sql, self._database.dialect, schema)
        problems = check_names(query, schema)
        if table is not None:
            name = _table(schema, table).full_name
            problems = tuple(p for p in problems if name.casefold() in p.sentence.casefold())
        return {
            "valid": not problems,
            "problems": [
                {"name": p.name, "problem": p.sentence, "fix": p.repair.told if p.repair else None} for p in problems
            ],
        }

    async def auto_fix_columns(self, sql: str) -> dict[str, Any]:
        """Put wrong table, alias and column names right where only one name can have been meant.

        Args:
            sql: The query.
        """
        schema = await self._database.schema()
        bound = await self._bound_loosely(sql)
        fixed = fix_names(bound.sql, self._database.dialect, schema)
        return {
            "sql": bound.restored(fixed.query.sql),
            "corrections": list(fixed.corrections),
            "problems": [problem.sentence for problem in fixed.problems],
        }

    async def refine(self, sql: str) -> dict[str, Any]:
        """Mend a query that does not run here by the smallest change: names put right, other dialects' SQL translated.

        Args:
            sql: The query.
        """
        problem = ""
        for candidate, told in _readings(sql, self._database.dialect):
            try:
                bound = await self._bound_loosely(candidate)
                fixed = await self._fixed(bound)
                await self._database.explain(fixed.query.sql, bound.values, self._limits)
            except (ToolRefused, ToolFailed, InvalidArguments) as error:
                problem = problem or str(error)
                continue
            corrections = [*told, *fixed.corrections]
            mended = bound.restored(fixed.query.sql)
            return {"sql": mended, "valid": True, "corrections": corrections, "problem": None}
        return {"sql": sql, "valid": False, "corrections": [], "problem": problem}

    async def execute(self, sql: str, parameters: dict[str, Any] | None = None, limit: int = 100) -> dict[str, Any]:
        """Run one SELECT and return its rows. Wrong names are put right first where that is certain.

        Args:
            sql: The query. {{name}} stands for the value of that name in parameters.
            parameters: Values for the {{name}}s in the query.
            limit: The most rows to return, 1 to 1000.
        """
        if limit < 1:
            raise InvalidArguments((FieldProblem("limit", "must be 1 to 1000", str(limit)),))
        bound = bind(sql, self._database.dialect, parameters, names=(await self._database.schema()).names)
        fixed = await self._fixed(bound)
        await self._database.explain(fixed.query.sql, bound.values, self._limits)
        bounds = Limits(min(limit, MAX_ROWS), self._limits.cell_characters, self._limits.seconds)
        rows = await self._database.run(fixed.query.sql, bound.values, bounds)
        return _told_rows(rows, bound.restored(fixed.query.sql), fixed.corrections)

    async def _fixed(self, bound: Bound) -> Fixed:
        fixed = fix_names(bound.sql, self._database.dialect, await self._database.schema())
        _raise_problems(fixed.problems, fixed.query.sql)
        return fixed

    async def _bound_loosely(self, sql: str) -> Bound:
        """The SQL with every placeholder bound to NULL: for checks that come before the values are known."""
        names = (await self._database.schema()).names
        return bind(sql, self._database.dialect, missing_is_null=True, names=names)


def _readings(sql: str, dialect: Dialect) -> Iterator[tuple[str, list[str]]]:
    """The query as it is, then as each other dialect would have meant it."""
    import sqlglot
    from sqlglot.errors import ErrorLevel, SqlglotError

    yield sql, []
    seen = {sql}
    for other in _OTHER_DIALECTS:
        if len(sql) > MAX_CHARACTERS or other == dialect:
            continue
        with contextlib.suppress(SqlglotError, RecursionError, ValueError):
            read = sqlglot.transpile(sql, read=other, write=dialect, unsupported_level=ErrorLevel.IGNORE)
            if len(read) == 1 and read[0] not in seen:
                seen.add(read[0])
                yield read[0], [f"read as {other}"]


def _table(schema: Schema, name: str) -> Table:
    found = schema.find_table(name)
    if found is not None:
        return found
    near = schema.similar_tables(name)
    names = near or tuple(table.full_name for table in schema.tables[:20])
    told = f"there is no such table; {'did you mean' if near else 'the tables are'} {', '.join(names)}"
    raise InvalidArguments((FieldProblem("table", f"{told}{'?' if near else ''}", name),))


def _told_table(table: Table) -> dict[str, Any]:
    told: dict[str, Any] = {"name": table.full_name, "kind": table.kind, "columns": len(table.columns)}
    if table.rows is not None:
        told |= {"rows": table.rows} if table.rows_exact else {"rows_about": table.rows}
    return told | ({"comment": one_line(table.comment)} if table.comment else {})


def _told_rows(rows: Rows, sql: str, corrections: tuple[str, ...]) -> dict[str, Any]:
    return {
        "columns": list(rows.columns),
        "rows": [list(row) for row in rows.rows],
        "row_count": len(rows.rows),
        "truncated": rows.truncated,
        "cut_cells": rows.cut_cells,
        "seconds": rows.seconds,
        "sql": sql,
        "corrections": list(corrections),
    }


def _raise_problems(problems: tuple[NameProblem, ...], sql: str) -> None:
    if problems:
        raise InvalidArguments(tuple(FieldProblem("sql", p.sentence, one_line(sql)) for p in problems))
