"""Conversion of an engine's rows to a bounded `QueryResult`."""

from collections.abc import Sequence
from typing import Any

from opposable.sql.database import Database, QueryLimits, QueryResult
from opposable.sql.json_values import to_json_value, truncate_cell
from opposable.sql.schema import Table, quote_name, quote_table_path

SAMPLED_ROWS = 1_000
"""Rows that are read for a column's sample values."""


def build_query_result(
    columns: tuple[str, ...], fetched_rows: Sequence[Sequence[Any]], limits: QueryLimits, seconds: float
) -> QueryResult:
    """Return the result of a query, within the limits.

    `fetched_rows` has one row more than the limit where the query has more.
    """
    cut = 0
    rows: list[tuple[Any, ...]] = []
    for row in fetched_rows[: limits.max_rows]:
        cells = [truncate_cell(to_json_value(value), limits.max_cell_characters) for value in row]
        cut += sum(was_cut for _, was_cut in cells)
        rows.append(tuple(value for value, _ in cells))
    return QueryResult(columns, tuple(rows), len(fetched_rows) > limits.max_rows, cut, round(seconds, 4))


async def sample_columns(database: Database, table: Table, limit: int = 3) -> dict[str, list[Any]]:
    """Return up to `limit` distinct values of each column from the first rows of a table, with one query for each."""
    dialect, path = database.dialect, quote_table_path(table, database.dialect)
    samples: dict[str, list[Any]] = {}
    for column in table.columns:
        name = quote_name(column.name, dialect)
        if dialect in ("mysql", "postgres"):  # a server may be slow to sort, or cannot compare values such as JSON
            sql = f"SELECT {name} FROM {path} WHERE {name} IS NOT NULL LIMIT {SAMPLED_ROWS}"  # noqa: S608 - names in quotes
            rows = (await database.run(sql, limits=QueryLimits(SAMPLED_ROWS, 80))).rows
            value_by_text = {str(row[0]): row[0] for row in reversed(rows) if row[0] is not None}
            samples[column.name] = [value_by_text[text] for text in sorted(value_by_text)[:limit]]
            continue
        rest = "AND length(v) <= 200" if dialect == "sqlite" else "ORDER BY v"
        source = f"SELECT {name} AS v FROM {path} LIMIT {SAMPLED_ROWS}"  # noqa: S608 - names in quotes
        sql = f"SELECT DISTINCT v FROM ({source}) WHERE v IS NOT NULL {rest} LIMIT {limit}"  # noqa: S608 - made above
        samples[column.name] = [row[0] for row in (await database.run(sql, limits=QueryLimits(limit, 80))).rows]
    return samples
