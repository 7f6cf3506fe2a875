"""ClickHouse data directories as read-only databases, through chDB in this process.

The engine's read-only mode, its classification of the statement and a check of its syntax tree protect them.
"""

import asyncio
import itertools
import json
import re
import time
import uuid
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from opposable.domain.errors import BadInput, ToolRefused
from opposable.sql import messages
from opposable.sql.clickhouse.schema_reader import read_schema
from opposable.sql.clickhouse_functions import (
    CLICKHOUSE_FUNCTIONS,
    CLICKHOUSE_SYSTEM_TABLES,
    CLICKHOUSE_TABLE_FUNCTIONS,
    HIGHER_ORDER_FUNCTIONS,
)
from opposable.sql.database import DEFAULT_LIMITS, OpenedDatabase, QueryLimits, QueryResult
from opposable.sql.errors import QueryTimedOut, translate_engine_error
from opposable.sql.function_allowlist import Dialect
from opposable.sql.interruptible_threads import InterruptibleThreads
from opposable.sql.lexer import split_segments
from opposable.sql.result_rows import build_query_result
from opposable.sql.schema import DatabaseSchema, to_one_line
from opposable.sql.statement_guard import parse_safe_query, refuse_unlisted_tables

T = TypeVar("T")

URL_FORM = "clickhouse:///path/to/directory"
_OPEN_SECONDS = 60.0
_MAX_SCHEMA_ROWS = 1_000_000
_SETTINGS = {
    "readonly": 1,
    "max_memory_usage": 512 * 1024 * 1024,
    "max_threads": 2,
    "max_block_size": 4_096,
    "result_overflow_mode": "break",
    "join_use_nulls": 1,  # as in standard SQL: rows without a match have NULL, not 0 or ''
    "cast_keep_nullable": 1,
    "output_format_json_quote_denormals": 1,
    "background_pool_size": 0,  # these threads merge and move parts; the engine never ends them
    "background_move_pool_size": 0,
    "background_fetches_pool_size": 0,
    "background_common_pool_size": 0,
}
"""Settings of every connection. `readonly` also forbids table functions that read files or servers."""
_TREE_PATTERN = re.compile(r"( *)(Function|TableIdentifier) (\S+)(?: \(alias (\S+)\))?")
_APPLIED_PATTERN = re.compile(r"\bAPPLY (\w+)(?! ->)\b")
_ALLOWED_FUNCTIONS = CLICKHOUSE_FUNCTIONS | CLICKHOUSE_TABLE_FUNCTIONS | {"_cast", "sqlstandardvalues"}
_IN_PATTERN = re.compile(r"(?:global)?(?:not)?in")
_SYSTEM_DATABASES = ("system.", "information_schema.")
_CANCELLED = re.compile(r"\((?:QUERY_WAS_CANCELLED|TIMEOUT_EXCEEDED)\w*\)")


class ClickhouseDatabase(OpenedDatabase):
    """A `Database` over one data directory; each query has its own connection, and so its own settings."""

    dialect: Dialect = "clickhouse"

    def __init__(self, path: Path, connection: Any, schema: DatabaseSchema) -> None:
        super().__init__(path.name, str(path.resolve()), schema)
        self._path = path
        self._connection = connection
        self._threads = InterruptibleThreads("clickhouse")

    async def explain(
        self, sql: str, parameters: dict[str, Any] | None = None, limits: QueryLimits = DEFAULT_LIMITS
    ) -> None:
        """Bind and plan `sql`."""
        query = parse_safe_query(sql, "clickhouse", self._schema)
        refuse_unlisted_tables(query, self._schema)

        def work(connection: Any) -> None:
            _check_syntax_tree(connection, query.inner_sql, parameters, self._schema.refused_functions)
            _query(connection, f"EXPLAIN {query.inner_sql}", parameters, "TSVRaw")

        await self._run_in_thread(work, limits)

    async def run(
        self, sql: str, parameters: dict[str, Any] | None = None, limits: QueryLimits = DEFAULT_LIMITS
    ) -> QueryResult:
        """Run `sql`; see `Database.run`."""
        query = parse_safe_query(sql, "clickhouse", self._schema)
        refuse_unlisted_tables(query, self._schema)

        def work(connection: Any) -> QueryResult:
            started = time.perf_counter()
            _check_syntax_tree(connection, query.inner_sql, parameters, self._schema.refused_functions)
            columns, rows = _fetch(connection, query.sql, parameters)
            return build_query_result(columns, rows, limits, time.perf_counter() - started)

        return await self._run_in_thread(work, limits)

    async def close(self) -> None:
        """Close the directory once its queries have ended."""
        self._closed = True
        await self._threads.close()
        await asyncio.to_thread(self._connection.close)

    async def _run_in_thread(self, work: Callable[[Any], T], limits: QueryLimits) -> T:
        from chdb._exceptions import ChdbError

        self._check_is_open()
        query_tag = uuid.uuid4().hex

        def run_on_connection() -> T:
            connection = connect(self._path, limits, query_tag)
            try:
                return work(connection)
            finally:
                connection.close()

        def interrupt() -> None:
            with suppress(ChdbError):
                self._connection.query(f"KILL QUERY WHERE Settings['log_comment'] = '{query_tag}' ASYNC")

        try:
            return await self._threads.run(run_on_connection, interrupt, limits.timeout_seconds + 0.2)
        except TimeoutError:
            raise QueryTimedOut(limits.timeout_seconds) from None
        except ChdbError as error:
            if _CANCELLED.search(str(error)):
                raise QueryTimedOut(limits.timeout_seconds) from None
            raise translate_engine_error(ValueError(_format_error(error)), self._path) from error


def connect(path: Path, limits: QueryLimits, query_tag: str = "") -> Any:
    """Open a connection that only reads, with the limits of one query.

    Raises:
        RuntimeError: The directory is in use, or another one is open in this process.
    """
    import chdb

    settings = _SETTINGS | {
        "max_execution_time": max(0.001, limits.timeout_seconds),
        "max_result_rows": limits.max_rows + 1,
        "log_comment": query_tag,
    }
    options = "&".join(f"{name}={value}" for name, value in settings.items())
    open_connection: Any = chdb.connect
    return open_connection(f"{path.absolute()}?{options}")


async def open_clickhouse(path: Path) -> ClickhouseDatabase:
    """Open a data directory of ClickHouse or chDB.

    Raises:
        BadInput: It is not a data directory, another program has it open, or another one is open in this process.
    """
    try:
        from chdb._exceptions import ChdbError
    except ImportError as error:
        raise BadInput('ClickHouse needs the extra "clickhouse": pip install "opposable[sql,clickhouse]".') from error
    if not (path / "metadata").is_dir() or "?" in str(path):
        raise BadInput(f"`{path}` is not a data directory of ClickHouse. Use {URL_FORM}.")
    try:
        return await asyncio.to_thread(_open, path)
    except (RuntimeError, ChdbError) as error:
        reason = _format_error(error)
        if "already initialized" in reason:
            reason = "another directory is open in this process. Close it first"
        elif "Error initializing" in reason:
            reason = "another program has it open. Close that program first"
        raise BadInput(f"`{path}` cannot be opened: {to_one_line(reason, 300).rstrip('.')}.") from error


def _open(path: Path) -> ClickhouseDatabase:
    connection = connect(path, QueryLimits(_MAX_SCHEMA_ROWS, timeout_seconds=_OPEN_SECONDS))
    try:
        schema = read_schema(
            lambda sql: _fetch(connection, sql)[1],
            lambda sql, refused: _check_syntax_tree(connection, sql, None, refused),
        )
        return ClickhouseDatabase(path, connection, schema)
    except BaseException:
        connection.close()
        raise


def _check_syntax_tree(connection: Any, sql: str, parameters: dict[str, Any] | None, refused: Container[str]) -> None:
    """Check that the engine itself parses `sql` as one query that calls only functions of the allow list.

    Raises:
        ToolRefused: It does not.
        chdb.ChdbError: It is not valid SQL.
    """
    found = connection._conn.classify_query(sql)  # noqa: SLF001 - the wrapper has no method for it
    if found["query_class"].name not in ("READ_ONLY", "UNKNOWN") or found["statement_count"] > 1:
        raise ToolRefused(messages.engine_refused("only one SELECT statement may run here."))
    sql = _replace_line_breaks(sql)
    lines = _query(connection, f"EXPLAIN AST {sql}", parameters, "TSVRaw").decode("utf-8", "replace").split("\n")
    nodes = [(at, node) for at, line in enumerate(lines) if (node := _TREE_PATTERN.match(line))]
    lambdas = {str(node[4]).casefold() for _, node in nodes if node[3] == "lambda"}
    called: list[str] = []
    for at, node in nodes:
        indent, kind, name, _ = node.groups()
        folded = name.casefold()
        if kind == "TableIdentifier":
            if folded.startswith(_SYSTEM_DATABASES) and folded not in CLICKHOUSE_SYSTEM_TABLES:
                raise ToolRefused(messages.system_table(to_one_line(name)))
            continue
        arguments = _list_arguments(lines[at + 1 :], len(indent) + 2)
        names = [text.removeprefix("Identifier ") if text.startswith("Identifier ") else "" for text in arguments]
        if _IN_PATTERN.fullmatch(folded) and any(names[-1:]):
            raise ToolRefused(
                f"IN {to_one_line(names[-1])} may read a table: write IN (SELECT …), or has(array, value)."
            )
        called.append(name)
        if folded not in lambdas:  # the first name may be a function: arrayMap(upper, names)
            names = names[: folded in HIGHER_ORDER_FUNCTIONS and len(names) > 1]
        called += [argument for argument in names if argument.casefold() in refused]
    if applied := sum("ColumnsApplyTransformer" in line for line in lines):
        code = _format_code(connection, sql)
        names = _APPLIED_PATTERN.findall(code)
        called += names if len(names) == applied == len(re.findall(r"\bAPPLY\b", code)) else ["in APPLY"]
    for name in called:
        folded = name.casefold()
        if folded not in _ALLOWED_FUNCTIONS and (folded not in lambdas or folded in refused):
            raise ToolRefused(messages.engine_refused(f"the function {to_one_line(name)} is not available."))


def _replace_line_breaks(sql: str) -> str:
    """Return a query with `_` for line breaks in names: the engine prints them as they are, like lines of its tree.

    The guard has refused other backslashes in names than pairs of them.
    """
    parts = split_segments(sql, "clickhouse")
    return "".join(re.sub(r"\\\\|\n", "_", part.text) if part.kind == "name" else part.text for part in parts)


def _list_arguments(lines: Sequence[str], indent: int) -> list[str]:
    """Return the nodes that are the arguments of a function, without their own; `lines` follow its node."""
    inner = itertools.takewhile(lambda line: len(line) - len(line.lstrip(" ")) >= indent - 1, lines)
    return [line.strip() for line in inner if len(line) - len(line.lstrip(" ")) == indent]


def _format_code(connection: Any, sql: str) -> str:
    """Return a query as the engine writes it, without texts and names in quotes: its syntax tree omits APPLY."""
    text = _query(connection, "SELECT formatQuerySingleLine({sql:String})", {"sql": sql}, "TSVRaw").decode()
    return " ".join(part.text for part in split_segments(text, "clickhouse") if part.kind == "code")


def _fetch(connection: Any, sql: str, parameters: dict[str, Any] | None = None) -> tuple[tuple[str, ...], list[Any]]:
    """Return the columns and the rows, without the row of WITH TOTALS, with decimal numbers as `Decimal`."""
    output = _query(connection, sql, parameters, "JSONCompactEachRowWithNamesAndTypes").decode("utf-8", "replace")
    names, types, *lists = (json.loads(line, parse_float=Decimal) for line in output.split("\n") if line)
    is_float = [kind.removeprefix("Nullable(").startswith("Float") for kind in types]
    rows = [
        tuple(
            float(value) if number and value is not None else value for value, number in zip(row, is_float, strict=True)
        )
        for row in lists
    ]
    return tuple(names), rows


def _query(connection: Any, sql: str, parameters: dict[str, Any] | None, output_format: str) -> bytes:
    escaped = {key: _escape_parameter(value) for key, value in (parameters or {}).items()}
    return bytes(connection.query(sql, output_format, params=escaped).bytes())


def _escape_parameter(value: Any) -> str:
    """Return the text of a parameter as the engine parses it: tab-separated values."""
    if value is None:
        return "\\N"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def _format_error(error: BaseException) -> str:
    """Return the engine's message without its codes and version."""
    text = re.sub(r"Code: \d+\. DB::Exception: |Failed to create connection: ", "", str(error))
    return re.sub(r"(?:\s*\((?:version [\d.]+|[A-Z_]+)\)\.?)+\s*$", "", text)
