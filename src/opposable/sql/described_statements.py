"""EXPLAIN, DESCRIBE and the like: the query or the table that they are about."""

import re

from opposable.sql.function_allowlist import Dialect
from opposable.sql.lexer import split_segments

_OPTION = (
    r"\s*(?:ANALY[SZ]E|BUFFERS|COSTS|FORMAT|GENERIC_PLAN|MEMORY|SERIALIZE|SETTINGS|SUMMARY|TIMING|VERBOSE|WAL)"
    r"(?:\s+\w+)?\s*"
)
_EXPLAIN_WITH_OPTIONS = rf"EXPLAIN(?:\s*\({_OPTION}(?:,{_OPTION})*\)|(?:\s+ANALY[SZ]E)?(?:\s+VERBOSE)?\b)"
_EXPLAIN_MYSQL = (  # ANALYZE TABLE writes
    r"(?:(?:EXPLAIN|DESCRIBE|DESC)(?:\s+(?:ANALYZE|EXTENDED|PARTITIONS))?|ANALYZE)(?:\s+FORMAT\s*=\s*\w+)?"
    r"(?=\s*\(|\s+(?:SELECT|WITH)\b)"
)
_EXPLAIN_CLICKHOUSE = (
    r"EXPLAIN(?:\s+(?:AST|SYNTAX|QUERY\s+TREE|PLAN|PIPELINE|ESTIMATE))?"
    r"(?:\s+\w+\s*=\s*\d+(?:\s*,\s*\w+\s*=\s*\d+)*)?\b"
)
_FORMS: dict[Dialect, tuple[str, ...]] = {
    "duckdb": (_EXPLAIN_WITH_OPTIONS, r"(?:DESCRIBE|DESC|SUMMARIZE)\b"),
    "postgres": (_EXPLAIN_WITH_OPTIONS,),
    "sqlite": (r"EXPLAIN(?:\s+QUERY\s+PLAN)?\b",),
    "mysql": (
        _EXPLAIN_MYSQL,
        r"(?:DESCRIBE|DESC|EXPLAIN(?=\s+\S+\s*$)|SHOW\s+(?:(?:FULL\s+)?(?:COLUMNS|FIELDS)|INDEX|INDEXES|KEYS)\s+(?:FROM|IN))\b",
    ),
    "clickhouse": (_EXPLAIN_CLICKHOUSE, r"(?:DESCRIBE|DESC)(?:\s+TABLE)?\b"),
}
"""What precedes a query, and what precedes a query or a table."""
_PATTERNS = {
    dialect: re.compile(r"\s*(?:" + "|".join(f"({form})" for form in forms) + ")", re.IGNORECASE)
    for dialect, forms in _FORMS.items()
}
_QUERY_START = re.compile(r"\s*\(|\s+(?:SELECT|WITH|FROM|VALUES)\b", re.IGNORECASE)
_NOT_NEWLINE = re.compile(r"[^\n]")


def extract_query(sql: str, dialect: Dialect) -> str:
    """Return the query that EXPLAIN or DESCRIBE is about, with spaces before it; other SQL is unchanged.

    The query of `DESCRIBE orders` is `FROM orders`. Names have the same positions as in `sql`.
    """
    parts = split_segments(sql, dialect)
    code = "".join(_NOT_NEWLINE.sub(" ", part.text) if part.kind == "comment" else part.text for part in parts)
    found = _PATTERNS[dialect].match(code)
    if found is None:
        return sql
    is_table = found.lastindex == 2 and not _QUERY_START.match(sql, found.end())
    return ("FROM" if is_table else "").rjust(found.end()) + sql[found.end() :]
