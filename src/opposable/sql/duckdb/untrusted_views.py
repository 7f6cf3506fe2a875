"""Views and macros of a DuckDB file that ask for more than the file's tables: its settings, its path, other files."""

import json
import re
from dataclasses import dataclass
from typing import Any

from opposable.sql.duckdb.parse_tree_guard import is_allowed_node, iter_nodes
from opposable.sql.lexer import split_segments
from opposable.sql.schema import DatabaseSchema, fold_name

_VIEWS_SQL = """
SELECT schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal AND database_name = current_database()
"""
_MACROS_SQL = """
SELECT function_name, macro_definition, function_type = 'macro' FROM duckdb_functions()
WHERE NOT internal AND database_name = current_database() AND macro_definition IS NOT NULL
"""
QualifiedName = tuple[str, str]
"""A schema and a name in it, folded; macros are in the schema ""."""


@dataclass(frozen=True, slots=True)
class UntrustedViews:
    """The names of such views, with their schemas, and of such macros; all folded."""

    views: frozenset[QualifiedName] = frozenset()
    macros: frozenset[str] = frozenset()


def find_untrusted_views(connection: Any, schema: DatabaseSchema) -> UntrustedViews:
    """What of the file's own code does not read its tables with functions from the list alone."""
    views = connection.execute(_VIEWS_SQL).fetchall()
    macros = connection.execute(_MACROS_SQL).fetchall()
    bodies: dict[QualifiedName, list[str]] = {}
    for space, name, text in views:
        bodies.setdefault((fold_name(space), fold_name(name)), []).append(_extract_view_body(text))
    for name, text, scalar in macros:
        bodies.setdefault(("", fold_name(name)), []).append(f"SELECT ({text})" if scalar else str(text))
    own = frozenset(name for space, name in bodies if not space)
    uses = {path: _find_dependencies(connection, texts, own, schema) for path, texts in bodies.items()}
    bad = {path for path, used in uses.items() if used is None}
    while more := {path for path, used in uses.items() if path not in bad and used and used & bad}:
        bad |= more
    return UntrustedViews(
        frozenset(path for path in bad if path[0]), frozenset(name for space, name in bad if not space)
    )


def _extract_view_body(view: str) -> str:
    """What follows the first AS of CREATE VIEW that is no part of a name."""
    for part in split_segments(view):
        found = re.search(r"\bAS\b", part.text) if part.kind == "code" else None
        if found:
            return view[part.start + found.end() :].strip().rstrip(";")
    return ""


def _find_dependencies(
    connection: Any, texts: list[str], macros: frozenset[str], schema: DatabaseSchema
) -> set[QualifiedName] | None:
    """The views and macros that these queries use; None where one cannot be read or uses what is not allowed."""
    used: set[QualifiedName] = set()
    for text in texts:
        (told,) = connection.execute("SELECT json_serialize_sql(?)", [text]).fetchone()
        tree = json.loads(told)
        if tree.get("error") or not tree.get("statements"):
            return None
        found = list(iter_nodes(tree["statements"]))
        named = {fold_name(str(node["key"])) for node, _ in found if "query_node" in (node.get("value") or ())}
        for node, _ in found:
            if "function_name" in node and (name := fold_name(str(node["function_name"]))) in macros:
                used.add(("", name))
            elif not is_allowed_node(node):
                return None
            elif node.get("type") == "BASE_TABLE":
                space, name = str(node["schema_name"]), str(node["table_name"])
                if not space and fold_name(name) in named:
                    continue
                table = schema.find_table_by_identifier(name, space or schema.default_schema)
                if table is None:
                    return None
                used.add((fold_name(table.schema or schema.default_schema), fold_name(table.name)))
    return used
