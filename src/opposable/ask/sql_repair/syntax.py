"""SQL that cannot be read, put right where only one thing can be meant."""

import re

from opposable.ask.sql_repair.sql_tree import RepairedSql, parse_sql
from opposable.sql.function_allowlist import Dialect
from opposable.sql.lexer import split_segments

_FULL_WIDTH_SIGNS = str.maketrans("，；（）＝＞＜＊．", ",;()=><*.")
_UNQUOTED_ALIAS = re.compile(r"(\bAS\s+)([^\W\d]\w*\s*\([^()'\"]*\))(?=\s*(?:,|\bFROM\b))", re.IGNORECASE)


def repair_syntax(sql: str, dialect: Dialect) -> RepairedSql:
    """The SQL with its signs in half width and its aliases in quotes, where it cannot be read without and can with."""
    if parse_sql(sql, dialect) is not None:
        return sql, ()
    narrow = "".join(
        part.text.translate(_FULL_WIDTH_SIGNS) if part.kind == "code" else part.text for part in split_segments(sql)
    )
    mended = _UNQUOTED_ALIAS.sub(r'\1"\2"', narrow)
    return (mended, ("an alias or a sign put as SQL has it",)) if parse_sql(mended, dialect) is not None else (sql, ())
