"""Refusal of ambiguous SQL and of huge values, for PostgreSQL."""

import math
import re
from typing import Any

from opposable.domain.errors import ToolRefused
from opposable.sql import messages
from opposable.sql.function_allowlist import Dialect
from opposable.sql.lexer import split_segments
from opposable.sql.schema import to_one_line

_DOLLAR_QUOTE = re.compile(r"\$[\w\x80-\U0010ffff]*\$")
_LOOKALIKE_SIGNS = re.compile("[‘’“”−]")
"""Signs that ClickHouse reads as quotes and minus."""
_STRING_PREFIX = re.compile(r"(?:^|\W)(e|u&|b|x|n)$", re.IGNORECASE)
_SIZED_FUNCTIONS = frozenset({"repeat", "lpad", "rpad", "array_fill"})
_UNCOUNTED_GROWTH = 100
"""Growth that formatting needs; up to here it is not counted."""
_MAX_GROWTH = 100_000
"""Factor by which a query may enlarge a value."""


def refuse_ambiguous_strings(sql: str, dialect: Dialect = "postgres") -> None:
    """Refuse string literals whose end two parsers can see differently.

    Raises:
        ToolRefused: The query has `$$…$$`, typographic quotes on ClickHouse, or a backslash before a quote or
            `U&'…'` on PostgreSQL.
    """
    before = ""
    for part in split_segments(sql, dialect):
        if part.kind == "code" and _DOLLAR_QUOTE.search(part.text):
            raise ToolRefused("Text between dollar signs is not allowed: write text in single quotes.")
        if dialect == "clickhouse":
            if part.kind == "code" and (sign := _LOOKALIKE_SIGNS.search(part.text)):
                raise ToolRefused(f"The sign {sign[0]} is not allowed outside of text: write ' or \" or - for it.")
            continue
        prefix = _STRING_PREFIX.search(before) if part.kind in ("string", "name") else None
        # Both parsers see the end of E'a\\nb', but not of E'a\\'b'.
        ambiguous = "\\'" if part.has_escape_prefix else "\\"
        is_unicode = prefix is not None and prefix[1].casefold() == "u&"
        if is_unicode or ((part.has_escape_prefix or prefix) and ambiguous in part.text):
            raise ToolRefused("Text with U& or an escaped quote is not allowed: write it in plain single quotes.")
        before = part.text if part.kind == "code" else ""


def refuse_unsafe_tree(tree: Any) -> None:
    """Refuse functions and types with a schema, and huge values.

    Any role may own a function or type in a schema of its own.

    Raises:
        ToolRefused: The query has one of these.
    """
    from sqlglot import exp

    refuse_qualified_functions(tree, "postgres")
    for kind in tree.find_all(exp.DataType):
        if "." in str(kind.args.get("kind") or ""):
            raise ToolRefused(f"{to_one_line(str(kind.args['kind']), 80)}: name the type without its schema.")
    growth = math.prod(_estimate_growth(node) for node in tree.find_all(exp.Func))
    if growth > _MAX_GROWTH:
        raise ToolRefused(f"The query would blow text up {growth:g} times: at most {_MAX_GROWTH} are allowed.")
    if _estimate_expansion(tree, {}) > _MAX_GROWTH:
        raise ToolRefused("The query's subqueries use one another's columns too often: simplify it.")


def refuse_qualified_functions(tree: Any, dialect: Dialect) -> None:
    """Refuse functions with a schema: they are not those of the allow list.

    Raises:
        ToolRefused: The query has such a function.
    """
    from sqlglot import exp

    for dot in tree.find_all(exp.Dot):
        if isinstance(dot.expression, exp.Func):
            raise ToolRefused(f"{dot.sql(dialect=dialect)[:80]}: name the function without its schema.")
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Func) and table.args.get("db"):
            raise ToolRefused(f"{table.sql(dialect=dialect)[:80]}: name the function without its schema.")


def _estimate_expansion(query: Any, outer_sizes: dict[str, int]) -> int:
    """Return how large an expression becomes with all subqueries inlined."""
    from sqlglot import exp

    if isinstance(query, exp.Subquery):
        return _estimate_expansion(query.this, outer_sizes)
    cte_sizes = dict(outer_sizes)
    with_ = query.args.get("with_")
    for cte in with_.expressions if with_ else ():
        cte_sizes[cte.alias.casefold()] = _estimate_expansion(cte.this, cte_sizes)
    if isinstance(query, exp.SetOperation):
        return max(_estimate_expansion(query.this, cte_sizes), _estimate_expansion(query.expression, cte_sizes))
    if not isinstance(query, exp.Select):
        return 1
    sources = [query.args["from_"].this] if query.args.get("from_") else []
    sources += [join.this for join in query.args.get("joins") or ()]
    inner = 1
    for source in sources:
        if isinstance(source, exp.Table):
            inner = max(inner, cte_sizes.get(source.name.casefold(), 1))
        elif isinstance(source, exp.Subquery):
            inner = max(inner, _estimate_expansion(source, cte_sizes))
    column_count = max((sum(1 for _ in item.find_all(exp.Column)) for item in query.expressions), default=1)
    return min(max(column_count, 1) * inner, 10**9)


def _estimate_growth(node: Any) -> float:
    """Return by what factor a function can lengthen its argument; 1 where it cannot."""
    from sqlglot import exp

    if isinstance(node, exp.Repeat):
        return _get_length_growth("repeat", node.args.get("times"))
    if isinstance(node, exp.Pad):
        return _get_length_growth("lpad" if node.args.get("is_left") else "rpad", node.expression)
    name = node.name.casefold() if isinstance(node, exp.Anonymous) else node.sql_name().casefold()
    if name in _SIZED_FUNCTIONS:
        return _get_length_growth(name, node.expressions[1] if len(node.expressions) > 1 else None)
    if name == "format":
        text = node.this if not isinstance(node, exp.Anonymous) else (node.expressions or [None])[0]
        if not isinstance(text, exp.Literal) or re.search(r"\d{4}|\*", text.name):
            raise ToolRefused("format() takes its format as text written out, with widths below 1000.")
    return 1.0


def _get_length_growth(name: str, argument: Any) -> float:
    from sqlglot import exp

    if name == "array_fill" and argument is not None:
        numbers = [literal.name for literal in argument.find_all(exp.Literal)]
        return math.prod(float(number) for number in numbers if number.isdigit()) if numbers else math.inf
    bounds = [argument.this, *argument.expressions] if isinstance(argument, exp.Least) else [argument]
    numbers = [int(bound.name) for bound in bounds if isinstance(bound, exp.Literal) and bound.name.isdigit()]
    if not numbers:
        raise ToolRefused(messages.length_without_bound(name, _MAX_GROWTH))
    return 1.0 if min(numbers) <= _UNCOUNTED_GROWTH else float(min(numbers))
