"""The views and macros of a DuckDB file: those that read more than its tables are untrusted."""

import json
import re
from typing import Any

from opposable.domain.errors import ToolRefused
from opposable.sql.duckdb.parse_tree_guard import StoredCode, iter_nodes, refuse_node
from opposable.sql.lexer import split_segments
from opposable.sql.schema import DatabaseSchema, fold_name

# A macro of the file can have the name of a function, unless the function has its schema.
_VIEWS_SQL = """
SELECT schema_name, view_name, sql FROM system.main.duckdb_views()
WHERE NOT internal AND database_name = system.main.current_database()
"""
_FUNCTIONS_SQL = """
SELECT function_name, macro_definition, function_type = 'macro', internal FROM system.main.duckdb_functions()
WHERE internal OR (database_name = system.main.current_database() AND macro_definition IS NOT NULL)
"""
QualifiedName = tuple[str, str]
"""A folded schema and a folded name in it; macros are in the schema ""."""


def read_stored_code(connection: Any, schema: DatabaseSchema) -> StoredCode:
    """Read the macros that read only the file's tables, and the names of views and macros that read more.

    Views and macros that call functions outside the allow list are untrusted too.
    """
    views = connection.execute(_VIEWS_SQL).fetchall()
    functions = connection.execute(_FUNCTIONS_SQL).fetchall()
    bodies: dict[QualifiedName, list[str]] = {}
    for schema_name, name, text in views:
        bodies.setdefault((fold_name(schema_name), fold_name(name)), []).append(_extract_view_body(text))
    for name, text, scalar, internal in functions:
        if not internal:
            bodies.setdefault(("", fold_name(name)), []).append(f"SELECT ({text})" if scalar else str(text))
    macro_names = frozenset(name for schema_name, name in bodies if not schema_name)
    own_names = macro_names - {fold_name(name) for name, _, _, internal in functions if internal}
    serialize = "SELECT system.main.json_serialize_sql(?)"
    trees = {
        path: [connection.execute(serialize, [text]).fetchone()[0] for text in texts] for path, texts in bodies.items()
    }
    dependencies = {path: _find_dependencies(texts, macro_names, own_names, schema) for path, texts in trees.items()}
    untrusted = {path for path, used in dependencies.items() if used is None}
    while more := {path for path, used in dependencies.items() if path not in untrusted and used and used & untrusted}:
        untrusted |= more
    return StoredCode(
        frozenset(path for path in untrusted if path[0]),
        frozenset(name for schema_name, name in untrusted if not schema_name),
        {name: trees["", name] for name in own_names if ("", name) not in untrusted},
    )


def _extract_view_body(view: str) -> str:
    """Return the query after the AS of CREATE VIEW."""
    for segment in split_segments(view, "duckdb"):
        match = re.search(r"\bAS\b", segment.text) if segment.kind == "code" else None
        if match:
            return view[segment.start + match.end() :].strip().rstrip(";")
    return ""


def _find_dependencies(
    trees: list[str], macros: frozenset[str], own_names: frozenset[str], schema: DatabaseSchema
) -> set[QualifiedName] | None:
    """Return the views and macros that queries use; no function of DuckDB has one of `own_names`.

    The result is None where a query cannot be parsed or is not allowed.
    """
    used: set[QualifiedName] = set()
    for text in trees:
        tree = json.loads(text)
        if tree.get("error") or not tree.get("statements"):
            return None
        nodes_in_from = list(iter_nodes(tree["statements"]))
        cte_names = {
            fold_name(str(node["key"])) for node, _ in nodes_in_from if "query_node" in (node.get("value") or ())
        }
        for node, _ in nodes_in_from:
            if "function_name" in node and (name := fold_name(str(node["function_name"]))) in macros:
                used.add(("", name))
            try:
                refuse_node(node, own_names)
            except ToolRefused:
                return None
            if node.get("type") == "BASE_TABLE":
                schema_name, name = str(node["schema_name"]), str(node["table_name"])
                if not schema_name and fold_name(name) in cte_names:
                    continue
                table = schema.find_table_by_identifier(name, schema_name or schema.default_schema)
                if table is None:
                    return None
                used.add((fold_name(table.schema or schema.default_schema), fold_name(table.name)))
    return used
