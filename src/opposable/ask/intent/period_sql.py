"""Days and periods as SQL trees of the three dialects."""

import datetime
from typing import Any, Literal

from opposable.ask.intent.intent import Comparison, Grain
from opposable.ask.intent.periods import Period

SqlDialect = Literal["duckdb", "sqlite", "postgres"]

_SQLITE = {
    "year": "CAST(STRFTIME('%Y', t) AS INTEGER)",
    "quarter": "(CAST(STRFTIME('%m', t) AS INTEGER) + 2) / 3",
    "month": "CAST(STRFTIME('%m', t) AS INTEGER)",
    "week": "DATE(t, 'weekday 0', '-6 days')",
    "day": "DATE(t)",
}
_OTHERS = {
    "year": "CAST(EXTRACT(YEAR FROM t) AS INTEGER)",
    "quarter": "CAST(EXTRACT(QUARTER FROM t) AS INTEGER)",
    "month": "CAST(EXTRACT(MONTH FROM t) AS INTEGER)",
    "week": "CAST(DATE_TRUNC('week', t) AS DATE)",
    "day": "CAST(t AS DATE)",
}
_LABELS = {
    "quarter": "CAST(y AS TEXT) || '-Q' || CAST(q AS TEXT)",
    "month": "CAST(y AS TEXT) || CASE WHEN m < 10 THEN '-0' ELSE '-' END || CAST(m AS TEXT)",
}
_LATER = {
    ("quarter", "qoq"): {"y": "CASE WHEN q = 4 THEN y + 1 ELSE y END", "q": "CASE WHEN q = 4 THEN 1 ELSE q + 1 END"},
    ("month", "mom"): {"y": "CASE WHEN m = 12 THEN y + 1 ELSE y END", "m": "CASE WHEN m = 12 THEN 1 ELSE m + 1 END"},
    ("month", "qoq"): {"y": "CASE WHEN m > 9 THEN y + 1 ELSE y END", "m": "CASE WHEN m > 9 THEN m - 9 ELSE m + 3 END"},
}


def within(time: Any, period: Period, dialect: SqlDialect) -> Any:
    """The condition that the tree `time` lies in `period`; SQLite's dates are taken as ISO text."""
    from sqlglot import exp

    conditions: list[Any] = []
    if period.start is not None:
        conditions.append(exp.GTE(this=time.copy(), expression=_day(period.start, dialect)))
    if period.end is not None:
        after = period.end + datetime.timedelta(days=1) if period.end < datetime.date.max else period.end
        conditions.append(exp.LT(this=time.copy(), expression=_day(after, dialect)))
    return exp.and_(*conditions)


def label(time: Any, grain: Grain, dialect: SqlDialect, later: Comparison | None = None) -> Any:
    """The period that `time` lies in: 2024, '2024-Q3', '2024-07', or the day a week or day begins with.

    `later` gives the label of the period that is compared with it: a year, quarter or month on.

    Raises:
        ValueError: periods of this grain cannot be compared that way.
    """
    parts = {name: _part(part, time, dialect) for name, part in (("y", "year"), ("q", "quarter"), ("m", "month"))}
    if later is None and grain in ("week", "day"):
        return _part(grain, time, dialect)
    if later == "yoy" and grain in ("year", "quarter", "month"):
        parts["y"] = _filled("y + 1", parts)
    elif later is not None:
        steps = _LATER.get((grain, later))
        if steps is None:
            raise ValueError(f"{later} of rows by {grain}")
        parts |= {name: _filled(step, parts) for name, step in steps.items()}
    return parts["y"] if grain == "year" else _filled(_LABELS[grain], parts)


def _part(part: str, time: Any, dialect: SqlDialect) -> Any:
    import sqlglot

    template = (_SQLITE if dialect == "sqlite" else _OTHERS)[part]
    return _put(sqlglot.parse_one(template, dialect=dialect), {"t": time})


def _filled(template: str, parts: dict[str, Any]) -> Any:
    import sqlglot
    from sqlglot import exp

    return exp.paren(_put(sqlglot.parse_one(template, dialect="sqlite"), parts))


def _put(tree: Any, values: dict[str, Any]) -> Any:
    """`tree` with copies of `values` in place of the columns of these names."""
    return tree.transform(_replacer(values))


def _replacer(values: dict[str, Any]) -> Any:
    from sqlglot import exp

    def replace(node: Any) -> Any:
        if isinstance(node, exp.Column) and not node.table and node.name in values:
            return values[node.name].copy()
        return node

    return replace


def _day(day: datetime.date, dialect: SqlDialect) -> Any:
    from sqlglot import exp

    text = exp.Literal.string(day.isoformat())
    return text if dialect == "sqlite" else exp.cast(text, "date")
