"""Forms of SQL that engines have and sqlglot lacks, replaced by forms that it reads; the statement runs as written."""

import re
from itertools import accumulate
from typing import Any

from opposable.sql.function_allowlist import Dialect

_OPERAND = r"(?:(?<=[-+*/<>=~!@#&|^(,\[] )|(?<=\bSELECT )|(?<=\bWHERE )|(?<=\b(?:CASE|WHEN|THEN|ELSE) )|(?<=\b(?:AND|NOT) )|(?<=\bOR ))"
"""The place where an operand begins."""
_PASSED_VALUE = r"(?:['0]|[\w\"]+(?: \. [\w\"]+)?) AS [\w\"]+ "
_JSON_OPTION = (
    rf"(?:PASSING {_PASSED_VALUE}(?:, {_PASSED_VALUE})*"
    r"|RETURNING (?:TEXT|VARCHAR|JSONB?|BYTEA|INT|INTEGER|BIGINT|NUMERIC|BOOL|BOOLEAN|DATE|TIMESTAMP|FLOAT8) "
    r"(?:\[ \] )?(?:FORMAT JSON )?"
    r"|WITH(?:OUT)? (?:(?:UN)?CONDITIONAL )?(?:ARRAY )?WRAPPER |(?:KEEP|OMIT) QUOTES (?:ON SCALAR STRING )?"
    r"|(?:NULL|ERROR|TRUE|FALSE|UNKNOWN|EMPTY(?: ARRAY| OBJECT)?|DEFAULT (?:- )?['0]) ON (?:EMPTY|ERROR) )"
)
"""What SQL/JSON allows after a path: values for the path are literals and columns."""
_UNREAD_FORMS = {
    "": {
        rf"(?<=' ){_JSON_OPTION}+|(?<=\) )(?:EMPTY|ERROR) ON ERROR (?=\) )": "",
        r"EXISTS (?=PATH )|(?:NULL|ABSENT) ON NULL (?=[),] |RETURNING )": "",
    },
    "postgres": {
        r"(?<!FROM )(?<!JOIN )(?<!TABLE )(?<!, )AT LOCAL ": "",
        r"USING \( (?:[\w\"]+ , )*[\w\"]+ \) (AS [\w\"]+ )": "",
        r"ONLY (\( )(?=[\w\"]+ (?:\. [\w\"]+ )?\) )": "",
        r"ONLY \( [\w\"]+ (?:\. [\w\"]+ )?(\) )": "",
        _OPERAND + r"(?-i:[a-z_]\w*) ' ": "1 :: 0",
        _OPERAND + r"BIT VARYING ' ": "2 :: 0 1",
        r"USING [<>+]=? (?=[),] |NULLS |LIMIT |$)": "",
        r"RETURNING (?:TEXT|JSONB?|BYTEA|VARCHAR) (?=\) )": "",
        r"JSON_OBJECT (?=\( ' \) )": "",
        r"INTERVAL ' ((?:YEAR|MONTH|DAY|HOUR|MINUTE|SECOND) (?:TO \w+ )?(?:\( 0 \) )?)": "",
        r":: INTERVAL ((?:YEAR|MONTH|DAY|HOUR|MINUTE|SECOND) (?:TO \w+ )?(?:\( 0 \) )?)": "",
        r"(?<=' )AS [\w\"]+ (?=COLUMNS |PASSING )|FORMAT JSON (?=PATH |[),] |WITH |WITHOUT |KEEP |OMIT )": "",
        r"CUBE (?=\( (?:ARRAY|0) )": '"cube"',
        r"SIMILAR (?=' ESCAPE ' \) )|(?<=SIMILAR ' )ESCAPE ": ",",
        r"(?:(?<=FIRST BY )|(?<=\) CYCLE ))(?:[\w\"]+ , )+(?=[\w\"]+ SET )": "",
    },
    "duckdb": {
        r"(?<=[0)] )! (?=[),] |AS |FROM |$)": "",
        r"X (?=' )": "",
        r"(?<=\[ ):: ": ": :",
        r"REDUCE (?=\( )": "list_reduce",
        r"APPLY (?=\( )": "list_apply",
        r"MAP (?=[),] |AS |FROM |$)": '"map"',
        r"PIVOT_LONGER ": "UNPIVOT",
        r"(?<=INTO )NAME [\w\"]+ VALUE ": "0 1 ,",
    },
    "sqlite": {r"AS ((?:UNSIGNED |BIG |LONG |VARYING |NATIVE )+)(?=\w+ (?:\) |\( 0 ))": ""},
    "clickhouse": {
        r"LIMIT 0 (?:(?:, |OFFSET )0 )?$": "",
        r"APPLY \( \w+ (?:\( 0 (?:, 0 )*\) )?\) ": "",
        r"[XB] (?=' )": "",
        r"(?-i:[a-z]\w*) (\( [0'] (?:, [0'] )*\) )(?=\( )": "",
        r"(?<=(?-i:[\w'\")\]]) )(?<!(?-i:[A-Z]) )MOD (?=(?-i:[a-z_0'\"(\[-]))": "%",
    },
    "mysql": {
        r"VALUES (?=\( |ROW )": "SELECT",
        r"LIMIT ROWS EXAMINED 0 |(?<=0 )ROWS EXAMINED 0 ": "",
        r"(?<=SELECT )(?:SQL_(?:NO_CACHE|CACHE|SMALL_RESULT|BIG_RESULT|BUFFER_RESULT|CALC_FOUND_ROWS) )+": "",
        r"LAST_VALUE (?=\( [^(),]*+,[^()]*\) (?!OVER ))": "",
        r"(?:ASC|DESC) ": "",
        r"\{ (?:d|ts?) ' \} ": "2",
        r"\\ N ": "NULL",
        r"MATCH ((?:[\w\"]+ [.,] )*[\w\"]+ )(?=AGAINST )": "( 0 )",
        r"(?<=\) )CYCLE (?:[\w\"]+ , )*[\w\"]+ RESTRICT ": "",
    },
}
"""Forms that engines have but sqlglot lacks, and what it reads in their place; a number is a token of the form.

In these, `'` is a string, `0` a number and `"` a quoted name; names are lowercase. The group of a form is replaced, or all of it:
an operator, a type, an alias or keywords, but no name of a table and no function. The statement itself runs as written.
"""
_CLAUSES_AFTER_FROM = frozenset(
    ["WHERE", "GROUP_BY", "HAVING", "WINDOW", "ORDER_BY", "LIMIT", "UNION", "INTERSECT", "EXCEPT", "SELECT", "VALUES"]
)


def replace_unread_forms(tokens: list[Any], dialect: Dialect) -> list[Any]:
    """Return the tokens with forms that sqlglot reads in place of those that it lacks."""
    import sqlglot

    words = [f"{_describe_token(token)} " for token in tokens]
    starts = {start: index for index, start in enumerate(accumulate(map(len, words), initial=0))}
    text, replaced = "".join(words), [[token] for token in tokens]
    for pattern, replacement in (_UNREAD_FORMS[""] | _UNREAD_FORMS.get(dialect, {})).items():
        for form in re.finditer(pattern, text, re.IGNORECASE):
            first, last = (starts.get(end) for end in form.span(form.lastindex or 0))
            if first is None or last is None or words[first - 1] == ". ":  # within a word, or a name of a schema
                continue
            made = [
                tokens[first + int(token.text)] if token.token_type.name == "NUMBER" else token
                for token in sqlglot.tokenize(replacement, dialect=dialect)
            ]
            replaced[first:last] = [made, *([] for _ in range(first + 1, last))]
    read = [token for group in replaced for token in group]
    if dialect == "duckdb":
        return _read_pivots(read)
    return _read_commas(read) if dialect == "sqlite" else read


def _read_pivots(tokens: list[Any]) -> list[Any]:
    """Return the tokens with `FROM a SELECT b, c GROUP BY d` for each statement `PIVOT a ON b USING c GROUP BY d`."""
    import sqlglot

    from_, select, comma = sqlglot.tokenize("FROM SELECT ,")
    kinds = ["", *(token.token_type.name for token in tokens), ""]
    read = ["", *tokens]
    clauses: list[int] = [0]  # by depth of brackets: the PIVOT, or the last ON after it, which is not that of a JOIN
    for i, kind in enumerate(kinds[1:-1], 1):
        if kind in ("PIVOT", "UNPIVOT") and (kinds[i + 1] != "L_PAREN" or kinds[i - 1] in ("", "L_PAREN")):
            read[i], clauses[-1] = from_, i
        elif clauses[-1] and kind == "ON":
            if kinds[clauses[-1]] == "ON":
                read[clauses[-1]] = tokens[clauses[-1] - 1]
            read[i], clauses[-1] = select, i
        elif clauses[-1] and (kind == "INTO" or (kind == "USING" and kinds[i + 1] != "L_PAREN")):
            read[i], clauses[-1] = comma, 0
        if kind.startswith("L_"):
            clauses.append(0)
        elif kind.startswith("R_") and len(clauses) > 1:
            clauses.pop()
    return read[1:]


def _read_commas(tokens: list[Any]) -> list[Any]:
    """Return the tokens with JOIN in place of each comma between tables, which may have ON or USING in SQLite."""
    import sqlglot

    (join,) = sqlglot.tokenize("JOIN")
    read, in_from = [], [False]  # by depth of brackets
    for token in tokens:
        kind = token.token_type.name
        in_from[-1] = kind == "FROM" or (in_from[-1] and kind not in _CLAUSES_AFTER_FROM)
        read.append(join if in_from[-1] and kind == "COMMA" else token)
        if kind == "L_PAREN":
            in_from.append(False)
        elif kind == "R_PAREN" and len(in_from) > 1:
            in_from.pop()
    return read


def _describe_token(token: Any) -> str:
    kind = token.token_type.name
    if kind.endswith("STRING") or kind in ("NUMBER", "IDENTIFIER"):
        return {"NUMBER": "0", "IDENTIFIER": '"'}.get(kind, "'")
    return str(token.text.lower() if kind == "VAR" else token.text.upper()).replace(" ", "_")
