"""The prompt for SQL, and the SQL of a reply."""

import re
from collections.abc import Iterator
from itertools import islice

import orjson

from opposable.ask.sql_trees import exp, parse_query
from opposable.models.callable import extract_text
from opposable.parsers.token_escaping import WORD_JOINER
from opposable.sql.function_allowlist import Dialect
from opposable.sql.lexer import split_segments

PROMPT_TEMPLATE = """You write {dialect} SQL. Answer the question with one {dialect} SELECT statement over these tables.

{schema}

Reply with the SQL alone, in a ```sql block."""

THOUGHT_PATTERN = re.compile(r"\A(?:\s*<think>.*?|.*?\n)</think>", re.DOTALL)
"""Reasoning in the text of a reply, of which the prompt may have opened the tag: its SQL is a draft."""
_MAX_CANDIDATES = 20
"""Most fences that are tried as the end of a block, and lines that are tried as the start of a query."""
_OPENING_FENCE = re.compile(r"(?i)(```|~~~)[^\S\n]{0,9}([\w+-]*)(?:\s++(?=\(*(?:SELECT|WITH)\b)|[^\n`]{0,300}\n)")
_CLOSING_FENCE_PATTERNS = {"```": re.compile(r"(?<!`)```(?!`)"), "~~~": re.compile("~~~")}
"""Three backticks; a longer run is part of a name of MySQL, whose backticks are doubled."""
_FENCED_STATEMENT_PATTERN = re.compile(
    r"(?>\s|--[^\n]*|/\*.*?\*/)*+\(?\s*(?:VALUES|FROM|TABLE|WITH|PIVOT|UNPIVOT)\b|.*\bSELECT\b",
    re.DOTALL | re.IGNORECASE,
)
_STATEMENT_PATTERN = re.compile(r"(?=.*\bSELECT\b).*?\b((?:SELECT|WITH)\b.*)", re.DOTALL | re.IGNORECASE)
_STATEMENT_END_PATTERN = re.compile(r"(?i)\n\s*\n|;[^\S\n]*(?:--[^;\n]*+)?(?:\Z|\n(?!\s*\(*(?:SELECT|WITH)\b))")
_LINE_STATEMENT_PATTERN = re.compile(r"^[ \t]*\(*(?:SELECT|WITH)\b", re.MULTILINE | re.IGNORECASE)


def extract_sql(text: str, dialect: Dialect, *, reads_prose: bool = True) -> str:
    """Return the SQL of a reply, or ""; the reply may be JSON with the field `sql`.

    It is in the fenced blocks of SQL with SELECT, or that begin with VALUES, FROM, TABLE, WITH, PIVOT or UNPIVOT, after
    comments. Different blocks are joined by semicolons: several statements are refused, so that the model says which
    one it means. Without such a block the SQL is the query from the start of a line to the end of its paragraph or of
    the reply; with `reads_prose`, the statement that begins with the first SELECT, or the first WITH before a SELECT.
    Otherwise it is in the blocks marked as SQL: the database says why it does not run them.
    """
    text = extract_text(_unwrap_json(THOUGHT_PATTERN.sub("", text))).replace(WORD_JOINER, "")  # which the prompt adds
    blocks = [*_iter_sql_blocks(text, dialect)]
    queries = [block for _, block in blocks if _FENCED_STATEMENT_PATTERN.match(block)]
    if not queries and reads_prose and (statement := _STATEMENT_PATTERN.match(text)):
        return _extract_first_statement(statement[1], dialect)
    queries = queries or _find_query(text, dialect) or [block for language, block in blocks if language]
    return ";\n".join(dict.fromkeys(query.strip().rstrip(";").rstrip() for query in queries))


def _unwrap_json(text: str) -> str:
    """Return the field `sql` of a text that is a JSON object with it, else the text."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value["sql"] if isinstance(value, dict) and isinstance(value.get("sql"), str) else text


def _find_query(text: str, dialect: Dialect) -> list[str]:
    """Return the first query from the start of a line to the end of its paragraph, its line or the text, if any."""
    starts = [match.start() for match in islice(_LINE_STATEMENT_PATTERN.finditer(text), _MAX_CANDIDATES)]
    texts = (part for start in starts for part in (text[start:], _STATEMENT_END_PATTERN.split(text[start:])[0]))
    return [*islice((part for part in texts if isinstance(parse_query(part, dialect), exp.Query)), 1)]


def _iter_sql_blocks(text: str, dialect: Dialect) -> Iterator[tuple[str, str]]:
    """Yield the language ("" for none) and the text of the blocks of SQL; a fence in quotes is part of the SQL."""
    position = 0
    while opening := _OPENING_FENCE.search(text, position):
        rest = text[opening.end() :]
        pattern = _CLOSING_FENCE_PATTERNS[opening[1]]
        pattern = pattern if pattern.search(rest) else re.compile(opening[1])
        ends = [fence.start() for fence in islice(pattern.finditer(rest), _MAX_CANDIDATES)]
        outside_quotes = (end for end in ends if all(part.is_closed for part in split_segments(rest[:end], dialect)))
        end = next(outside_quotes, ends[0] if ends else len(rest))
        language = opening[2].lower()
        if "sql" in language or language in ("", dialect, "mariadb"):
            yield language, rest[:end]
        elif language == "json" and (sql := _unwrap_json(rest[:end])) != rest[:end]:
            yield language, sql
        position = opening.end() + end + 3


def _extract_first_statement(text: str, dialect: Dialect) -> str:
    """Return the text up to the semicolon that ends the first statement."""
    for segment in split_segments(text, dialect):
        if segment.kind == "code" and ";" in segment.text:
            return text[: segment.start + segment.text.index(";")].strip()
    return text.strip()
