"""The filters of an intent as sqlglot trees.

Every value becomes a literal of the tree.
"""

from typing import Any

from opposable.ask.intent.intent import IntentFilter


def build_comparison(tree: Any, condition: IntentFilter) -> Any:
    """Build the comparison of `tree` with the value of a filter.

    "!=" and "not in" also match NULL.

    Raises:
        ValueError: The value does not fit the operator.
    """
    from sqlglot import exp

    value, operator = condition.value, condition.operator
    if isinstance(value, tuple) and not value:
        raise ValueError("a list of values is empty")
    if operator in ("=", "in", "!=", "not in"):
        equal = (
            tree.isin(*value) if isinstance(value, tuple) else tree.is_(exp.null()) if value is None else tree.eq(value)
        )
        if operator in ("=", "in"):
            return equal
        return exp.not_(equal) if value is None else exp.paren(exp.or_(exp.not_(equal), tree.is_(exp.null())))
    if value is None or isinstance(value, tuple):
        raise ValueError("this comparison takes one value")
    if operator == "contains":
        return exp.Escape(this=exp.Lower(this=tree).like(_escape_pattern(value)), expression=exp.Literal.string("!"))
    comparison = {">": exp.GT, ">=": exp.GTE, "<": exp.LT, "<=": exp.LTE}[operator]
    return comparison(this=tree, expression=exp.convert(value))


def build_is_not_true(tree: Any) -> Any:
    """Build the condition that `tree` is false or NULL."""
    from sqlglot import exp

    return exp.not_(exp.Coalesce(this=exp.paren(tree), expressions=[exp.false()]))


def _escape_pattern(value: str | float | bool) -> str:
    """Return the pattern of LIKE for a part of a text, in lower case."""
    escaped = str(value).lower()
    for sign in ("!", "%", "_"):
        escaped = escaped.replace(sign, f"!{sign}")
    return f"%{escaped}%"
