"""Tool that describes, groups, correlates and charts data files."""

import itertools
from pathlib import Path
from typing import Any, Literal

from opposable.builtin_tools.data_files.duckdb_view import DataFileColumn, DataFileTable, open_table
from opposable.builtin_tools.data_files.table_text import format_table
from opposable.domain.errors import FieldProblem, InvalidArguments
from opposable.safety.filesystem.allowed_roots import AllowedRoots

_MAX_ROWS = 200
_MAX_COLUMNS = 60
_MAX_NUMERIC_COLUMNS = 20
_AGGREGATE_SQL = {
    "count": "count({})",
    "sum": "sum({})",
    "mean": "avg({})",
    "min": "min({})",
    "max": "max({})",
    "median": "median({})",
    "distinct": "count(DISTINCT {})",
    "std": "stddev_samp({})",
}
Aggregate = Literal["count", "sum", "mean", "min", "max", "median", "distinct", "std"]
ChartType = Literal["bar", "line", "area", "point", "pie"]
_NUMERIC_AGGREGATES = ("sum", "mean", "median", "std")


class DataAnalyzer:
    """Analysis of CSV, JSON, Parquet and Excel files under `roots`, the only folders that are read."""

    def __init__(self, roots: list[Path]) -> None:
        self._roots = AllowedRoots([Path(root) for root in roots])

    def describe(self, path: str, sheet: str | None = None) -> dict[str, Any]:
        """Describe every column of a file of rows: type, empty cells, distinct values, min, max, mean, quartiles.

        Args:
            path: the file, such as data/sales.csv.
            sheet: the sheet of an Excel file; the first when left out.
        """
        names = ("column", "type", "nulls", "distinct", "min", "max", "mean", "q25", "median", "q75")
        with open_table(self._roots, path, sheet) as table:
            rows = [_describe_column(table, column) for column in table.columns[:_MAX_COLUMNS]]
            counts = {"rows": table.count_rows(), "columns": len(table.columns)}
        return {"path": table.display_path, **counts, **_to_result(names, rows)}

    def group(
        self,
        path: str,
        by: list[str],
        column: str | None = None,
        aggregate: Aggregate = "count",
        limit: int = 20,
        sheet: str | None = None,
    ) -> dict[str, Any]:
        """Group the rows of a file by columns and aggregate one column; the largest results come first.

        Args:
            path: the file, such as data/sales.csv.
            by: the columns to group by.
            column: the column to aggregate; leave out to count rows.
            aggregate: how to aggregate it.
            limit: how many groups to return.
            sheet: the sheet of an Excel file; the first when left out.
        """
        with open_table(self._roots, path, sheet) as table:
            names, rows, has_more = _query_groups(table, by, column, aggregate, max(1, min(limit, _MAX_ROWS)))
        result = {"path": table.display_path, **_to_result(names, rows)}
        return result | ({"note": f"Only the first {len(rows)} groups; there are more."} if has_more else {})

    def correlate(self, path: str, columns: list[str] | None = None, sheet: str | None = None) -> dict[str, Any]:
        """Correlate the numeric columns of a file pairwise (Pearson), strongest first.

        Args:
            path: the file, such as data/sales.csv.
            columns: the numeric columns; leave out for all.
            sheet: the sheet of an Excel file; the first when left out.
        """
        with open_table(self._roots, path, sheet) as table:
            numeric_columns = _select_numeric_columns(table, columns)
            pairs = list(itertools.combinations(numeric_columns, 2))
            correlations_sql = ", ".join(f"round(corr({a.quoted_name}, {b.quoted_name}), 6)" for a, b in pairs)
            [correlations] = table.fetch_rows(f"SELECT {correlations_sql} FROM data")  # noqa: S608 - names in quotes
            rows = [(a.name, b.name, value) for (a, b), value in zip(pairs, correlations, strict=True)]
            rows.sort(key=lambda row: -abs(row[2]) if isinstance(row[2], float | int) else 1)
            return {"path": table.display_path} | _to_result(("a", "b", "correlation"), rows[:_MAX_ROWS])

    def chart(
        self,
        path: str,
        type: ChartType,
        x: str,
        y: str | None = None,
        series: str | None = None,
        aggregate: Aggregate | None = None,
        sheet: str | None = None,
    ) -> dict[str, Any]:
        """Make a chart specification with its data from a file of rows.

        Args:
            path: the file, such as data/sales.csv.
            type: the kind of chart.
            x: the column of the x axis, or of a pie's slices.
            y: the column of the y axis; leave out to count rows.
            series: a column whose values become lines or colours of their own.
            aggregate: how the y values of one x are put together; sum when left out, for points none.
            sheet: the sheet of an Excel file; the first when left out.
        """
        with open_table(self._roots, path, sheet) as table:
            x_column = table.find_column(x, "x")
            series_column = table.find_column(series, "series") if series else None
            y_column = table.find_column(y, "y") if y else None
            is_grouped = type != "point" or aggregate is not None or y_column is None
            value = _build_value_sql(y_column, aggregate or ("sum" if is_grouped else None))
            data, has_more = _query_chart_rows(table, x_column, series_column, value, is_grouped=is_grouped)
        spec: dict[str, Any] = {
            "type": type,
            "x": {"field": x_column.name, "type": _get_axis_type(x_column)},
            "y": {"field": value[0], "type": "quantitative"},
        }
        if series_column is not None:
            spec["series"] = {"field": series_column.name, "type": "nominal"}
        spec["data"] = data
        return {"path": path, "chart": spec} | ({"note": f"Only the first {_MAX_ROWS} rows."} if has_more else {})


def _to_result(column_names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    return {
        "names": list(column_names),
        "values": [list(row) for row in rows],
        "table": format_table(column_names, rows),
    }


def _describe_column(table: DataFileTable, column: DataFileColumn) -> tuple[Any, ...]:
    column_sql = column.quoted_name
    statistics_sql = "NULL, NULL, NULL, NULL"
    if column.is_numeric:
        statistics_sql = f"round(avg({column_sql}), 6), " + ", ".join(
            f"quantile_cont({column_sql}, {quantile})" for quantile in (0.25, 0.5, 0.75)
        )
    select_sql = f"count(*) - count({column_sql}), count(DISTINCT {column_sql}), min({column_sql}), max({column_sql}), {statistics_sql}"
    [row] = table.fetch_rows(f"SELECT {select_sql} FROM data")  # noqa: S608 - names in quotes
    return (column.name, column.type, *row)


def _build_value_sql(column: DataFileColumn | None, aggregate: str | None) -> tuple[str, str]:
    """Return the name and the SQL of an aggregated value.

    Raises:
        InvalidArguments: The aggregate needs numbers and the column has none.
    """
    if column is None:
        return "count", "count(*)"
    if aggregate is None:
        return column.name, column.quoted_name
    if aggregate in _NUMERIC_AGGREGATES and not column.is_numeric:
        problem = f"{aggregate} needs a column of numbers, and {column.name} holds {column.type}; count or distinct fit"
        raise InvalidArguments((FieldProblem("aggregate", problem, repr(aggregate)),))
    return f"{aggregate}({column.name})", _AGGREGATE_SQL[aggregate].format(column.quoted_name)


def _query_groups(
    table: DataFileTable, by: list[str], column: str | None, aggregate: str, limit: int
) -> tuple[tuple[str, ...], list[tuple[Any, ...]], bool]:
    if not by:
        raise InvalidArguments((FieldProblem("by", "give at least one column to group by", "[]"),))
    keys = [table.find_column(name, "by") for name in by]
    name, value_sql = _build_value_sql(table.find_column(column) if column else None, aggregate)
    keys_sql = ", ".join(key.quoted_name for key in keys)
    sql = f"SELECT {keys_sql}, {value_sql} FROM data GROUP BY {keys_sql} ORDER BY {len(keys) + 1} DESC NULLS LAST, {keys_sql} LIMIT ?"  # noqa: S608
    rows = table.fetch_rows(sql, [limit + 1])
    return (*(key.name for key in keys), name), rows[:limit], len(rows) > limit


def _select_numeric_columns(table: DataFileTable, column_names: list[str] | None) -> list[DataFileColumn]:
    columns = (
        [table.find_column(name, "columns") for name in column_names]
        if column_names
        else [column for column in table.columns if column.is_numeric]
    )
    text_columns = [column.name for column in columns if not column.is_numeric]
    if text_columns:
        raise InvalidArguments((FieldProblem("columns", f"{', '.join(text_columns)} hold no numbers", None),))
    if len(columns) < 2:
        numeric_names = ", ".join(column.name for column in table.columns if column.is_numeric) or "none"
        problem = f"two columns of numbers are needed; this file's are {numeric_names}"
        raise InvalidArguments((FieldProblem("columns", problem, None),))
    return columns[:_MAX_NUMERIC_COLUMNS]


def _query_chart_rows(
    table: DataFileTable,
    x: DataFileColumn,
    series: DataFileColumn | None,
    named_value_sql: tuple[str, str],
    *,
    is_grouped: bool,
) -> tuple[list[dict[str, Any]], bool]:
    keys = [x, series] if series else [x]
    keys_sql = ", ".join(key.quoted_name for key in keys)
    group_sql = f" GROUP BY {keys_sql}" if is_grouped else ""
    sql = f"SELECT {keys_sql}, {named_value_sql[1]} FROM data{group_sql} ORDER BY {keys_sql} LIMIT ?"  # noqa: S608 - names in quotes
    rows = table.fetch_rows(sql, [_MAX_ROWS + 1])
    names = [*(key.name for key in keys), named_value_sql[0]]
    return [dict(zip(names, row, strict=True)) for row in rows[:_MAX_ROWS]], len(rows) > _MAX_ROWS


def _get_axis_type(column: DataFileColumn) -> str:
    if column.is_numeric:
        return "quantitative"
    return "temporal" if column.type.startswith(("DATE", "TIME")) else "nominal"
