"""Tables, keys, comments and sizes of a PostgreSQL database."""

from typing import Any

from opposable.sql.function_allowlist import POSTGRES_FUNCTIONS
from opposable.sql.schema import Column, DatabaseSchema, Table, quote_name

_READABLE_SQL = """
  n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
  AND c.relkind IN ('r', 'v', 'm', 'f', 'p') AND NOT (c.relispartition AND EXISTS (SELECT 1 FROM pg_catalog.pg_class p
    JOIN pg_catalog.pg_partition_ancestors(c.oid) a ON a.relid = p.oid WHERE p.relrowsecurity))
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
"""
_TABLES_SQL = f"""
SELECT c.oid, n.nspname, c.relname, c.relkind::text, pg_catalog.obj_description(c.oid, 'pg_class'),
  CASE WHEN c.relkind = 'p' THEN (SELECT sum(greatest(p.reltuples, 0)) FROM pg_catalog.pg_class p
    JOIN pg_catalog.pg_partition_tree(c.oid) t ON t.relid = p.oid AND t.isleaf)
  ELSE c.reltuples END, CASE WHEN c.relispartition THEN pg_catalog.pg_partition_root(c.oid)::oid END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE {_READABLE_SQL} ORDER BY n.nspname, c.relname
"""  # noqa: S608 - a constant
_COLUMNS_SQL = f"""
SELECT c.oid, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
  pg_catalog.col_description(c.oid, a.attnum)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE {_READABLE_SQL} AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT') AND NOT c.relispartition
ORDER BY c.oid, a.attnum
"""  # noqa: S608 - a constant
_KEYS_SQL = """
SELECT k.conrelid, k.contype::text, a.attname, o.relname, m.nspname, b.attname
FROM pg_catalog.pg_constraint k
CROSS JOIN LATERAL unnest(k.conkey, k.confkey) AS pair(own, other)
JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = pair.own
LEFT JOIN pg_catalog.pg_class o ON o.oid = k.confrelid
LEFT JOIN pg_catalog.pg_namespace m ON m.oid = o.relnamespace
LEFT JOIN pg_catalog.pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = pair.other
WHERE k.contype IN ('p', 'f')
"""
_SYSTEM_COLUMNS = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"})
_FUNCTIONS_SQL = """
SELECT DISTINCT p.proname FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE pg_catalog.pg_function_is_visible(p.oid) AND (p.prosecdef OR (
  p.pronargs > 0 AND p.pronargs - p.pronargdefaults <= 1 AND NOT p.proname = ANY(%s)
  AND p.proargtypes[0] <> 'internal'::regtype AND NOT (p.provolatile = 'i' AND l.lanname IN ('internal', 'c'))))
"""
"""Functions that run as their owner, and those of one value that are not allowed: `value.name` calls them too.

Immutable ones of the server and of extensions only compute, so a column may share their name.
"""
_EXTENSION_FUNCTIONS_SQL = """
SELECT p.proname FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE pg_catalog.pg_function_is_visible(p.oid) GROUP BY p.proname
HAVING bool_and(p.provolatile = 'i' AND NOT p.prosecdef AND l.lanname IN ('internal', 'c', 'sql') AND EXISTS (
  SELECT 1 FROM pg_catalog.pg_depend d
  WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'))
"""
"""Immutable functions of extensions: they only compute."""
_OPERATORS_SQL = """
SELECT DISTINCT o.oprname FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode
WHERE o.oprnamespace <> 'pg_catalog'::regnamespace AND pg_catalog.pg_operator_is_visible(o.oid)
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d
    WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
  AND (p.prosecdef OR NOT EXISTS (SELECT 1 FROM pg_catalog.pg_operator c
    WHERE c.oprname = o.oprname AND c.oprnamespace = 'pg_catalog'::regnamespace))
"""
_TYPES_SQL = """
SELECT t.typname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_type r ON r.oid = c.reltype
JOIN pg_catalog.pg_type t ON t.oid IN (r.oid, r.typarray)
WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND pg_catalog.pg_type_is_visible(t.oid) AND (c.oid = ANY(%s::oid[])
  OR EXISTS (SELECT 1 FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    AND NOT pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')))
"""
_MAX_ESTIMATE_TO_COUNT = 1_000
"""Rows in the server's estimate up to which a table is counted, at most to `_MAX_COUNTED_ROWS`."""
_MAX_COUNTED_ROWS = 10_000


async def read_schema(
    connection: Any, default_schema: str, excluded_oids: frozenset[int] = frozenset()
) -> DatabaseSchema:
    """Read the tables and views of the role, the default schema's first."""
    columns: dict[int, list[Any]] = {}
    for oid, *column in await _fetch_all(connection, _COLUMNS_SQL):
        columns.setdefault(oid, []).append(column)
    primary: dict[int, set[str]] = {}
    foreign: dict[int, dict[str, str]] = {}
    for oid, kind, name, other, schema, target in await _fetch_all(connection, _KEYS_SQL):
        if kind == "p":
            primary.setdefault(oid, set()).add(name)
        else:
            path = other if schema == default_schema else f"{schema}.{other}"
            foreign.setdefault(oid, {})[name] = f"{path}.{target}"
    tables: list[Table] = []
    partitions: list[Table] = []
    for oid, schema, name, kind, comment, estimate, root in await _fetch_all(connection, _TABLES_SQL):
        if oid in excluded_oids:
            continue
        table_columns = tuple(
            Column(column, type_, nullable, column in primary.get(oid, ()), foreign.get(oid, {}).get(column), comment)
            for column, type_, nullable, comment in columns.get(root or oid, [])
        )
        path = "" if schema == default_schema else schema
        if root:
            partitions.append(Table(name, table_columns, path, hidden_columns=_SYSTEM_COLUMNS))
            continue
        rows, exact = (None, True) if kind == "v" else await _count_rows(connection, schema, name, kind, estimate)
        hidden = frozenset[str]() if kind == "v" else _SYSTEM_COLUMNS
        kind = "view" if kind in ("v", "m") else "table"
        tables.append(Table(name, table_columns, path, kind, comment, rows, exact, hidden))
    allowed = frozenset(name.casefold() for (name,) in await _fetch_all(connection, _EXTENSION_FUNCTIONS_SQL))
    functions = await _fetch_all(connection, _FUNCTIONS_SQL, [sorted(POSTGRES_FUNCTIONS)])
    operators = await _fetch_all(connection, _OPERATORS_SQL)
    types = await _fetch_all(connection, _TYPES_SQL, [list(excluded_oids)])
    return DatabaseSchema(
        tuple(sorted(tables, key=lambda table: bool(table.schema))),
        default_schema,
        "postgres",
        partitions=tuple(partitions),
        allowed_functions=allowed,
        refused_functions=frozenset(name.casefold() for (name,) in functions) - allowed,
        refused_operators=frozenset(name for (name,) in operators),
        refused_types=frozenset(name.casefold() for (name,) in types),
    )


async def _count_rows(
    connection: Any, schema: str, name: str, kind: str, estimate: float | None
) -> tuple[int | None, bool]:
    """Return the number of rows, and whether it is exact.

    Small tables are counted; the sizes of others are the server's estimates.
    """
    import psycopg

    if kind == "f":
        return (int(estimate), False) if estimate and estimate > 0 else (None, True)
    if estimate is not None and estimate > _MAX_ESTIMATE_TO_COUNT:
        return int(estimate), False
    path = f"{quote_name(schema, 'postgres')}.{quote_name(name, 'postgres')}"
    count_sql = f"SELECT count(*) FROM (SELECT 1 FROM {path} LIMIT {_MAX_COUNTED_ROWS + 1}) AS first"  # noqa: S608 - quoted
    try:
        async with connection.transaction():
            ((count,),) = await _fetch_all(connection, count_sql)
    except psycopg.errors.InsufficientPrivilege:
        return None, True  # only some columns are readable, or row security forbids it: the table stays listed
    return (int(count), True) if count <= _MAX_COUNTED_ROWS else (int(max(estimate or 0, count)), False)


async def _fetch_all(connection: Any, sql: str, values: list[Any] | None = None) -> list[Any]:
    return list(await (await connection.execute(sql, values)).fetchall())
