"""Removes date functions that the question does not need."""

import re
from typing import Any

from opposable.ask.sql_repair.sql_tree import RepairedSql, parse_sql
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import Column, DatabaseSchema

_TIME_WORDS = re.compile(
    r"\b(?:years?|yearly|annual\w*|months?|monthly|quarters?|weeks?|weekly|days?|daily|hours?|minutes?|times?|decades?"
    r"|centur\w+|19\d\d|20\d\d)\b|年(?![龄级薪纪])|月(?![薪租])|季|周|星期|日(?!期)|天|小时|分钟|时间|时段|世纪|19\d\d|20\d\d",
    re.IGNORECASE,
)


def mentions_time(question: str) -> bool:
    """Return whether the question mentions years, months, days or times."""
    return _TIME_WORDS.search(question) is not None


def remove_unneeded_date_functions(sql: str, question: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """Remove functions that extract a part of a date if the question mentions no time.

    Functions of integer columns are always removed: engines do not interpret an integer year as a date.
    """
    from sqlglot import exp

    tree = parse_sql(sql, dialect)
    if tree is None:
        return sql, ()
    corrections: list[str] = []
    for node in list(tree.find_all(exp.TimeToStr, exp.Year, exp.Month, exp.Day, exp.Extract, exp.TimestampTrunc)):
        column = _get_function_column(node)
        if column is None or (mentions_time(question) and not _is_integer_column(column, schema)):
            continue
        corrections.append(f"{node.sql(dialect=dialect)} → {column.sql(dialect=dialect)}")
        node.replace(column.copy())
    return (tree.sql(dialect=dialect), tuple(dict.fromkeys(corrections))) if corrections else (sql, ())


def _get_function_column(node: Any) -> Any:
    """Return the column if it is the only argument of a date function."""
    from sqlglot import exp

    inner = node.expression if isinstance(node, exp.Extract) else node.this
    while isinstance(inner, exp.TsOrDsToTimestamp | exp.TsOrDsToDate | exp.Cast | exp.Paren):
        inner = inner.this
    return inner if isinstance(inner, exp.Column) else None


def _is_integer_column(column: Any, schema: DatabaseSchema) -> bool:
    """Return whether every column of this name holds integers."""
    named: list[Column] = [found for table in schema.tables if (found := table.find_column(column.name)) is not None]
    return bool(named) and all("INT" in found.type.upper() and "INTERVAL" not in found.type.upper() for found in named)
