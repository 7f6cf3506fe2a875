"""Days and periods as sqlglot trees of the SQL dialects."""

import datetime
from typing import Any

from opposable.ask.intent.intent import Comparison, Grain
from opposable.ask.intent.periods import Period
from opposable.sql.function_allowlist import Dialect

_SQLITE_DATE_PARTS = {
    "year": "CAST(STRFTIME('%Y', t) AS INTEGER)",
    "quarter": "(CAST(STRFTIME('%m', t) AS INTEGER) + 2) / 3",
    "month": "CAST(STRFTIME('%m', t) AS INTEGER)",
    "week": "DATE(t, 'weekday 0', '-6 days')",
    "day": "DATE(t)",
}
_STANDARD_DATE_PARTS = {
    "year": "CAST(EXTRACT(YEAR FROM t) AS INTEGER)",
    "quarter": "CAST(EXTRACT(QUARTER FROM t) AS INTEGER)",
    "month": "CAST(EXTRACT(MONTH FROM t) AS INTEGER)",
    "week": "CAST(DATE_TRUNC('week', t) AS DATE)",
    "day": "CAST(t AS DATE)",
}
_MYSQL_DATE_PARTS = _STANDARD_DATE_PARTS | {"week": "CAST(DATE_SUB(t, INTERVAL (WEEKDAY(t)) DAY) AS DATE)"}
_DATE_PARTS: dict[Dialect, dict[str, str]] = {"sqlite": _SQLITE_DATE_PARTS, "mysql": _MYSQL_DATE_PARTS}
_LABEL_TEMPLATES = {
    "quarter": "CAST(y AS TEXT) || '-Q' || CAST(q AS TEXT)",
    "month": "CAST(y AS TEXT) || CASE WHEN m < 10 THEN '-0' ELSE '-' END || CAST(m AS TEXT)",
}
_SHIFT_TEMPLATES = {
    ("quarter", "qoq"): {"y": "CASE WHEN q = 4 THEN y + 1 ELSE y END", "q": "CASE WHEN q = 4 THEN 1 ELSE q + 1 END"},
    ("month", "mom"): {"y": "CASE WHEN m = 12 THEN y + 1 ELSE y END", "m": "CASE WHEN m = 12 THEN 1 ELSE m + 1 END"},
    ("month", "qoq"): {"y": "CASE WHEN m > 9 THEN y + 1 ELSE y END", "m": "CASE WHEN m > 9 THEN m - 9 ELSE m + 3 END"},
}


def build_period_condition(time: Any, period: Period, dialect: Dialect) -> Any:
    """Build the condition that the tree `time` lies in `period`.

    SQLite dates are ISO text.
    """
    from sqlglot import exp

    conditions: list[Any] = []
    if period.start is not None:
        conditions.append(exp.GTE(this=time.copy(), expression=_build_day_literal(period.start, dialect)))
    if period.end is not None:
        after = period.end + datetime.timedelta(days=1) if period.end < datetime.date.max else period.end
        conditions.append(exp.LT(this=time.copy(), expression=_build_day_literal(after, dialect)))
    return exp.and_(*conditions)


def build_period_label(time: Any, grain: Grain, dialect: Dialect, shift: Comparison | None = None) -> Any:
    """Build the label of the period that `time` lies in.

    A label is 2024, '2024-Q3', '2024-07', or the first day of a week or day.

    Args:
        time: The sqlglot tree of a date.
        grain: The length of the periods.
        dialect: The SQL dialect of the database.
        shift: Labels a period as the one that is compared with it: a year, quarter or month later.

    Raises:
        ValueError: Periods of this grain cannot be compared that way.
    """
    parts = {
        name: _build_date_part(part, time, dialect) for name, part in (("y", "year"), ("q", "quarter"), ("m", "month"))
    }
    if shift is None and grain in ("week", "day"):
        return _build_date_part(grain, time, dialect)
    if shift == "yoy" and grain in ("year", "quarter", "month"):
        parts["y"] = _fill_template("y + 1", parts)
    elif shift is not None:
        steps = _SHIFT_TEMPLATES.get((grain, shift))
        if steps is None:
            raise ValueError(f"{shift} of rows by {grain}")
        parts |= {name: _fill_template(step, parts) for name, step in steps.items()}
    return parts["y"] if grain == "year" else _fill_template(_LABEL_TEMPLATES[grain], parts)


def _build_date_part(part: str, time: Any, dialect: Dialect) -> Any:
    import sqlglot

    template = _DATE_PARTS.get(dialect, _STANDARD_DATE_PARTS)[part]
    return _substitute_columns(sqlglot.parse_one(template, dialect=dialect), {"t": time})


def _fill_template(template: str, parts: dict[str, Any]) -> Any:
    import sqlglot
    from sqlglot import exp

    return exp.paren(_substitute_columns(sqlglot.parse_one(template, dialect="sqlite"), parts))


def _substitute_columns(tree: Any, values: dict[str, Any]) -> Any:
    """Replace the columns named by the keys of `values` with copies of the values."""
    from sqlglot import exp

    root = exp.Paren(this=tree)
    for column in list(root.find_all(exp.Column)):
        if not column.table and column.name in values:
            column.replace(values[column.name].copy())
    return root.this


def _build_day_literal(day: datetime.date, dialect: Dialect) -> Any:
    from sqlglot import exp

    text = exp.Literal.string(day.isoformat())
    return text if dialect == "sqlite" else exp.cast(text, "date")
