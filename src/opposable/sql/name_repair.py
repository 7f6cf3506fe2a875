"""Repair of a query that the engine rejected: names and signs that can mean only one thing."""

import re
from dataclasses import dataclass

from opposable.domain.errors import InvalidArguments, ToolRefused
from opposable.sql import messages
from opposable.sql.function_allowlist import Dialect
from opposable.sql.lexer import split_segments
from opposable.sql.name_checker import check_names
from opposable.sql.name_problems import NameProblem, Replacement
from opposable.sql.schema import DatabaseSchema
from opposable.sql.statement_guard import Query, parse_safe_query

_MAX_ROUNDS = 4
_NAME_PATTERN = r"[^\W\d]\w*(?:(?<=[^\x00-\x7f])（\w+）)*"
"""A name; after a Chinese word, one with a part in full-width parentheses."""
_FULL_WIDTH_SIGNS = str.maketrans("，；（）＝＞＜＊．", ",;()=><*.")


@dataclass(frozen=True, slots=True)
class RepairedQuery:
    """A query after repair, with its corrections and remaining problems."""

    query: Query
    corrections: tuple[str, ...]
    problems: tuple[NameProblem, ...]


def repair_names(sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedQuery:
    """Check `sql` and repair the names and full-width signs that can mean only one thing.

    Raises:
        ToolRefused: As `parse_safe_query`.
        InvalidArguments: As `parse_safe_query`.
    """
    quoted_sql, quoted_names = _quote_names(sql) if dialect == "clickhouse" else (sql, [])
    if quoted_names:
        repaired = repair_names(quoted_sql, dialect, schema)
        corrections = (messages.names_quoted(quoted_names), *repaired.corrections)
        return RepairedQuery(repaired.query, corrections, repaired.problems)
    narrowed = _replace_full_width_signs(sql, dialect, schema)
    try:
        repaired = _repair_names(sql, dialect, schema)
    except (InvalidArguments, ToolRefused):
        if narrowed == sql:
            raise
    else:
        if narrowed == sql or not repaired.problems:
            return repaired
    repaired = _repair_names(narrowed, dialect, schema)
    return RepairedQuery(
        repaired.query, (messages.full_width_signs_replaced(), *repaired.corrections), repaired.problems
    )


def _quote_names(sql: str) -> tuple[str, list[str]]:
    """Return the SQL with quotes around names of other letters than ASCII, which ClickHouse requires, and the names."""
    names: dict[str, None] = {}

    def quote(match: "re.Match[str]") -> str:
        if match[0].isascii():
            return match[0]
        names[match[0]] = None
        return f'"{match[0]}"'

    parts = [
        re.sub(_NAME_PATTERN, quote, part.text) if part.kind == "code" else part.text
        for part in split_segments(sql, "clickhouse")
    ]
    return "".join(parts), list(names)


def _replace_full_width_signs(sql: str, dialect: Dialect, schema: DatabaseSchema) -> str:
    """Replace full-width signs outside of texts, comments, quoted names and names of the schema."""
    named = sorted((name for name in schema.names if name.translate(_FULL_WIDTH_SIGNS) != name), key=len, reverse=True)
    name_or_sign = re.compile("|".join([*map(re.escape, named), f"[{''.join(map(chr, _FULL_WIDTH_SIGNS))}]"]))
    return "".join(
        name_or_sign.sub(lambda m: m[0] if m[0] in named else m[0].translate(_FULL_WIDTH_SIGNS), part.text)
        if part.kind == "code"
        else part.text
        for part in split_segments(sql, dialect)
    )


def _repair_names(sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedQuery:
    corrections: list[str] = []
    query = parse_safe_query(sql, dialect, schema)
    for _ in range(_MAX_ROUNDS):
        problems = check_names(query, schema)
        repairs = _drop_overlapping([problem.repair for problem in problems if problem.repair])
        if not repairs:
            return RepairedQuery(query, tuple(corrections), problems)
        corrections += [repair.description for repair in repairs if repair.description not in corrections]
        query = parse_safe_query(_apply_replacements(query.sql, repairs), dialect, schema)
    return RepairedQuery(query, tuple(corrections), check_names(query, schema))


def _drop_overlapping(repairs: list[Replacement]) -> list[Replacement]:
    """Return the repairs in text order, without those that overlap an earlier one."""
    separate: list[Replacement] = []
    for repair in sorted(repairs, key=lambda r: (r.start, r.end)):
        if not separate or repair.start >= separate[-1].end:
            separate.append(repair)
    return separate


def _apply_replacements(sql: str, repairs: list[Replacement]) -> str:
    for repair in reversed(repairs):
        sql = sql[: repair.start] + repair.text + sql[repair.end :]
    return sql
