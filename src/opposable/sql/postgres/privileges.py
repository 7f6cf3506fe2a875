"""Privileges of a PostgreSQL role, and a transaction that can only read."""

from dataclasses import dataclass
from typing import Any

from opposable.sql.schema import quote_identifier

READER_ROLE = "pg_read_all_data"
"""Predefined role (PostgreSQL 14 and later) with SELECT on every table and no other right."""

_ROLE_SQL = """
SELECT r.rolsuper, pg_catalog.current_setting('server_version_num')::int,
  EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = %(reader)s),
  r.rolsuper OR r.rolcreaterole OR r.rolreplication
    OR EXISTS (SELECT 1 FROM pg_catalog.pg_roles g WHERE g.rolname IN ('pg_write_all_data', 'pg_write_server_files',
      'pg_read_server_files', 'pg_execute_server_program', 'pg_signal_backend', 'pg_maintain')
      AND pg_catalog.pg_has_role(session_user, g.oid, 'MEMBER'))
    OR EXISTS (SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'p', 'v', 'f') AND n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema'
      AND pg_catalog.has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')),
  r.rolsuper OR EXISTS (SELECT 1 FROM pg_catalog.pg_roles g WHERE g.rolname IN ('pg_read_server_files',
    'pg_write_server_files', 'pg_execute_server_program') AND pg_catalog.pg_has_role(session_user, g.oid, 'MEMBER')),
  (SELECT coalesce(array_agg(s.name ORDER BY s.place), '{}') FROM
    unnest(pg_catalog.current_schemas(false)) WITH ORDINALITY AS s(name, place))
FROM pg_catalog.pg_roles r WHERE r.rolname = session_user
"""
_CAN_SET_ROLE_SQL = "SELECT pg_catalog.pg_has_role(session_user, %(reader)s, %(how)s)"


@dataclass(frozen=True, slots=True)
class ReadAccess:
    """The role and privileges that a database is read with.

    Attributes:
        assumed_role: The role each transaction takes on, "" for the connection's own.
        is_superuser: Whether the connection's own role is a superuser.
        can_access_files: Whether the connection's own role could read or write the server's files.
        search_path: The schemas whose tables need no schema before their name.
    """

    assumed_role: str
    is_superuser: bool
    can_access_files: bool
    search_path: tuple[str, ...]

    @property
    def default_schema(self) -> str:
        """The schema that names may omit, pg_catalog where the search path is empty."""
        return self.search_path[0] if self.search_path else "pg_catalog"

    def build_begin_sql(self, seconds: float) -> str:
        """Return the statements that begin a read-only transaction with a time limit."""
        milliseconds = max(1, int(seconds * 1_000))
        # The server searches pg_catalog first where the path does not name it: current_schema() is another one.
        schemas = [quote_identifier(schema) for schema in self.search_path if schema != "pg_catalog"]
        path = ", ".join([*schemas, "pg_temp"])
        statements = [
            "BEGIN TRANSACTION READ ONLY",
            f"SET LOCAL statement_timeout = {milliseconds}",
            f"SET LOCAL lock_timeout = {milliseconds}",
            f"SET LOCAL idle_in_transaction_session_timeout = {milliseconds + 10_000}",
            f"SET LOCAL search_path = {path}",
            "SET LOCAL standard_conforming_strings = on",
            "SET LOCAL jit = off",
        ]
        if self.assumed_role:
            # Row security hides rows from this role that the connection's own role sees: an error is better.
            statements += ["SET LOCAL row_security = off", f"SET LOCAL ROLE {quote_identifier(self.assumed_role)}"]
        return "; ".join(statements)


async def read_access(connection: Any) -> ReadAccess:
    """Read the privileges of the connection's role.

    Where it may write, choose a read-only role to assume.
    """
    reader = {"reader": READER_ROLE}
    row = await (await connection.execute(_ROLE_SQL, reader)).fetchone()
    is_superuser, version, has_reader, can_write, can_access_files, path = row
    assumed_role = ""
    if can_write and has_reader:
        how = {"how": "SET" if version >= 160_000 else "MEMBER"}
        ((can_set_role,),) = await (await connection.execute(_CAN_SET_ROLE_SQL, reader | how)).fetchall()
        assumed_role = READER_ROLE if can_set_role else ""
    return ReadAccess(assumed_role, is_superuser, can_access_files, tuple(path))
