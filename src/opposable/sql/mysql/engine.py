"""MySQL and MariaDB databases, opened read-only.

A read-only transaction and limits of the session protect them; users who may access the server's files are refused.
"""

import asyncio
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from opposable.domain.errors import BadInput, ToolUnavailable
from opposable.sql.database import DEFAULT_LIMITS, OpenedDatabase, QueryLimits, QueryResult
from opposable.sql.described_statements import extract_query
from opposable.sql.errors import QueryTimedOut, translate_engine_error
from opposable.sql.function_allowlist import Dialect
from opposable.sql.interruptible_threads import InterruptibleThreads
from opposable.sql.lexer import split_segments
from opposable.sql.messages import database_unreachable
from opposable.sql.mysql.schema_reader import read_schema
from opposable.sql.result_rows import build_query_result
from opposable.sql.schema import DatabaseSchema, to_one_line
from opposable.sql.statement_guard import parse_safe_query, refuse_unlisted_tables

T = TypeVar("T")

URL_FORM = "mysql://USER:PASSWORD@HOST:PORT/DATABASE"
_INVALID_URL = f"The database URL is not valid. Use {URL_FORM}, with special characters percent-encoded."
_URL_OPTIONS = ("unix_socket", "ssl_ca", "ssl_cert", "ssl_key")
_CONNECT_SECONDS = 10
_OPEN_SECONDS = 60.0
_MAX_COLUMNS = 1_000_000
_MAX_FETCHED_CHARACTERS = 32 * 1024 * 1024
_AMBIGUOUS_MODES = frozenset(
    {"ANSI", "ANSI_QUOTES", "DB2", "MAXDB", "MSSQL", "NO_BACKSLASH_ESCAPES", "ORACLE", "POSTGRESQL"}
)
"""Modes of `sql_mode` that change where text ends: with them, the server and the guard would read SQL differently."""
_SILENT_LIMITS = (
    "group_concat_max_len = GREATEST(@@group_concat_max_len, 1048576)"
    " /*M!100200 , max_recursive_iterations = 4294967295 */ /*!80003 , cte_max_recursion_depth = 4294967295 */"
)
"""Limits of MariaDB and of MySQL that cut results with a warning alone; the limit of time bounds recursion."""
_FILE_PRIVILEGE = re.compile(r"GRANT (?=[^`]*\b(?:ALL PRIVILEGES|FILE|SUPER)\b)[^`]* ON \*\.\* TO")
_TABLE = re.compile(r"\s*FROM\b")
"""What DESCRIBE is about where that is a table."""
_TIMEOUT_CODES = frozenset({1205, 1317, 1969, 3024})
"""Lock wait timeout, interrupted query, and the time limits of MariaDB and of MySQL."""
_VIEW_NOT_EXPLAINED_CODE = 1345
_LOST_CODES = frozenset({2002, 2003, 2006, 2013, 2014, 2055, 1053})


class MysqlDatabase(OpenedDatabase):
    """A `Database` over one MySQL or MariaDB database; each query has its own connection and transaction."""

    dialect: Dialect = "mysql"

    def __init__(self, options: dict[str, Any], identity: str, schema: DatabaseSchema) -> None:
        super().__init__(schema.default_schema, identity, schema)
        self._options = options
        self._threads = InterruptibleThreads("mysql")
        self._idle: list[Any] = []

    async def explain(
        self, sql: str, parameters: dict[str, Any] | None = None, limits: QueryLimits = DEFAULT_LIMITS
    ) -> None:
        """Bind and plan `sql`."""
        refuse_unlisted_tables(parse_safe_query(sql, "mysql", self._schema), self._schema)
        query = extract_query(sql, "mysql")
        query = query if query == sql or not _TABLE.match(query) else f"SELECT * {query}"
        await self._run_in_thread(lambda connection: _explain(connection, _bind(connection, query, parameters)), limits)

    async def run(
        self, sql: str, parameters: dict[str, Any] | None = None, limits: QueryLimits = DEFAULT_LIMITS
    ) -> QueryResult:
        """Run `sql`; see `Database.run`."""
        refuse_unlisted_tables(parse_safe_query(sql, "mysql", self._schema), self._schema)
        return await self._run_in_thread(
            lambda connection: self._fetch(connection, _bind(connection, sql, parameters), limits), limits
        )

    async def close(self) -> None:
        """Close every connection once its query has ended."""
        self._closed = True
        await self._threads.close()
        while self._idle:
            self._idle.pop().close()

    async def _run_in_thread(self, work: Callable[[Any], T], limits: QueryLimits) -> T:
        import pymysql

        self._check_is_open()
        running: list[int] = []

        def run_in_transaction() -> T:
            connection = self._begin_transaction(limits)
            running.append(connection.thread_id())
            try:
                return work(connection)
            finally:
                was_interrupted = len(running) > 1
                running.clear()
                self._release_connection(connection, was_interrupted)

        def interrupt() -> None:
            if len(running) == 1:
                running.append(running[0])  # only once: the connection is closed afterwards
                threading.Thread(target=_kill_query, args=(self._options, running[0]), daemon=True).start()

        try:
            return await self._threads.run(run_in_transaction, interrupt, limits.timeout_seconds + 0.2)
        except TimeoutError:
            raise QueryTimedOut(limits.timeout_seconds) from None
        except pymysql.Error as error:
            if _get_code(error) in _TIMEOUT_CODES:
                raise QueryTimedOut(limits.timeout_seconds) from None
            if _get_code(error) in _LOST_CODES:
                raise ToolUnavailable(database_unreachable(self.name)) from error
            raise translate_engine_error(ValueError(error.args[-1]), None) from error

    def _begin_transaction(self, limits: QueryLimits) -> Any:
        """Return a connection in a new transaction, a new one where the server has closed the idle ones."""
        import pymysql

        while True:
            try:
                connection, is_new = self._idle.pop(), False
            except IndexError:  # another thread may have taken the last one
                connection, is_new = connect(self._options), True
            try:
                _begin(connection, limits)
            except pymysql.Error as error:
                if connection.open:
                    connection.close()
                if is_new or _get_code(error) not in _LOST_CODES:
                    raise
            else:
                return connection

    def _release_connection(self, connection: Any, was_interrupted: bool) -> None:
        """Roll back the transaction; close the connection where that fails or a kill may still reach it."""
        import pymysql

        with suppress(pymysql.Error):
            if connection.open and not was_interrupted:
                connection.rollback()
                self._idle.append(connection)
                return
        if connection.open:
            connection.close()

    def _fetch(self, connection: Any, sql: str, limits: QueryLimits) -> QueryResult:
        """Fetch the rows within the limits; close the connection where the server has more to send."""
        import pymysql
        from pymysql.cursors import SSCursor

        started = time.perf_counter()
        rows: list[Any] = []
        size = 0
        cursor = connection.cursor(SSCursor)
        try:
            cursor.execute(sql)
            columns = tuple(column[0] for column in cursor.description or ())
            while (row := cursor.fetchone()) is not None:
                rows.append(row)
                size += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
                if len(rows) > limits.max_rows + 1 or size > _MAX_FETCHED_CHARACTERS:
                    _kill_query(self._options, connection.thread_id())
                    break
        finally:
            with suppress(pymysql.Error):
                cursor.close()
            if unread := connection._result:  # noqa: SLF001 - its finalizer would read from a closed connection
                unread.unbuffered_active = False
        if row is not None:
            connection.close()
        result = build_query_result(columns, rows, limits, time.perf_counter() - started)
        return replace(result, truncated=result.truncated or row is not None)


def connect(options: dict[str, Any]) -> Any:
    """Open a connection whose transactions only read."""
    import pymysql
    from pymysql.constants import FIELD_TYPE
    from pymysql.converters import conversions

    decoders = conversions | {FIELD_TYPE.TIME: str, FIELD_TYPE.BIT: lambda bits: int.from_bytes(bits, "big")}
    password = options["password"].encode()  # the driver encodes a text as Latin-1
    connection = pymysql.connect(
        **options | {"password": password},
        charset="utf8mb4",
        connect_timeout=_CONNECT_SECONDS,
        autocommit=True,
        conv=decoders,
    )
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT @@sql_mode")
            modes = ",".join(mode for mode in cursor.fetchone()[0].split(",") if mode not in _AMBIGUOUS_MODES)
            cursor.execute(f"SET SESSION sql_mode = %s, {_SILENT_LIMITS}", [modes])
            cursor.execute("SET SESSION TRANSACTION READ ONLY")
    except pymysql.Error:
        connection.close()
        raise
    return connection


async def open_mysql(url: str) -> MysqlDatabase:
    """Open a MySQL or MariaDB database.

    Raises:
        BadInput: The URL, the password or the database is wrong, or the user may access the server's files.
    """
    try:
        import pymysql
    except ImportError as error:
        raise BadInput('MySQL needs the extra "mysql": pip install "opposable[sql,mysql]".') from error
    options = _parse_url(url)
    try:
        schema = await asyncio.to_thread(_read_schema, options)
    except (pymysql.Error, OSError, RuntimeError) as error:
        place = options.get("unix_socket") or options["host"]
        reason = to_one_line(str(error.args[-1] if error.args else error), 300)
        reason = reason.replace(options["password"], "…") if options["password"] else reason
        raise BadInput(f"Cannot read the MySQL database at {place}: {reason.rstrip('.')}.") from error
    identity = f"mysql://{options['user']}@{options['host']}:{options['port']}/{options['database']}"
    return MysqlDatabase(options, identity, schema)


def _parse_url(url: str) -> dict[str, Any]:
    """Return the arguments of a connection."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port or 3306
        query = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        raise BadInput(_INVALID_URL) from None
    database = unquote(parts.path.removeprefix("/"))
    if not database:
        raise BadInput(f"The URL does not name a database. Use {URL_FORM}.")
    if unknown := [name for name in query if name not in _URL_OPTIONS]:
        raise BadInput(f"`{unknown[0]}` is not an option of a MySQL URL. Use one of {', '.join(_URL_OPTIONS)}.")
    names = {"user": unquote(parts.username or ""), "password": unquote(parts.password or ""), "database": database}
    return {**names, "host": parts.hostname or "127.0.0.1", "port": port, **query}


def _read_schema(options: dict[str, Any]) -> DatabaseSchema:
    connection = connect(options)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW GRANTS")
            if any(_FILE_PRIVILEGE.match(grant) for (grant,) in cursor.fetchall()):
                raise BadInput(
                    f"The user {options['user'] or 'of this URL'} may access files of the server."
                    f" Use a user that has only SELECT: GRANT SELECT ON {options['database']}.* TO ….",
                )
        _begin(connection, QueryLimits(max_rows=_MAX_COLUMNS, timeout_seconds=_OPEN_SECONDS))
        return read_schema(connection)
    finally:
        connection.close()


def _begin(connection: Any, limits: QueryLimits) -> None:
    """Begin a read-only transaction with limits of time and rows."""
    is_mariadb = "mariadb" in connection.get_server_info().casefold()
    seconds = max(0.001, limits.timeout_seconds)
    limit = f"max_statement_time = {seconds}" if is_mariadb else f"max_execution_time = {int(seconds * 1_000)}"
    wait = max(1, int(seconds))
    with connection.cursor() as cursor:
        cursor.execute(f"SET SESSION {limit}, lock_wait_timeout = {wait}, sql_select_limit = {limits.max_rows + 1}")
        cursor.execute("START TRANSACTION READ ONLY")


def _explain(connection: Any, sql: str) -> None:
    """Plan `sql`, or prepare it where a view's tables may not be explained."""
    import pymysql

    with connection.cursor() as cursor:
        try:
            cursor.execute(f"EXPLAIN {sql}")
        except pymysql.Error as error:
            if _get_code(error) != _VIEW_NOT_EXPLAINED_CODE:
                raise
            cursor.execute("PREPARE explained FROM %s", [sql])
            cursor.execute("DEALLOCATE PREPARE explained")


def _bind(connection: Any, sql: str, parameters: dict[str, Any] | None) -> str:
    """Return `sql` with the driver's literals in place of the marks `:p1`, `:p2` and so on."""
    if not parameters:
        return sql

    parts = []
    for part in split_segments(sql, "mysql"):
        text = part.text.replace("%", "%%")
        parts.append(re.sub(r":(p\d+)\b", r"%(\1)s", text) if part.kind == "code" else text)
    with connection.cursor() as cursor:
        return str(cursor.mogrify("".join(parts), parameters))


def _kill_query(options: dict[str, Any], thread_id: int) -> None:
    import pymysql

    with suppress(pymysql.Error, OSError):
        connection = connect(options)
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"KILL QUERY {int(thread_id)}")
        finally:
            connection.close()


def _get_code(error: Exception) -> int:
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0
