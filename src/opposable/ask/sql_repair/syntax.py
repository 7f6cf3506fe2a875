"""Repairs SQL that cannot be parsed where the intent is certain."""

import re

from opposable.ask.sql_repair import messages
from opposable.ask.sql_repair.sql_tree import RepairedSql, parse_sql
from opposable.sql.function_allowlist import Dialect
from opposable.sql.lexer import split_segments

_FULL_WIDTH_SIGNS = str.maketrans("，；（）＝＞＜＊．", ",;()=><*.")
_UNQUOTED_ALIAS = re.compile(r"(\bAS\s+)([^\W\d]\w*\s*\([^()'\"]*\))(?=\s*(?:,|\bFROM\b))", re.IGNORECASE)


def repair_syntax(sql: str, dialect: Dialect) -> RepairedSql:
    """Convert full-width signs and quote aliases if that makes the SQL parsable."""
    if parse_sql(sql, dialect) is not None:
        return sql, ()
    narrow = "".join(
        part.text.translate(_FULL_WIDTH_SIGNS) if part.kind == "code" else part.text for part in split_segments(sql)
    )
    repaired = _UNQUOTED_ALIAS.sub(r'\1"\2"', narrow)
    return (repaired, (messages.syntax_normalized(),)) if parse_sql(repaired, dialect) is not None else (sql, ())
