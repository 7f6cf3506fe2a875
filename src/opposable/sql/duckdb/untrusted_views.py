"""Views and macros of a DuckDB file that ask for more than the file's tables: its settings, its path, other files."""

import json
import re
from dataclasses import dataclass
from typing import Any

from opposable.sql.duckdb.parse_tree_guard import allowed, nodes
from opposable.sql.lexer import segments
from opposable.sql.schema import Schema, folded_name

_VIEWS = """
SELECT schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal AND database_name = current_database()
"""
_MACROS = """
SELECT function_name, macro_definition, function_type = 'macro' FROM duckdb_functions()
WHERE NOT internal AND database_name = current_database() AND macro_definition IS NOT NULL
"""
Path = tuple[str, str]
"""A schema and a name in it, folded; macros are in the schema ""."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """The names of such views, with their schemas, and of such macros; all folded."""

    views: frozenset[Path] = frozenset()
    macros: frozenset[str] = frozenset()


def read_foreign(connection: Any, schema: Schema) -> Foreign:
    """What of the file's own code does not read its tables with functions from the list alone."""
    views = connection.execute(_VIEWS).fetchall()
    macros = connection.execute(_MACROS).fetchall()
    bodies: dict[Path, list[str]] = {}
    for space, name, text in views:
        bodies.setdefault((folded_name(space), folded_name(name)), []).append(_body(text))
    for name, text, scalar in macros:
        bodies.setdefault(("", folded_name(name)), []).append(f"SELECT ({text})" if scalar else str(text))
    own = frozenset(name for space, name in bodies if not space)
    uses = {path: _uses(connection, texts, own, schema) for path, texts in bodies.items()}
    bad = {path for path, used in uses.items() if used is None}
    while more := {path for path, used in uses.items() if path not in bad and used and used & bad}:
        bad |= more
    return Foreign(frozenset(path for path in bad if path[0]), frozenset(name for space, name in bad if not space))


def _body(view: str) -> str:
    """What follows the first AS of CREATE VIEW that is no part of a name."""
    for part in segments(view):
        found = re.search(r"\bAS\b", part.text) if part.kind == "code" else None
        if found:
            return view[part.start + found.end() :].strip().rstrip(";")
    return ""


def _uses(connection: Any, texts: list[str], macros: frozenset[str], schema: Schema) -> set[Path] | None:
    """The views and macros that these queries use; None where one cannot be read or uses what is not allowed."""
    used: set[Path] = set()
    for text in texts:
        (told,) = connection.execute("SELECT json_serialize_sql(?)", [text]).fetchone()
        tree = json.loads(told)
        if tree.get("error") or not tree.get("statements"):
            return None
        found = list(nodes(tree["statements"]))
        named = {folded_name(str(node["key"])) for node, _ in found if "query_node" in (node.get("value") or ())}
        for node, _ in found:
            if "function_name" in node and (name := folded_name(str(node["function_name"]))) in macros:
                used.add(("", name))
            elif not allowed(node):
                return None
            elif node.get("type") == "BASE_TABLE":
                space, name = str(node["schema_name"]), str(node["table_name"])
                if not space and folded_name(name) in named:
                    continue
                table = schema.find_named(name, space or schema.default)
                if table is None:
                    return None
                used.add((folded_name(table.schema or schema.default), folded_name(table.name)))
    return used
