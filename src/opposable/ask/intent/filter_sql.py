"""The filters of an intent as sqlglot trees.

Every value becomes a literal of the tree.
"""

import re
from typing import Any

from opposable.ask.intent.intent import IntentFilter
from opposable.ask.sql_trees import build_is_null, exp, fill_template


def build_comparison(tree: Any, condition: IntentFilter) -> Any:
    """Build the comparison of a copy of `tree` with the value of a filter.

    "!=" and "not in" also match NULL.

    Raises:
        ValueError: The value does not fit the operator.
    """
    value, operator = condition.value, condition.operator
    tree = to_operand(tree.copy())
    if value == ():
        raise ValueError("a list of values is empty")
    if operator in ("=", "in", "!=", "not in"):
        is_null = build_is_null(tree)
        equal = tree.isin(*value) if isinstance(value, tuple) else is_null if value is None else tree.eq(value)
        if operator in ("=", "in"):
            return equal
        return exp.not_(equal) if value is None else exp.paren(exp.or_(exp.not_(equal), is_null))
    if value is None or isinstance(value, tuple):
        raise ValueError("this comparison takes one value")
    if operator == "contains":
        return exp.Escape(this=exp.Lower(this=tree).like(_escape_pattern(value)), expression=exp.Literal.string("!"))
    comparison = {">": exp.GT, ">=": exp.GTE, "<": exp.LT, "<=": exp.LTE}[operator]
    return comparison(this=tree, expression=exp.convert(value))


def build_is_not_true(tree: Any) -> Any:
    """Build the condition that `tree` is false or NULL."""
    return fill_template("NOT COALESCE((condition), FALSE)", "duckdb", condition=tree)


def to_operand(tree: Any) -> Any:
    """Put a tree in parentheses unless it is a column, a literal or a function call."""
    return tree if isinstance(tree, exp.Column | exp.Func | exp.Paren | exp.Literal) else exp.paren(tree)


def _escape_pattern(value: str | float | bool) -> str:
    """Return the pattern of LIKE for a part of a text, in lower case."""
    escaped = re.sub(r"([!%_])", r"!\1", str(value).lower())
    return f"%{escaped}%"
