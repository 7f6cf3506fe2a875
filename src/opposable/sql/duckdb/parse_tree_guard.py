"""A check of the functions and sizes in DuckDB's own parse tree."""

import json
import math
import re
import secrets
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from opposable.domain.errors import ToolRefused
from opposable.sql import messages
from opposable.sql.function_allowlist import DUCKDB_FUNCTIONS, DUCKDB_TABLE_FUNCTIONS
from opposable.sql.schema import fold_name, to_one_line

_ENDS_OF_PIVOT_ON = frozenset({"R_PAREN", "GROUP_BY", "ORDER_BY", "LIMIT", "EOF"})
_QUERY_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_REFUSED_NODES = frozenset({"SHOW_REF", "TABLE_REF_SHOW", "BOUND_TABLE_REF"})
_INTERNAL_FUNCTIONS = frozenset({"count_star", "create_sort_key", "struct_extract_at", "collate"})
_SIZED_FUNCTIONS = frozenset({"repeat", "lpad", "rpad", "bitstring", "list_resize", "array_resize"})
_REPLACE_FUNCTIONS = frozenset({"replace", "regexp_replace"})
_FORMAT_FUNCTIONS = frozenset({"printf", "format"})
_LIST_FUNCTIONS = frozenset({"range", "generate_series"})
_GROWING_FUNCTIONS = _SIZED_FUNCTIONS | _REPLACE_FUNCTIONS | _FORMAT_FUNCTIONS | _LIST_FUNCTIONS
_DISTANCE_FUNCTIONS = frozenset(
    {"levenshtein", "damerau_levenshtein", "editdist3", "jaro_similarity", "jaro_winkler_similarity"}
)
"""Functions whose time grows with the product of two lengths, and which DuckDB does not interrupt."""
_UNCOUNTED_GROWTH = 100
"""Growth that formatting needs; up to here it is not counted."""
_MAX_GROWTH = 100_000
"""Factor by which a query may lengthen text: its memory is not part of DuckDB's limit."""
_MAX_COMPARED_CHARACTERS = 5_000
"""Length of the longest text of a query with a distance function."""
_MAX_LIST_ITEMS = 1_000_000
"""Product of the lengths of all range(…) lists in one query."""
_MAX_MACRO_CALLS = 1_000


@dataclass(frozen=True, slots=True)
class StoredCode:
    """Folded names of views and macros of a file. Trusted macros have JSON trees and no name of a DuckDB function."""

    untrusted_views: frozenset[tuple[str, str]] = frozenset()
    untrusted_macros: frozenset[str] = frozenset()
    trusted_macros: Mapping[str, list[str]] = field(default_factory=dict)


def check_parse_tree(cursor: Any, sql: str, code: StoredCode | None = None) -> None:
    """Check that DuckDB parses `sql` as one read-only query, with the bodies of the macros in place of their calls.

    Raises:
        ToolRefused: It is not a single query, calls a function that is not allowed, or builds huge values.
        duckdb.ParserException: It is not valid SQL.
    """
    import duckdb

    statements = cursor.extract_statements(sql)
    value, count = secrets.token_hex(8), 0
    if len(statements) == 1 and statements[0].type == duckdb.StatementType.MULTI:
        sql, count = _add_pivot_values(sql, value)  # else DuckDB looks for the values, and shows no tree
        statements = cursor.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise _build_refusal("only one SELECT statement may run here.")
    (text,) = cursor.execute("SELECT system.main.json_serialize_sql(?)", [sql]).fetchone()
    tree = json.loads(text)
    if tree.get("error"):
        raise _build_refusal(f"{tree.get('error_message')}")
    if text.count(value) != count:
        raise _build_refusal("its PIVOT cannot be read: list the values, as in ON x IN ('a', 'b').")
    items, longest, macro_calls = 1.0, 1, 0
    distance_function, code = "", code or StoredCode()
    for node, in_from in iter_nodes(tree["statements"]):
        name = fold_name(str(node.get("function_name", ""))) if code.trusted_macros else ""
        if trees := code.trusted_macros.get(name):
            macro_calls += 1
            if macro_calls > _MAX_MACRO_CALLS:
                raise ToolRefused(messages.too_many(macro_calls, "calls of macros", _MAX_MACRO_CALLS))
            node["macro"] = [json.loads(body)["statements"][0]["node"] for body in trees]
            for body in () if in_from else node["macro"]:
                body["type"] = "MACRO"  # an expression, not a query
            for column in [inner for inner, _ in iter_nodes(node["macro"]) if inner.get("class") == "COLUMN_REF"]:
                column["arguments"] = list(node["arguments"])  # it may be a parameter
                node["arguments"] = tuple(column["arguments"])  # only read there
        refuse_node(node, code.trusted_macros)
        _refuse_untrusted_names(node, code)
        longest = max(longest, len(_get_literal_text(node) or ""))
        if "function_name" in node:
            items *= 1.0 if in_from else _count_list_items(node)
            name = str(node["function_name"]).casefold()
            distance_function = name if name in _DISTANCE_FUNCTIONS else distance_function
    growth = _estimate_query_growth(tree["statements"], 1 if distance_function else _UNCOUNTED_GROWTH)
    if distance_function and growth * longest > _MAX_COMPARED_CHARACTERS:
        raise ToolRefused(f"{distance_function}() may compare texts of at most {_MAX_COMPARED_CHARACTERS} characters.")
    if growth > _MAX_GROWTH:
        raise ToolRefused(f"The query would blow text up {growth:g} times: at most {_MAX_GROWTH} are allowed.")
    if items > _MAX_LIST_ITEMS:
        raise ToolRefused(
            f"The query would make lists of {items:g} items: at most {_MAX_LIST_ITEMS}; use range() in FROM."
        )


def _add_pivot_values(sql: str, value: str) -> tuple[str, int]:
    """Return `sql` with each expression of PIVOT … ON in brackets before a list of one value, and the number of lists."""
    import sqlglot

    tokens = sqlglot.tokenize(sql, dialect="duckdb")
    kinds = [*(token.token_type.name for token in tokens), "EOF", ""]
    spans: list[tuple[int, int]] = []
    starts: list[int | None] = [None]  # by depth of brackets: of an expression, -1 in a PIVOT before ON
    for number, kind in enumerate(kinds[:-1]):
        is_end = kind in _ENDS_OF_PIVOT_ON or (kind == "USING" and kinds[number + 1] != "L_PAREN")  # not that of a JOIN
        start = starts[-1]
        if start is not None and start >= 0 and (is_end or kind == "COMMA"):
            spans.append((start, tokens[number - 1].end + 1))
        if kind == "PIVOT":
            starts[-1] = -1
        elif is_end:
            starts[-1] = None
        elif start is not None and (kind == "ON" or (kind == "COMMA" and start >= 0)):
            starts[-1] = tokens[number].end + 1
        if kind.startswith("L_"):
            starts.append(None)
        elif kind.startswith("R_") and len(starts) > 1:
            starts.pop()
    for start, end in sorted(spans, reverse=True):
        sql = f"{sql[:start]} ({sql[start:end]}) IN ('{value}'){sql[end:]}"
    return sql, len(spans)


def _refuse_untrusted_names(node: dict[str, Any], code: StoredCode) -> None:
    """Refuse untrusted macros and views of the file.

    A view without a schema matches in every schema.
    """
    if code.untrusted_macros and fold_name(str(node.get("function_name", ""))) in code.untrusted_macros:
        raise _build_refusal(f"{to_one_line(str(node['function_name']))} is a macro of this file.")
    if not code.untrusted_views or node.get("type") != "BASE_TABLE":
        return
    schema_name, name = fold_name(str(node["schema_name"])), fold_name(str(node["table_name"]))
    if any(view == name and schema_name in ("", schema) for schema, view in code.untrusted_views):
        raise ToolRefused(f"The view {to_one_line(name)} may not be read: it asks for more than this file's tables.")


def iter_nodes(root: Any) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield every object of the tree, and whether it is a function in FROM."""
    stack: list[tuple[Any, bool]] = [(root, False)]
    while stack:
        node, in_from = stack.pop()
        if isinstance(node, list):
            stack += [(item, False) for item in node]
        elif isinstance(node, dict):
            yield node, in_from
            from_function = node.get("type") == "TABLE_FUNCTION"
            stack += [(value, from_function and key == "function") for key, value in node.items()]


def _build_refusal(reason: str) -> ToolRefused:
    return ToolRefused(messages.engine_refused(reason))


def refuse_node(node: dict[str, Any], macros: Collection[str]) -> None:
    """Refuse a node that does more than read with `macros` and with functions on the allow list."""
    kind = str(node.get("type", ""))
    if kind.endswith("_NODE") and kind not in _QUERY_NODES:
        raise _build_refusal(f"{kind.removesuffix('_NODE').replace('_', ' ')} is not a query that only reads.")
    if kind in _REFUSED_NODES and not node.get("query"):  # DESCRIBE and SUMMARIZE have a query, SHOW has none
        raise _build_refusal("SHOW is not allowed.")
    if kind == "TABLE_FUNCTION":
        name = fold_name(str(node["function"].get("function_name", "")))
        if name not in DUCKDB_TABLE_FUNCTIONS and name not in macros:
            raise _build_refusal(f"the table function {name} is not available here.")
    elif node.get("class") == "FUNCTION" and not node.get("is_operator"):
        name = fold_name(str(node["function_name"]))
        is_allowed = name in DUCKDB_FUNCTIONS | DUCKDB_TABLE_FUNCTIONS | _INTERNAL_FUNCTIONS or name in macros
        if not is_allowed and name[:1].isalpha():
            raise _build_refusal(f"the function {name} is not available here.")


def _estimate_query_growth(root: Any, uncounted: int) -> float:
    """Return by what factor a query can lengthen text: a sum within a SELECT, a product of nested functions and SELECTs.

    Growth up to `uncounted` is not counted.
    """
    growth_by_query: dict[int, float] = {}
    stack: list[tuple[Any, int, float]] = [(root, 0, 1.0)]
    while stack:
        node, query, path = stack.pop()
        if isinstance(node, dict):
            if isinstance(kind := node.get("type"), str) and kind in _QUERY_NODES:  # that of a CAST is an object
                query, path = id(node), 1.0
            growth = _estimate_growth(node, uncounted) if "function_name" in node else 1.0
            path *= growth
            if growth > 1.0:
                growth_by_query[query] = growth_by_query.get(query, 0.0) + path
        if isinstance(node, dict | list):
            stack += [(child, query, path) for child in (node.values() if isinstance(node, dict) else node)]
    return math.prod(growth_by_query.values())


def _estimate_growth(node: dict[str, Any], uncounted: int) -> float:
    """Return by what factor a function can lengthen its argument; 1 where it cannot."""
    name = str(node["function_name"]).casefold()
    arguments = _get_arguments(node)
    if name in _SIZED_FUNCTIONS:
        return _get_length_growth(name, arguments[1:2], uncounted)
    if name in _REPLACE_FUNCTIONS:
        replaced = _get_literal_text(arguments[1]) if name == "replace" and len(arguments) > 1 else None
        return _get_replacement_growth(arguments[2:3], uncounted, len(replaced or "x"))
    if name in _FORMAT_FUNCTIONS:
        _refuse_format(name, arguments[:1])
    return 1.0


def _count_list_items(node: dict[str, Any]) -> float:
    """Return the length of a list between literal numbers.

    It is 1 for short lists and for bounds from columns.
    """
    if str(node["function_name"]).casefold() not in _LIST_FUNCTIONS:
        return 1.0
    numbers = [
        text for text in map(_get_literal_text, _get_arguments(node)) if text is not None and text.lstrip("-").isdigit()
    ]
    largest = max((abs(int(text)) for text in numbers), default=0)
    return 1.0 if largest <= _UNCOUNTED_GROWTH else float(largest)


def _get_arguments(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [argument.get("expression", argument) for argument in node.get("arguments", [])]


def _get_literal_text(argument: dict[str, Any]) -> str | None:
    literal = argument.get("literal") if argument.get("class") == "CONSTANT" else None
    if not isinstance(literal, dict) or literal.get("text") is None:
        return None
    return str(literal["text"])


def _get_length_growth(name: str, arguments: list[dict[str, Any]], uncounted: int) -> float:
    bounds = arguments
    if arguments and str(arguments[0].get("function_name", "")).casefold() == "least":
        bounds = _get_arguments(arguments[0])
    numbers = [int(text) for text in map(_get_literal_text, bounds) if text is not None and re.fullmatch(r"\d+", text)]
    if not numbers:
        raise ToolRefused(messages.length_without_bound(name, _MAX_GROWTH))
    return 1.0 if min(numbers) <= uncounted else float(min(numbers))


def _get_replacement_growth(arguments: list[dict[str, Any]], uncounted: int, replaced_length: int) -> float:
    """Return how much longer than the replaced text a replacement is; values of columns do not count, as everywhere."""
    length = 0
    for node, _ in iter_nodes(arguments):
        if str(node.get("function_name", "")).casefold() in _GROWING_FUNCTIONS or node.get("class") == "SUBQUERY":
            return math.inf
        length += len(_get_literal_text(node) or "")
    growth = length / replaced_length
    return 1.0 if growth <= uncounted else growth


def _refuse_format(name: str, arguments: list[dict[str, Any]]) -> None:
    text = _get_literal_text(arguments[0]) if arguments else None
    if text is None or re.search(r"\d{4}|\*|\{[^}]*\{", text):
        raise ToolRefused(f"{name}() takes its format as text written out, with widths below 1000.")
