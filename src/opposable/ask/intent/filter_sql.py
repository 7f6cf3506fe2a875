"""The conditions of an intent as SQL trees; values become literals by sqlglot, never by pasting."""

from typing import Any

from opposable.ask.intent.intent import IntentFilter


def build_comparison(tree: Any, condition: IntentFilter) -> Any:
    """`tree` compared as `condition` says. What is unlike a value may be NULL as well: an unknown is no match.

    Raises:
        ValueError: the value does not go with the operator.
    """
    from sqlglot import exp

    value = condition.value
    match condition.operator:
        case "is null":
            return exp.Is(this=tree, expression=exp.null())
        case "is not null":
            return exp.not_(exp.Is(this=tree, expression=exp.null()))
        case "in" | "=" if value is not None and isinstance(value, tuple):
            return exp.In(this=tree, expressions=[_build_literal(v) for v in _require_values(value)])
        case "not in" | "!=" if isinstance(value, tuple):
            return _build_or_null(
                tree, exp.not_(exp.In(this=tree, expressions=[_build_literal(v) for v in _require_values(value)]))
            )
        case "between":
            if not isinstance(value, tuple) or len(value) != 2:
                raise ValueError("between takes a list of two values")
            return exp.Between(this=tree, low=_build_literal(value[0]), high=_build_literal(value[1]))
        case "contains":
            if not isinstance(value, str) or not value:
                raise ValueError("contains takes a text")
            return _build_contains(tree, value)
        case "=" | "in":
            return (
                exp.Is(this=tree, expression=exp.null())
                if value is None
                else exp.EQ(this=tree, expression=_build_single_literal(value))
            )
        case "!=" | "not in":
            if value is None:
                return exp.not_(exp.Is(this=tree, expression=exp.null()))
            return _build_or_null(tree, exp.NEQ(this=tree, expression=_build_single_literal(value)))
        case ">" | ">=" | "<" | "<=" as sign:
            kind = {">": exp.GT, ">=": exp.GTE, "<": exp.LT, "<=": exp.LTE}[sign]
            return kind(this=tree, expression=_build_single_literal(value))


def build_is_true(tree: Any) -> Any:
    """That a condition is true."""
    from sqlglot import exp

    return exp.paren(tree)


def build_is_not_true(tree: Any) -> Any:
    """That a condition is false or unknown, so that rows with NULL stay when others are excluded."""
    from sqlglot import exp

    return exp.not_(exp.Coalesce(this=exp.paren(tree), expressions=[exp.false()]))


def _build_contains(tree: Any, text: str) -> Any:
    """A search in lower case, with the signs that LIKE reads taken as they are."""
    from sqlglot import exp

    plain = text.lower()
    for sign in ("!", "%", "_"):
        plain = plain.replace(sign, f"!{sign}")
    like = exp.Like(this=exp.Lower(this=tree), expression=exp.Literal.string(f"%{plain}%"))
    return exp.Escape(this=like, expression=exp.Literal.string("!"))


def _build_or_null(tree: Any, mismatch: Any) -> Any:
    from sqlglot import exp

    return exp.paren(exp.or_(mismatch, exp.Is(this=tree.copy(), expression=exp.null())))


def _require_values(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise ValueError("a list of values is empty")
    return values


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
