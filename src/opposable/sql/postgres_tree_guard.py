"""Refusal of ambiguous SQL, of code of the database and of huge values, for PostgreSQL."""

import math
import re
from collections.abc import Container
from typing import Any

from opposable.domain.errors import ToolRefused
from opposable.sql import messages
from opposable.sql.function_allowlist import Dialect
from opposable.sql.lexer import LETTER, NAME_SIGN, split_segments
from opposable.sql.name_scopes import get_alias_columns, get_output_name, resolve_identifier
from opposable.sql.schema import DatabaseSchema, fold_name, to_one_line, unquote_name

_DOLLAR_QUOTE = re.compile(rf"\$(?:(?!\$){NAME_SIGN})*\$")
_LOOKALIKE_SIGNS = re.compile("[‘’“”−]")
"""Signs that ClickHouse reads as quotes and minus."""
_STRING_PREFIX = re.compile(r"(?:^|\W)(e|u&|b|x|n)$", re.IGNORECASE)
_FIELD = re.compile(rf"\.\s*(\"(?:[^\"]|\"\")*\"|{LETTER}{NAME_SIGN}*)")
_MAX_NAME_BYTES = 63
"""Where PostgreSQL cuts off a name."""
_OPERATOR_SIGNS = re.compile(r"[-+*/<>=~!@#%^&|`?]+")
_COMMON_OPERATORS = frozenset(["+", "-", "*", "/", "%", "<", ">", "=", "<=", ">=", "<>", "=>"])
_KEYWORD_OPERATORS = {
    "like": "~~ !~~",
    "ilike": "~~* !~~*",
    "similar": "~ !~",
    "between": "<= >= < >",
    **dict.fromkeys(("in", "using", "natural", "case", "nullif", "distinct"), "= <>"),
}
"""Keywords that call an operator by its name."""
_SIZED_FUNCTIONS = frozenset({"repeat", "lpad", "rpad", "array_fill"})
_TABLE_SIZE_FUNCTIONS = frozenset({"pg_indexes_size", "pg_relation_size", "pg_table_size", "pg_total_relation_size"})
_UNCOUNTED_GROWTH = 100
"""Growth that formatting needs; up to here it is not counted."""
_MAX_GROWTH = 100_000
"""Factor by which a query may enlarge a value."""


def refuse_ambiguous_strings(sql: str, dialect: Dialect = "postgres") -> None:
    """Refuse string literals whose end two parsers can see differently.

    Raises:
        ToolRefused: The query has `$$…$$`, typographic quotes on ClickHouse, or a backslash before a quote or
            a name `U&"…"` on PostgreSQL.
    """
    before = ""
    for part in split_segments(sql, dialect):
        if part.kind == "code" and _DOLLAR_QUOTE.search(part.text):
            raise ToolRefused("Text between dollar signs is not allowed: write text in single quotes.")
        if dialect == "clickhouse":
            if part.kind == "code" and (sign := _LOOKALIKE_SIGNS.search(part.text)):
                raise ToolRefused(f"The sign {sign[0]} is not allowed outside of text: write ' or \" or - for it.")
            if part.kind == "name" and "\\" in part.text.replace("\\\\", ""):  # an escape could hide a name
                raise ToolRefused("A name with an escape is not allowed: write its characters, and a backslash twice.")
            continue
        prefix = _STRING_PREFIX.search(before) if part.kind in ("string", "name") else None
        # Both parsers see the end of E'a\\nb', but not of E'a\\'b'.
        ambiguous = "\\'" if part.has_escape_prefix else "\\"
        is_unicode = prefix is not None and prefix[1].casefold() == "u&"
        ambiguous = "\\'" if is_unicode else ambiguous
        if (is_unicode and part.kind == "name") or ((part.has_escape_prefix or prefix) and ambiguous in part.text):
            raise ToolRefused("A name with U& or text with an escaped quote is not allowed: write it in plain quotes.")
        before = part.text if part.kind == "code" else ""


def refuse_unsafe_tree(tree: Any, schema: DatabaseSchema) -> None:
    """Refuse functions and types with a schema, row types that show other columns, and huge values.

    Any role may own a function or type in a schema of its own.

    Raises:
        ToolRefused: The query has one of these.
    """
    from sqlglot import exp

    refuse_qualified_functions(tree, "postgres")
    for symbol in (str(operator.args["operator"]) for operator in tree.find_all(exp.Operator)):
        if not re.fullmatch(r"(?:pg_catalog\.)?[^\w.\"]+", symbol):
            raise ToolRefused(f"The operator {to_one_line(symbol, 80)} of this database is not available here.")
    for function in tree.find_all(exp.Anonymous):
        if function.name.casefold().startswith("pg_input_") and not _names_plain_type(function.expressions[1:]):
            raise ToolRefused(f"{function.name}() takes the type as a text, such as 'integer'.")
        if function.name.casefold() in _TABLE_SIZE_FUNCTIONS and not _names_table(function.expressions[:1], schema):
            raise ToolRefused(f"{function.name}() takes a table of this database as a text, such as 'public.orders'.")
    for kind in tree.find_all(exp.DataType):
        if "." in str(kind.args.get("kind") or ""):
            raise ToolRefused(f"{to_one_line(str(kind.args['kind']), 80)}: name the type without its schema.")
        name = kind.args["kind"].name if kind.args.get("kind") else str(getattr(kind.this, "value", ""))
        if name.encode()[:_MAX_NAME_BYTES].decode(errors="ignore").casefold() in schema.refused_types:
            raise ToolRefused(
                f"The type {to_one_line(name, 80)} is not available: it is the row type of a table that may not be read."
            )
    growth = _estimate_query_growth(tree)
    if growth > _MAX_GROWTH:
        raise ToolRefused(f"The query would blow text up {growth:g} times: at most {_MAX_GROWTH} are allowed.")
    _measure_query(tree, {}, {})


def _names_plain_type(arguments: list[Any]) -> bool:
    """Whether an argument is the name of a type of PostgreSQL that looks up nothing and runs no code of the database."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        kinds = [exp.DataType.build(argument.name, dialect="postgres") for argument in arguments]
    except (SqlglotError, ValueError):
        return False
    parts = [part for kind in kinds for part in kind.find_all(exp.DataType, exp.ObjectIdentifier, exp.PseudoType)]
    is_plain = all(type(part) is exp.DataType and not part.is_type("userdefined") for part in parts)
    return is_plain and len(kinds) == 1 and isinstance(arguments[0], exp.Literal)


def _names_table(arguments: list[Any], schema: DatabaseSchema) -> bool:
    """Whether an argument is the name of a listed table; a text of digits is a number of any table."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if not arguments or not arguments[0].is_string or arguments[0].name[:1].isdigit():
        return False
    try:
        parts = exp.to_table(arguments[0].name, dialect="postgres").parts
    except (SqlglotError, TypeError, ValueError):
        return False
    if len(parts) > 2 or not all(isinstance(part, exp.Identifier) for part in parts):
        return False
    path = [resolve_identifier(part, "postgres") for part in parts]
    return schema.find_exact_table(path[-1], "".join(path[:-1])) is not None


def names_table_of_row(kind: Any, tree: Any) -> bool:
    """Return whether a type is that of `tableoid::regclass`, the name of the table or partition that has the row.

    Any other `regclass` looks up the catalog, so `tableoid` must be no name that the query itself gives.
    """
    from sqlglot import exp

    names = [name for name in tree.find_all(exp.Identifier) if name.name.casefold() == "tableoid"]
    is_given = any(not isinstance(name.parent, exp.Column) or name.arg_key != "this" for name in names)
    column = kind.parent.this
    return bool(kind.name == "REGCLASS" and isinstance(column, exp.Column) and column.this in names and not is_given)


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
    """Refuse operators that run code of the database, also as `OPERATOR(pg_catalog.+)`.

    Raises:
        ToolRefused: The query has such an operator.
    """
    if not schema.refused_operators:
        return
    code = " ".join(part.text for part in split_segments(sql, "postgres") if part.kind == "code")
    used = [
        symbol for word in re.findall(r"\w+", code) for symbol in _KEYWORD_OPERATORS.get(word.casefold(), "").split()
    ]
    used += [symbol for signs in _OPERATOR_SIGNS.findall(code) for symbol in _split_operators(signs)]
    for symbol in used:
        if symbol in schema.refused_operators:
            raise ToolRefused(f"The operator {symbol} of this database is not available here.")


def mask_operators(sql: str) -> str:
    """Return `sql` with `+`, which takes one value or two, and spaces in place of operators that sqlglot may lack."""

    def mask(signs: re.Match[str]) -> str:
        symbols = _split_operators(signs[0])
        return "".join(s if s in _COMMON_OPERATORS or len(s) > _MAX_NAME_BYTES else "+".ljust(len(s)) for s in symbols)

    parts = split_segments(sql, "postgres")
    return "".join(_OPERATOR_SIGNS.sub(mask, part.text) if part.kind == "code" else part.text for part in parts)


def _split_operators(signs: str) -> list[str]:
    """Return the operators in signs without spaces, as PostgreSQL separates them: `=-` is `=` and `-`, `@-` is one."""
    symbols = []
    while signs:
        symbol = signs if re.search(r"[~!@#%^&|`?]", signs) else signs[0] + signs[1:].rstrip("+-")
        symbols.append("<>" if symbol == "!=" else symbol)
        signs = signs[len(symbol) :]
    return symbols


def refuse_qualified_functions(tree: Any, dialect: Dialect) -> None:
    """Refuse functions with a schema other than `pg_catalog`: they are not those of the allow list.

    Raises:
        ToolRefused: The query has such a function.
    """
    from sqlglot import exp

    for dot in tree.find_all(exp.Dot):
        if isinstance(dot.expression, exp.Func) and not _is_catalog(dot.this, dialect):
            raise ToolRefused(f"{dot.sql(dialect=dialect)[:80]}: name the function without its schema.")
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Func) and table.args.get("db") and not _is_catalog(table.args["db"], dialect):
            raise ToolRefused(f"{table.sql(dialect=dialect)[:80]}: name the function without its schema.")


def _is_catalog(schema: Any, dialect: Dialect) -> bool:
    """Whether an identifier is PostgreSQL's schema of its own functions, operators and types."""
    from sqlglot import exp

    is_name = dialect == "postgres" and isinstance(schema, exp.Identifier)
    return is_name and resolve_identifier(schema, "postgres") == "pg_catalog"


def _estimate_query_growth(tree: Any) -> float:
    """Return by what factor a query can lengthen a value: a sum within a SELECT, a product of nested functions and SELECTs."""
    from sqlglot import exp

    growth_by_query: dict[int, float] = {}
    for function in tree.find_all(exp.Func):
        growth = _estimate_growth(function)
        if growth == 1.0:
            continue
        node = function.parent
        while node is not None and not isinstance(node, exp.Query):
            growth *= _estimate_growth(node) if isinstance(node, exp.Func) else 1.0
            node = node.parent
        growth_by_query[id(node)] = growth_by_query.get(id(node), 0.0) + growth
    return math.prod(growth_by_query.values())


Sizes = dict[str, int]
"""Sizes of columns by their names; "" is of every name, as a column may have none."""


def _measure_query(query: Any, ctes: dict[str, Sizes], outer: Sizes) -> Sizes:
    """Return how large the columns of a query become with all subqueries inlined, in columns of tables.

    Raises:
        ToolRefused: An expression becomes too large to plan.
    """
    from sqlglot import exp

    with_ = query.args.get("with_")
    for cte in with_.expressions if with_ else ():
        ctes = {**ctes, cte.alias.casefold(): _rename_sizes(cte, _measure_query(cte.this, ctes, outer))}
    if isinstance(query, exp.Subquery):
        return _rename_sizes(query, _measure_query(query.this, ctes, outer))
    if isinstance(query, exp.SetOperation):
        left, right = _measure_query(query.this, ctes, outer), _measure_query(query.expression, ctes, outer)
        largest = max(right.values(), default=1)
        return {name: max(size, largest) for name, size in left.items()}
    if not isinstance(query, exp.Select):
        return {}
    columns: Sizes = {}
    scope = dict(outer)
    sources = [query.args.get("from_"), *(query.args.get("joins") or ()), *(query.args.get("laterals") or ())]
    while sources:
        source = sources.pop()
        if isinstance(source, exp.Table | exp.Subquery):
            name = source.name.casefold()
            is_query = isinstance(source.this, exp.Query)
            sizes = _measure_query(source, ctes, scope) if is_query else _rename_sizes(source, ctes.get(name, {}))
            scope[source.alias_or_name.casefold()] = sum(sizes.values())
            columns |= {name: max(size, columns.get(name, 1)) for name, size in sizes.items()}
            sources += [] if is_query else list(source.iter_expressions())
        elif source is not None and not isinstance(source, exp.Condition):
            sources += list(source.iter_expressions())
    scope |= {name: max(size, scope.get(name, 1)) for name, size in columns.items()}
    outputs: Sizes = {}
    for item in query.expressions:
        sizes = columns if item.is_star else {item.alias_or_name.casefold(): _measure(item, ctes, scope)}
        outputs |= {name: max(size, outputs.get(name, 1)) for name, size in sizes.items()}
    for key in ("joins", "where", "group", "having", "order", "qualify", "windows"):
        clauses = query.args.get(key) or ()
        for clause in clauses if isinstance(clauses, list | tuple) else (clauses,):
            _measure(clause.args.get("on") if key == "joins" else clause, ctes, scope)
    return outputs


def _rename_sizes(source: Any, sizes: Sizes) -> Sizes:
    return {"": max(sizes.values(), default=1)} if get_alias_columns(source) else sizes


def _measure(expression: Any, ctes: dict[str, Sizes], scope: Sizes) -> int:
    from sqlglot import exp

    size, stack = 0, [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Column):
            size += max(scope.get(node.name.casefold(), 1), scope.get("", 1))
        elif isinstance(node, exp.Query):
            size += max(_measure_query(node, ctes, scope).values(), default=1)
        elif isinstance(node, exp.Sum | exp.Avg | exp.Count):
            size += bool(_measure(node.this, ctes, scope))  # a number, which the planner does not inline
        elif node is not None:
            stack += list(node.iter_expressions())
    if size > _MAX_GROWTH:
        raise ToolRefused("The query's subqueries use one another's columns too often: simplify it.")
    return max(size, 1)


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
