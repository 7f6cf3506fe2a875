"""Repair of a query: wrong names that can mean only one thing, and `TOP n`."""

import re
from dataclasses import dataclass

from opposable.sql.function_allowlist import Dialect
from opposable.sql.lexer import split_segments
from opposable.sql.name_checker import check_names
from opposable.sql.name_problems import NameProblem, Replacement
from opposable.sql.schema import DatabaseSchema
from opposable.sql.statement_guard import Query, parse_safe_query

_MAX_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class RepairedQuery:
    """A query after repair, with its corrections and remaining problems."""

    query: Query
    corrections: tuple[str, ...]
    problems: tuple[NameProblem, ...]


def repair_names(sql: str, dialect: Dialect, schema: DatabaseSchema, *, allow_similar: bool = False) -> RepairedQuery:
    """Check `sql` and repair the names that can mean only one thing.

    With `allow_similar`, a name is also replaced by the only similar one.

    Raises:
        ToolRefused: As `parse_safe_query`.
        InvalidArguments: As `parse_safe_query`.
    """
    limited, corrections = replace_top_with_limit(sql)
    query = parse_safe_query(limited, dialect, schema)
    for _ in range(_MAX_ROUNDS):
        problems = check_names(query, schema)
        repairs = _drop_overlapping(
            [
                problem.repair
                for problem in problems
                if problem.repair and (allow_similar or not problem.repair.is_similar)
            ]
        )
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


_TOP_CLAUSE = re.compile(
    r"\bSELECT\s+((?:DISTINCT|ALL)\s+)?TOP\s*(?:\(\s*(\d+)\s*\)|(\d+)\b)(?!\s*(?:PERCENT|WITH\s+TIES)\b)\s*",
    re.IGNORECASE,
)


def replace_top_with_limit(sql: str) -> tuple[str, list[str]]:
    """Rewrite `SELECT TOP n …` as `SELECT … LIMIT n`, also in subqueries.

    Return the SQL and the corrections.
    """
    corrections: list[str] = []
    while match := _TOP_CLAUSE.search(_blank_non_code(sql)):
        number = match.group(2) or match.group(3)
        end = _find_query_end(_blank_non_code(sql), match.end())
        tail = sql[match.end() : end].rstrip().removesuffix(";").rstrip()
        head = sql[: match.start()] + sql[match.start() : match.start() + 6] + " " + (match.group(1) or "")
        limited = (
            tail if re.search(r"\bLIMIT\s+\d+\s*$", _blank_non_code(tail), re.IGNORECASE) else f"{tail} LIMIT {number}"
        )
        sql = head + limited + sql[end:]
        corrections.append(f"TOP {number} → LIMIT {number}")
    return sql, corrections


def _blank_non_code(sql: str) -> str:
    """Return the SQL with every character outside of code replaced by `_`."""
    return "".join(p.text if p.kind == "code" else re.sub(r"[^\n]", "_", p.text) for p in split_segments(sql))


def _find_query_end(code: str, start: int) -> int:
    """Return where the SELECT around `start` ends."""
    depth = 0
    for index in range(start, len(code)):
        depth += (code[index] == "(") - (code[index] == ")")
        if depth < 0:
            return index
    return len(code)
