"""Refusal of ambiguous SQL, of code of the database and of huge values, for PostgreSQL."""

import math
import re
from collections.abc import Container
from typing import Any

from opposable.domain.errors import ToolRefused
from opposable.sql import messages
from opposable.sql.function_allowlist import Dialect
from opposable.sql.lexer import split_segments
from opposable.sql.name_scopes import get_alias_columns, get_output_name, resolve_identifier
from opposable.sql.schema import DatabaseSchema, fold_name, to_one_line, unquote_name

_DOLLAR_QUOTE = re.compile(r"\$[\w\x80-\U0010ffff]*\$")
_LOOKALIKE_SIGNS = re.compile("[‘’“”−]")
"""Signs that ClickHouse reads as quotes and minus."""
_STRING_PREFIX = re.compile(r"(?:^|\W)(e|u&|b|x|n)$", re.IGNORECASE)
_FIELD = re.compile(r"\.\s*(\"(?:[^\"]|\"\")*\"|[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*)")
_MAX_NAME_BYTES = 63
"""Where PostgreSQL cuts off a name."""
_OPERATOR_SIGNS = re.compile(r"[-+*/<>=~!@#%^&|`?]+")
_KEYWORD_OPERATORS = {
    "like": "~~ !~~",
    "ilike": "~~* !~~*",
    "similar": "~ !~",
    "between": "<= >= < >",
    **dict.fromkeys(("in", "using", "natural", "case", "nullif", "distinct"), "= <>"),
}
"""Keywords that call an operator by its name."""
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


def find_refused_function(sql: str, tree: Any, schema: DatabaseSchema, called_names: Container[str]) -> str | None:
    """Return a function that is not allowed and that `value.name` could call, as PostgreSQL reads it without such a column.

    A name that is a column of every source that its qualifier can mean is not a call.
    """
    from sqlglot import exp

    text = "".join(
        part.text if part.kind in ("code", "name") else " " * len(part.text) for part in split_segments(sql, "postgres")
    )
    fields = {field.start(1): unquote_name(field[1]).encode()[:_MAX_NAME_BYTES] for field in _FIELD.finditer(text)}
    names = {start: name.decode(errors="ignore").casefold() for start, name in fields.items()}
    calls = {start: name for start, name in names.items() if name in schema.refused_functions}
    for node in tree.find_all(exp.Column, exp.Table) if calls else ():
        is_table = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
        if is_table or (isinstance(node, exp.Column) and _is_certain_column(node, tree, schema, called_names)):
            calls.pop(node.this.meta.get("start"), None)
    return next(iter(calls.values()), None)


def _is_certain_column(column: Any, tree: Any, schema: DatabaseSchema, called_names: Container[str]) -> bool:
    from sqlglot import exp

    owner = fold_name(column.table)
    sources = [alias.parent for alias in tree.find_all(exp.TableAlias) if fold_name(alias.name) == owner]
    sources += [table for table in tree.find_all(exp.Table) if not table.alias and fold_name(table.name) == owner]
    name = resolve_identifier(column.this, "postgres")
    is_column = bool(sources) and all(_has_column(source, name, tree, schema) for source in sources)
    return is_column and owner.casefold() not in called_names  # FROM f() is a source without an alias


def _has_column(source: Any, name: str, tree: Any, schema: DatabaseSchema) -> bool:
    """Whether a source certainly has a column; False where that cannot be seen."""
    from sqlglot import exp

    if get_alias_columns(source):
        return name in [resolve_identifier(column, "postgres") for column in source.args["alias"].columns]
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        ctes = [cte for cte in tree.find_all(exp.CTE) if fold_name(cte.alias) == fold_name(source.name)]
        path = [resolve_identifier(part, "postgres") for part in source.parts[-2:]]
        table = schema.find_exact_table(path[-1], "".join(path[:-1]))
        found = [_has_column(cte, name, tree, schema) for cte in ctes]
        found += [any(column.name == name for column in table.columns)] if table else []
        return bool(found) and all(found)
    query = source.this if isinstance(source, exp.CTE | exp.Subquery) else None
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    return isinstance(query, exp.Select) and name in [get_output_name(item, "postgres") for item in query.expressions]


def refuse_operators(sql: str, schema: DatabaseSchema) -> None:
    """Refuse operators that run code of the database; `OPERATOR(schema.+)` is a function that is not allowed.

    Raises:
        ToolRefused: The query has such an operator.
    """
    code = " ".join(part.text for part in split_segments(sql, "postgres") if part.kind == "code")
    used = [
        symbol for word in re.findall(r"\w+", code) for symbol in _KEYWORD_OPERATORS.get(word.casefold(), "").split()
    ]
    used += [symbol for signs in _OPERATOR_SIGNS.findall(code) for symbol in _split_operators(signs)]
    for symbol in used if schema.refused_operators else ():
        if symbol in schema.refused_operators:
            raise ToolRefused(f"The operator {symbol} of this database is not available here.")


def _split_operators(signs: str) -> list[str]:
    """Return the operators in signs without spaces, as PostgreSQL separates them: `=-` is `=` and `-`, `@-` is one."""
    symbols = []
    while signs:
        symbol = signs if re.search(r"[~!@#%^&|`?]", signs) else signs[0] + signs[1:].rstrip("+-")
        symbols.append("<>" if symbol == "!=" else symbol)
        signs = signs[len(symbol) :]
    return symbols


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
