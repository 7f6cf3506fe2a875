"""Tables, keys, comments and sizes of a MySQL or MariaDB database."""

from typing import Any

from opposable.sql.schema import Column, DatabaseSchema, Table, quote_name

_TABLES_SQL = """
SELECT table_name, table_type, table_comment, table_rows FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED', 'VIEW') ORDER BY table_name
"""
_COLUMNS_SQL = """
SELECT table_name, column_name, column_type, is_nullable = 'YES', column_key = 'PRI', column_comment
FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY table_name, ordinal_position
"""
_KEYS_SQL = """
SELECT table_name, column_name, referenced_table_schema = DATABASE(), referenced_table_schema, referenced_table_name,
  referenced_column_name FROM information_schema.key_column_usage
WHERE table_schema = DATABASE() AND referenced_table_name IS NOT NULL ORDER BY constraint_name, ordinal_position
"""
_MAX_ESTIMATE_TO_COUNT = 1_000
"""Rows in the server's estimate up to which a table is counted, at most to `_MAX_COUNTED_ROWS`."""
_MAX_COUNTED_ROWS = 10_000


def read_schema(connection: Any) -> DatabaseSchema:
    """Read the tables and views of the connection's database that its user may read."""
    ((database, table_case),) = _fetch_all(connection, "SELECT DATABASE(), @@lower_case_table_names")
    references: dict[tuple[str, str], str] = {}
    for table, column, is_here, schema, other, target in _fetch_all(connection, _KEYS_SQL):
        references[table, column] = f"{other}.{target}" if is_here else f"{schema}.{other}.{target}"
    columns: dict[str, list[Column]] = {}
    for table, name, type_, nullable, primary, comment in _fetch_all(connection, _COLUMNS_SQL):
        column = Column(name, type_, bool(nullable), bool(primary), references.get((table, name)), comment or None)
        columns.setdefault(table, []).append(column)
    tables: list[Table] = []
    for name, kind, comment, estimate in _fetch_all(connection, _TABLES_SQL):
        table_columns = tuple(columns.get(name, ()))
        if kind == "VIEW":
            tables.append(Table(name, table_columns, kind="view"))
            continue
        rows, exact = _count_rows(connection, name, estimate)
        tables.append(Table(name, table_columns, "", "table", comment or None, rows, exact))
    return DatabaseSchema(tuple(tables), database, "mysql", has_table_case=table_case == 0)


def _count_rows(connection: Any, name: str, estimate: int | None) -> tuple[int | None, bool]:
    """Return the number of rows, and whether it is exact; the sizes of large tables are estimates."""
    import pymysql

    if estimate is not None and estimate > _MAX_ESTIMATE_TO_COUNT:
        return int(estimate), False
    rows = f"SELECT 1 FROM {quote_name(name, 'mysql')} LIMIT {_MAX_COUNTED_ROWS + 1}"  # noqa: S608 - quoted
    try:
        ((count,),) = _fetch_all(connection, f"SELECT COUNT(*) FROM ({rows}) AS counted")  # noqa: S608 - built above
    except pymysql.Error:
        return None, True  # only some columns are readable, or the table is damaged: it stays listed
    return (int(count), True) if count <= _MAX_COUNTED_ROWS else (int(max(estimate or 0, count)), False)


def _fetch_all(connection: Any, sql: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())
