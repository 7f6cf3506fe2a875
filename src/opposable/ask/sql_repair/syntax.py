"""SQL that cannot be read, put right where only one thing can be meant."""

import re

from opposable.ask.sql_repair.sql_tree import Mended, parsed
from opposable.sql.function_allowlist import Dialect
from opposable.sql.lexer import segments

_WIDE = str.maketrans("，；（）＝＞＜＊．", ",;()=><*.")
_ALIAS = re.compile(r"(\bAS\s+)([^\W\d]\w*\s*\([^()'\"]*\))(?=\s*(?:,|\bFROM\b))", re.IGNORECASE)


def readable(sql: str, dialect: Dialect) -> Mended:
    """The SQL with its signs in half width and its aliases in quotes, where it cannot be read without and can with."""
    if parsed(sql, dialect) is not None:
        return sql, ()
    narrow = "".join(part.text.translate(_WIDE) if part.kind == "code" else part.text for part in segments(sql))
    mended = _ALIAS.sub(r'\1"\2"', narrow)
    return (mended, ("an alias or a sign put as SQL has it",)) if parsed(mended, dialect) is not None else (sql, ())
