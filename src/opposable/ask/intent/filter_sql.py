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

    value = condition.value
    match condition.operator:
        case "is null":
            return exp.Is(this=tree, expression=exp.null())
        case "is not null":
            return exp.not_(exp.Is(this=tree, expression=exp.null()))
        case "in" | "=" if isinstance(value, tuple):
            return exp.In(this=tree, expressions=_build_literals(value))
        case "not in" | "!=" if isinstance(value, tuple):
            return _build_or_null(tree, exp.not_(exp.In(this=tree, expressions=_build_literals(value))))
        case "between":
            if not isinstance(value, tuple) or len(value) != 2:
                raise ValueError("between takes a list of two values")
            return exp.Between(this=tree, low=_build_literal(value[0]), high=_build_literal(value[1]))
        case "contains":
            if not isinstance(value, str) or not value:
                raise ValueError("contains takes a text")
            return _build_contains(tree, value)
        case "=" | "in":
            if value is None:
                return exp.Is(this=tree, expression=exp.null())
            return exp.EQ(this=tree, expression=_build_single_literal(value))
        case "!=" | "not in":
            if value is None:
                return exp.not_(exp.Is(this=tree, expression=exp.null()))
            return _build_or_null(tree, exp.NEQ(this=tree, expression=_build_single_literal(value)))
        case ">" | ">=" | "<" | "<=" as sign:
            comparison = {">": exp.GT, ">=": exp.GTE, "<": exp.LT, "<=": exp.LTE}[sign]
            return comparison(this=tree, expression=_build_single_literal(value))


def build_is_true(tree: Any) -> Any:
    """Build the condition that `tree` is true."""
    from sqlglot import exp

    return exp.paren(tree)


def build_is_not_true(tree: Any) -> Any:
    """Build the condition that `tree` is false or NULL."""
    from sqlglot import exp

    return exp.not_(exp.Coalesce(this=exp.paren(tree), expressions=[exp.false()]))


def _build_contains(tree: Any, text: str) -> Any:
    """Build a case-insensitive search that escapes the wildcards of LIKE."""
    from sqlglot import exp

    escaped = text.lower()
    for sign in ("!", "%", "_"):
        escaped = escaped.replace(sign, f"!{sign}")
    like = exp.Like(this=exp.Lower(this=tree), expression=exp.Literal.string(f"%{escaped}%"))
    return exp.Escape(this=like, expression=exp.Literal.string("!"))


def _build_or_null(tree: Any, mismatch: Any) -> Any:
    from sqlglot import exp

    return exp.paren(exp.or_(mismatch, exp.Is(this=tree.copy(), expression=exp.null())))


def _build_literals(values: tuple[Any, ...]) -> list[Any]:
    if not values:
        raise ValueError("a list of values is empty")
    return [_build_literal(value) for value in values]


def _build_single_literal(value: Any) -> Any:
    if value is None or isinstance(value, tuple):
        raise ValueError("this comparison takes one value")
    return _build_literal(value)


def _build_literal(value: Any) -> Any:
    from sqlglot import exp

    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int | float):
        return exp.Neg(this=exp.Literal.number(-value)) if value < 0 else exp.Literal.number(value)
    return exp.Literal.string(value)
