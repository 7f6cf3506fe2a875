"""Translation of a query from another SQL dialect, where its meaning is the same."""

import re
from collections.abc import Iterator
from typing import Any, Literal

from opposable.domain.errors import FieldProblem, InvalidArguments, ToolRefused
from opposable.sql.function_allowlist import Dialect
from opposable.sql.messages import too_many
from opposable.sql.schema import DatabaseSchema, fold_name, to_one_line
from opposable.sql.statement_guard import MAX_CHARACTERS

SourceDialect = Literal["mysql", "tsql", "sqlite", "duckdb", "postgres", "bigquery", "snowflake", "oracle"]
"""The dialects that `sql.refine` translates."""
_Kind = Literal["integer", "number", "text"]
_WEEK_FUNCTIONS = frozenset({"dayofweek", "week", "weekday", "yearweek"})
_WEEK_UNITS = frozenset({"DAYOFWEEK", "DOW", "DW", "WEEK", "WEEKDAY", "WK", "WW"})
_SAME_WEEKS = frozenset({"duckdb", "postgres"})
"""The dialects whose EXTRACT counts days and weeks alike."""
_FORMAT_CODES = {
    "sqlite": frozenset(["%d", "%H", "%j", "%m", "%M", "%S", "%w", "%W", "%Y", "%%"]),
    "clickhouse": frozenset(["%d", "%H", "%j", "%m", "%S", "%y", "%Y", "%%"]),
    "mysql": frozenset(["%a", "%b", "%d", "%f", "%H", "%j", "%m", "%p", "%w", "%y", "%Y", "%%"]),
}
"""The codes of Python's formats of dates that these engines read as Python does; sqlglot translates others."""
_PERCENT_FORMATS = frozenset({"bigquery", "clickhouse", "duckdb", "mysql", "sqlite"})
"""The dialects in whose formats of dates a letter without % is text."""
_BYTE_LENGTHS = {"duckdb": "STRLEN", "sqlite": "LENGTH", "postgres": "OCTET_LENGTH", "clickhouse": "LENGTH"}


def translate(sql: str, source: SourceDialect, target: Dialect, schema: DatabaseSchema) -> str:
    """Translate SQL from another dialect.

    Raises:
        InvalidArguments: The SQL is not of that dialect, or has a construct without a translation that means the same.
    """
    import sqlglot
    from sqlglot.errors import ErrorLevel, SqlglotError

    if len(sql) > MAX_CHARACTERS:
        raise ToolRefused(too_many(len(sql), "characters", MAX_CHARACTERS))
    try:
        trees = [tree for tree in sqlglot.parse(sql, read=source) if tree is not None]
        difference = next((text for tree in trees for text in _adapt(tree, source, target, schema)), None)
        translated = ";\n".join(tree.sql(dialect=target, unsupported_level=ErrorLevel.RAISE) for tree in trees)
    except (SqlglotError, RecursionError, ValueError) as error:
        raise _build_error(sql, source, target, str(error)) from error
    if difference is not None:
        raise _build_error(sql, source, target, f"{difference} may mean something else there")
    return translated


def _build_error(sql: str, source: SourceDialect, target: Dialect, reason: str) -> InvalidArguments:
    problem = f"it cannot be translated from {source} to {target}: {to_one_line(reason, 300)}"
    return InvalidArguments((FieldProblem("sql", problem, to_one_line(sql)),))


def _adapt(tree: Any, source: SourceDialect, target: Dialect, schema: DatabaseSchema) -> Iterator[str]:
    """Rewrite what sqlglot would translate to another meaning, and yield the constructs that cannot be rewritten."""
    from sqlglot import exp

    column_kinds = _read_column_kinds(tree, schema)
    for node in reversed(list(tree.find_all(exp.Div, exp.Add, exp.Func))):
        name = (node.name if isinstance(node, exp.Anonymous) else node.key).casefold()
        is_same = True
        if isinstance(node, exp.Div | exp.Add):
            is_same = _adapt_operator(node, _get_kinds(node, column_kinds), source, target)
        elif isinstance(node, exp.Length) and source == "mysql" and node.args.get("binary"):
            value = exp.cast(node.this.copy(), "VARBINARY") if target == "sqlite" else node.this.copy()
            node.replace(exp.Anonymous(this=_BYTE_LENGTHS[target], expressions=[value]))
        elif isinstance(node, exp.Length) and source == "tsql":
            node.set("this", exp.Trim(this=node.this.copy(), position="TRAILING"))
        elif isinstance(node, exp.Avg) and source == "tsql":
            is_same = _get_kind(node.this, column_kinds) == "number"
        elif isinstance(node, exp.DateDiff):
            is_same = _adapt_date_difference(node, target)
        elif isinstance(node, exp.TimeToStr | exp.StrToTime | exp.StrToDate):
            is_same = _has_same_format(node.args.get("format"), source, target)
        elif name in _WEEK_FUNCTIONS or (isinstance(node, exp.Extract) and node.name.upper() in _WEEK_UNITS):
            is_same = isinstance(node, exp.Extract) and {source, target} == _SAME_WEEKS
        elif isinstance(node, exp.TimestampDiff | exp.DatetimeDiff):
            is_same = False
        if not is_same:
            yield to_one_line(node.sql(dialect=source), 80)


def _adapt_operator(node: Any, kinds: set[_Kind | None], source: SourceDialect, target: Dialect) -> bool:
    """Write a division of integers, or a concatenation of texts by +, as the target does; return False if unknown."""
    from sqlglot import Dialect as SqlglotDialect
    from sqlglot import exp

    operands = {"this": node.left, "expression": node.right}
    if isinstance(node, exp.Div):
        if "number" in kinds or not node.args.get("typed") or SqlglotDialect.get_or_raise(target).TYPED_DIVISION:
            return True
        node.replace(exp.IntDiv(**operands))
        return kinds == {"integer"}
    if source != "tsql" or kinds <= {"integer", "number"}:
        return True
    node.replace(exp.DPipe(**operands))
    return kinds == {"text"}


def _adapt_date_difference(node: Any, target: Dialect) -> bool:
    """Compare days without times; return False for other units, which some engines count as whole ones."""
    from sqlglot import exp

    unit = node.args.get("unit")
    if target in ("duckdb", "clickhouse"):
        return True
    if unit is not None and unit.name.upper() not in ("DAY", "DD", "D"):
        return False
    for key in ("this", "expression") if target != "mysql" else ():
        moment = node.args[key]
        moment = moment.this if isinstance(moment, exp.TimeStrToTime | exp.TsOrDsToDate) else moment
        day = (
            exp.Anonymous(this="DATE", expressions=[moment.copy()]) if target == "sqlite" else exp.cast(moment, "DATE")
        )
        node.set(key, day)
    return True


def _has_same_format(text: Any, source: SourceDialect, target: Dialect) -> bool:
    """Whether the target knows every code of a format, which sqlglot has written as Python's."""
    from sqlglot import Dialect as SqlglotDialect
    from sqlglot import exp

    if not isinstance(text, exp.Literal):
        return False
    known = _FORMAT_CODES.get(target, frozenset()) | set(SqlglotDialect.get_or_raise(target).INVERSE_TIME_MAPPING)
    codes = re.findall(r"%-?.", text.name)
    has_letters = re.search(r"[A-Za-z]", re.sub(r"%-?.", "", text.name)) is not None
    return (target == "duckdb" or known >= set(codes)) and (not has_letters or {source, target} <= _PERCENT_FORMATS)


def _get_kinds(node: Any, column_kinds: dict[str, _Kind | None]) -> set[_Kind | None]:
    return {_get_kind(node.left, column_kinds), _get_kind(node.right, column_kinds)}


def _get_kind(node: Any, column_kinds: dict[str, _Kind | None]) -> _Kind | None:
    """Return what kind of value an expression has, None where it is not certain."""
    from sqlglot import exp

    if isinstance(node, exp.Literal):
        return "text" if node.is_string else "integer" if node.name.isdigit() else "number"
    if isinstance(node, exp.Column):
        return column_kinds.get(fold_name(node.name))
    if isinstance(node, exp.Cast):
        return _get_type_kind(node.to)
    if isinstance(node, exp.Paren | exp.Neg | exp.Sum | exp.Min | exp.Max):
        return _get_kind(node.this, column_kinds)
    if isinstance(node, exp.Count | exp.Length | exp.IntDiv):
        return "integer"
    if isinstance(node, exp.DPipe | exp.Concat | exp.Upper | exp.Lower | exp.Trim | exp.Substring):
        return "text"
    kinds = _get_kinds(node, column_kinds) if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div) else set()
    return kinds.pop() if len(kinds) == 1 else "number" if kinds == {"integer", "number"} else None


def _read_column_kinds(tree: Any, schema: DatabaseSchema) -> dict[str, _Kind | None]:
    """Return the kinds of the columns of the tables in a query, None for names that may mean something else too."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    kinds: dict[str, _Kind | None] = {}
    tables = [schema.find_table_by_identifier(table.name, table.db) for table in tree.find_all(exp.Table)]
    for column in (column for table in tables if table for column in table.columns):
        name = fold_name(column.name)
        try:
            kind = _get_type_kind(exp.DataType.build(column.type, dialect=schema.dialect))
        except (SqlglotError, ValueError):
            kind = None
        kinds[name] = kind if kinds.get(name, kind) == kind else None
    names = [column.name for alias in tree.find_all(exp.TableAlias) for column in alias.columns]
    names += [alias.alias for alias in tree.find_all(exp.Alias) if alias.parent_select is not tree]
    return kinds | {fold_name(name): None for name in names}


def _get_type_kind(type_: Any) -> _Kind | None:
    if type_.is_type(*type_.INTEGER_TYPES):
        return "integer"
    if type_.is_type(*type_.REAL_TYPES):
        return "number"
    return "text" if type_.is_type(*type_.TEXT_TYPES) else None
