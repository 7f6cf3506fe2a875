"""Analyses files of rows: describe, group, correlate, chart."""

import itertools
from pathlib import Path
from typing import Any, Literal

from opposable.builtin_tools.data_files.duckdb_view import Column, Table, opened_table
from opposable.builtin_tools.data_files.table_text import text_table
from opposable.domain.errors import FieldProblem, InvalidArguments
from opposable.safety.filesystem.allowed_roots import Roots

_MOST_ROWS = 200
_MOST_COLUMNS = 60
_MOST_NUMERIC = 20
_AGGREGATES = {
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
_NUMBERS_ONLY = ("sum", "mean", "median", "std")


class DataAnalyzer:
    """Analyses CSV, JSON, Parquet and Excel files under `roots`, the only folders that are read."""

    def __init__(self, roots: list[Path]) -> None:
        self._roots = Roots([Path(root) for root in roots])

    def describe(self, path: str, sheet: str | None = None) -> dict[str, Any]:
        """Describe every column of a file of rows: type, empty cells, distinct values, min, max, mean, quartiles.

        Args:
            path: the file, such as data/sales.csv.
            sheet: the sheet of an Excel file; the first when left out.
        """
        names = ("column", "type", "nulls", "distinct", "min", "max", "mean", "q25", "median", "q75")
        with opened_table(self._roots, path, sheet) as table:
            rows = [_described(table, column) for column in table.columns[:_MOST_COLUMNS]]
            result: dict[str, Any] = {"path": table.shown, "rows": table.count(), "columns": len(table.columns)}
        return result | _told(names, rows)

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
        with opened_table(self._roots, path, sheet) as table:
            names, rows, more = _grouped(table, by, column, aggregate, max(1, min(limit, _MOST_ROWS)))
            result: dict[str, Any] = {"path": table.shown} | _told(names, rows)
        return result | ({"note": f"Only the first {len(rows)} groups; there are more."} if more else {})

    def correlate(self, path: str, columns: list[str] | None = None, sheet: str | None = None) -> dict[str, Any]:
        """Correlate the numeric columns of a file pairwise (Pearson), strongest first.

        Args:
            path: the file, such as data/sales.csv.
            columns: the numeric columns; leave out for all.
            sheet: the sheet of an Excel file; the first when left out.
        """
        with opened_table(self._roots, path, sheet) as table:
            chosen = _numeric(table, columns)
            pairs = list(itertools.combinations(chosen, 2))
            asked = ", ".join(f"round(corr({a.quoted}, {b.quoted}), 6)" for a, b in pairs)
            [found] = table.rows(f"SELECT {asked} FROM data")  # noqa: S608 - names in quotes
            rows = [(a.name, b.name, value) for (a, b), value in zip(pairs, found, strict=True)]
            rows.sort(key=lambda row: -abs(row[2]) if isinstance(row[2], float | int) else 1)
            return {"path": table.shown} | _told(("a", "b", "correlation"), rows[:_MOST_ROWS])

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
        with opened_table(self._roots, path, sheet) as table:
            across = table.column(x, "x")
            colour = table.column(series, "series") if series else None
            up = table.column(y, "y") if y else None
            value = _value(up, aggregate or (None if type == "point" and up else "sum" if up else "count"))
            data, more = _chart_rows(
                table, across, colour, value, grouped=not (type == "point" and not aggregate and up)
            )
        spec: dict[str, Any] = {
            "type": type,
            "x": {"field": across.name, "type": _axis(across)},
            "y": {"field": value[0], "type": "quantitative"},
        }
        if colour is not None:
            spec["series"] = {"field": colour.name, "type": "nominal"}
        spec["data"] = data
        return {"path": path, "chart": spec} | ({"note": f"Only the first {_MOST_ROWS} rows."} if more else {})


def _told(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    return {"names": list(names), "values": [list(row) for row in rows], "table": text_table(names, rows)}


def _described(table: Table, column: Column) -> tuple[Any, ...]:
    q = column.quoted
    more = "NULL, NULL, NULL, NULL"
    if column.numeric:
        more = f"round(avg({q}), 6), " + ", ".join(f"quantile_cont({q}, {part})" for part in (0.25, 0.5, 0.75))
    asked = f"count(*) - count({q}), count(DISTINCT {q}), min({q}), max({q}), {more}"
    [row] = table.rows(f"SELECT {asked} FROM data")  # noqa: S608 - names in quotes
    return (column.name, column.type, *row)


def _value(column: Column | None, aggregate: str | None) -> tuple[str, str]:
    """The name and the SQL of what is aggregated. Raises: `InvalidArguments` where numbers are needed."""
    if column is None:
        return "count", "count(*)"
    if aggregate is None:
        return column.name, column.quoted
    if aggregate in _NUMBERS_ONLY and not column.numeric:
        problem = f"{aggregate} needs a column of numbers, and {column.name} holds {column.type}; count or distinct fit"
        raise InvalidArguments((FieldProblem("aggregate", problem, repr(aggregate)),))
    return f"{aggregate}({column.name})", _AGGREGATES[aggregate].format(column.quoted)


def _grouped(
    table: Table, by: list[str], column: str | None, aggregate: str, limit: int
) -> tuple[tuple[str, ...], list[tuple[Any, ...]], bool]:
    if not by:
        raise InvalidArguments((FieldProblem("by", "give at least one column to group by", "[]"),))
    keys = [table.column(name, "by") for name in by]
    name, asked = _value(table.column(column) if column else None, aggregate)
    listed = ", ".join(key.quoted for key in keys)
    sql = f"SELECT {listed}, {asked} AS v FROM data GROUP BY {listed} ORDER BY v DESC NULLS LAST, {listed} LIMIT ?"  # noqa: S608
    rows = table.rows(sql, [limit + 1])
    return (*(key.name for key in keys), name), rows[:limit], len(rows) > limit


def _numeric(table: Table, names: list[str] | None) -> list[Column]:
    chosen = [table.column(name, "columns") for name in names] if names else [c for c in table.columns if c.numeric]
    text = [column.name for column in chosen if not column.numeric]
    if text:
        raise InvalidArguments((FieldProblem("columns", f"{', '.join(text)} hold no numbers", None),))
    if len(chosen) < 2:
        numeric = ", ".join(column.name for column in table.columns if column.numeric) or "none"
        problem = f"two columns of numbers are needed; this file's are {numeric}"
        raise InvalidArguments((FieldProblem("columns", problem, None),))
    return chosen[:_MOST_NUMERIC]


def _chart_rows(
    table: Table, x: Column, series: Column | None, value: tuple[str, str], *, grouped: bool
) -> tuple[list[dict[str, Any]], bool]:
    keys = [x, *([series] if series else [])]
    listed = ", ".join(key.quoted for key in keys)
    group = f" GROUP BY {listed}" if grouped else ""
    sql = f"SELECT {listed}, {value[1]} AS v FROM data{group} ORDER BY {listed} LIMIT ?"  # noqa: S608 - names in quotes
    rows = table.rows(sql, [_MOST_ROWS + 1])
    names = [*(key.name for key in keys), value[0]]
    return [dict(zip(names, row, strict=True)) for row in rows[:_MOST_ROWS]], len(rows) > _MOST_ROWS


def _axis(column: Column) -> str:
    if column.numeric:
        return "quantitative"
    return "temporal" if column.type.startswith(("DATE", "TIME")) else "nominal"
