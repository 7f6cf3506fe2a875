"""Tables, keys, comments and sizes of a DuckDB database."""

from typing import Any

from opposable.sql.schema import Column, DatabaseSchema, Table

_TABLES_SQL = """
SELECT schema_name, table_name, 'table', comment, estimated_size FROM system.main.duckdb_tables()
WHERE NOT internal AND NOT temporary AND database_name = system.main.current_database()
UNION ALL
SELECT schema_name, view_name, 'view', comment, NULL FROM system.main.duckdb_views()
WHERE NOT internal AND NOT temporary AND database_name = system.main.current_database()
ORDER BY schema_name <> 'main', schema_name, table_name
"""
_COLUMNS_SQL = """
SELECT schema_name, table_name, column_name, data_type, is_nullable, comment FROM system.main.duckdb_columns()
WHERE NOT internal AND database_name = system.main.current_database() ORDER BY table_oid, column_index
"""
_KEYS_SQL = """
SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names
FROM system.main.duckdb_constraints() WHERE database_name = system.main.current_database()
AND constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY')
"""


def read_schema(connection: Any) -> DatabaseSchema:
    """Read every table and view of the file by name, the default schema first."""
    columns: dict[tuple[str, str], list[Any]] = {}
    for row in connection.execute(_COLUMNS_SQL).fetchall():
        columns.setdefault((row[0], row[1]), []).append(row[2:])
    primary, foreign = _read_keys(connection)
    tables: list[Table] = []
    for schema, name, kind, comment, rows in connection.execute(_TABLES_SQL).fetchall():
        key = (schema, name)
        table_columns = tuple(
            _to_column(row, primary.get(key, set()), foreign.get(key, {})) for row in columns.get(key, [])
        )
        tables.append(Table(name, table_columns, "" if schema == "main" else schema, kind, comment, rows))
    return DatabaseSchema(tuple(tables), dialect="duckdb")


def _to_column(row: Any, primary: set[str], foreign: dict[str, str]) -> Column:
    name, type_, nullable, comment = row
    return Column(name, type_, bool(nullable), name in primary, foreign.get(name), comment)


def _read_keys(connection: Any) -> tuple[dict[tuple[str, str], set[str]], dict[tuple[str, str], dict[str, str]]]:
    """Return primary and foreign key columns by table, the latter with targets."""
    primary: dict[tuple[str, str], set[str]] = {}
    foreign: dict[tuple[str, str], dict[str, str]] = {}
    for schema, table, kind, names, other, targets in connection.execute(_KEYS_SQL).fetchall():
        if kind == "PRIMARY KEY":
            primary.setdefault((schema, table), set()).update(names)
            continue
        pairs = zip(names, targets, strict=False)
        path = other if schema == "main" else f"{schema}.{other}"  # a key refers to a table of its own schema
        foreign.setdefault((schema, table), {}).update({name: f"{path}.{target}" for name, target in pairs})
    return primary, foreign
