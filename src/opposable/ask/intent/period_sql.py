"""Days and periods as sqlglot trees of the SQL dialects."""

import datetime
from typing import Any

from opposable.ask.intent.intent import Comparison, Grain
from opposable.ask.intent.periods import Period
from opposable.ask.sql_trees import exp, fill_template
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
_LABEL_TEMPLATES: dict[Grain, str] = {
    "year": "y",
    "quarter": "CAST(y AS TEXT) || '-Q' || CAST(q AS TEXT)",
    "month": "CAST(y AS TEXT) || CASE WHEN m < 10 THEN '-0' ELSE '-' END || CAST(m AS TEXT)",
}
_SHIFT_TEMPLATES: dict[tuple[Grain, Comparison | None], dict[str, str]] = {
    **{(grain, "yoy"): {"y": "y + 1"} for grain in _LABEL_TEMPLATES},
    ("quarter", "qoq"): {"y": "CASE WHEN q = 4 THEN y + 1 ELSE y END", "q": "CASE WHEN q = 4 THEN 1 ELSE q + 1 END"},
    ("month", "mom"): {"y": "CASE WHEN m = 12 THEN y + 1 ELSE y END", "m": "CASE WHEN m = 12 THEN 1 ELSE m + 1 END"},
    ("month", "qoq"): {"y": "CASE WHEN m > 9 THEN y + 1 ELSE y END", "m": "CASE WHEN m > 9 THEN m - 9 ELSE m + 3 END"},
}


def build_period_condition(time: Any, period: Period, dialect: Dialect) -> Any:
    """Build the condition that the tree `time` lies in `period`. SQLite dates are ISO text."""
    day = "'{}'" if dialect == "sqlite" else "CAST('{}' AS DATE)"
    conditions: list[Any] = []
    if period.start > datetime.date.min:
        conditions.append(fill_template(f"t >= {day.format(period.start)}", dialect, t=time))
    if period.end < datetime.date.max:
        after = period.end + datetime.timedelta(days=1)
        conditions.append(fill_template(f"t < {day.format(after)}", dialect, t=time))
    return exp.and_(*conditions)


def build_period_label(time: Any, grain: Grain, dialect: Dialect, shift: Comparison | None = None) -> Any:
    """Build the label of the period that `time` lies in.

    A label is 2024, '2024-Q3', '2024-07', or the first day of a week or day. `shift` labels a period as the one that
    is compared with it: a year, quarter or month later.

    Raises:
        ValueError: Periods of this grain cannot be compared that way.
    """
    templates = _DATE_PARTS.get(dialect, _STANDARD_DATE_PARTS)
    if shift is None and grain in ("week", "day"):
        return fill_template(templates[grain], dialect, t=time)
    steps = _SHIFT_TEMPLATES.get((grain, shift))
    if shift is not None and steps is None:
        raise ValueError(f"{shift} of rows by {grain}")
    names = (("y", "year"), ("q", "quarter"), ("m", "month"))
    parts = {name: fill_template(templates[part], dialect, t=time) for name, part in names}
    shifted = {name: exp.paren(fill_template(step, "sqlite", **parts)) for name, step in (steps or {}).items()}
    label = fill_template(_LABEL_TEMPLATES[grain], "sqlite", **parts | shifted)
    return label if grain == "year" else exp.paren(label)
