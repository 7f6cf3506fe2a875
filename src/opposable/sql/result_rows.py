"""Conversion of an engine's rows to a bounded `QueryResult`."""

from collections.abc import Sequence
from typing import Any

from opposable.sql.database import QueryLimits, QueryResult
from opposable.sql.json_values import to_json_value, truncate_cell


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
