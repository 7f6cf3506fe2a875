"""Views and macros of a DuckDB file that read more than its tables."""

import json
import re
from dataclasses import dataclass
from typing import Any

from opposable.sql.duckdb.parse_tree_guard import is_allowed_node, iter_nodes
from opposable.sql.lexer import split_segments
from opposable.sql.schema import DatabaseSchema, fold_name

# A macro of the file can have the name of a function, unless the function has its schema.
_VIEWS_SQL = """
SELECT schema_name, view_name, sql FROM system.main.duckdb_views()
WHERE NOT internal AND database_name = system.main.current_database()
"""
_MACROS_SQL = """
SELECT function_name, macro_definition, function_type = 'macro' FROM system.main.duckdb_functions()
WHERE NOT internal AND database_name = system.main.current_database() AND macro_definition IS NOT NULL
"""
QualifiedName = tuple[str, str]
"""A folded schema and a folded name in it; macros are in the schema ""."""


@dataclass(frozen=True, slots=True)
class UntrustedViews:
    """Folded names of the untrusted views, with their schemas, and macros."""

    views: frozenset[QualifiedName] = frozenset()
    macros: frozenset[str] = frozenset()


def find_untrusted_views(connection: Any, schema: DatabaseSchema) -> UntrustedViews:
    """Find views and macros that read more than the file's tables.

    Views and macros that call functions outside the allow list are untrusted too.
    """
    views = connection.execute(_VIEWS_SQL).fetchall()
    macros = connection.execute(_MACROS_SQL).fetchall()
    bodies: dict[QualifiedName, list[str]] = {}
    for schema_name, name, text in views:
        bodies.setdefault((fold_name(schema_name), fold_name(name)), []).append(_extract_view_body(text))
    for name, text, scalar in macros:
        bodies.setdefault(("", fold_name(name)), []).append(f"SELECT ({text})" if scalar else str(text))
    macro_names = frozenset(name for schema_name, name in bodies if not schema_name)
    dependencies = {path: _find_dependencies(connection, texts, macro_names, schema) for path, texts in bodies.items()}
    untrusted = {path for path, used in dependencies.items() if used is None}
    while more := {path for path, used in dependencies.items() if path not in untrusted and used and used & untrusted}:
        untrusted |= more
    return UntrustedViews(
        frozenset(path for path in untrusted if path[0]),
        frozenset(name for schema_name, name in untrusted if not schema_name),
    )


def _extract_view_body(view: str) -> str:
    """Return the query after the AS of CREATE VIEW."""
    for segment in split_segments(view, "duckdb"):
        match = re.search(r"\bAS\b", segment.text) if segment.kind == "code" else None
        if match:
            return view[segment.start + match.end() :].strip().rstrip(";")
    return ""


def _find_dependencies(
    connection: Any, texts: list[str], macros: frozenset[str], schema: DatabaseSchema
) -> set[QualifiedName] | None:
    """Return the views and macros that queries use.

    The result is None where a query cannot be parsed or is not allowed.
    """
    used: set[QualifiedName] = set()
    for text in texts:
        (tree_text,) = connection.execute("SELECT system.main.json_serialize_sql(?)", [text]).fetchone()
        tree = json.loads(tree_text)
        if tree.get("error") or not tree.get("statements"):
            return None
        nodes_in_from = list(iter_nodes(tree["statements"]))
        cte_names = {
            fold_name(str(node["key"])) for node, _ in nodes_in_from if "query_node" in (node.get("value") or ())
        }
        for node, _ in nodes_in_from:
            if "function_name" in node and (name := fold_name(str(node["function_name"]))) in macros:
                used.add(("", name))
            elif not is_allowed_node(node):
                return None
            elif node.get("type") == "BASE_TABLE":
                schema_name, name = str(node["schema_name"]), str(node["table_name"])
                if not schema_name and fold_name(name) in cte_names:
                    continue
                table = schema.find_table_by_identifier(name, schema_name or schema.default_schema)
                if table is None:
                    return None
                used.add((fold_name(table.schema or schema.default_schema), fold_name(table.name)))
    return used
