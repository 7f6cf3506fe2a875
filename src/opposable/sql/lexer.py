"""A lexer that splits SQL into code, strings, quoted names and comments."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from opposable.sql.function_allowlist import Dialect

SegmentKind = Literal["code", "string", "name", "comment"]

_OPENERS: tuple[tuple[str, str, SegmentKind], ...] = (
    ("--", "\n", "comment"),
    ("/*", "*/", "comment"),
    ("'", "'", "string"),
    ('"', '"', "name"),
    ("`", "`", "name"),
)
_OPENERS_BY_DIALECT: dict[Dialect, tuple[tuple[str, str, SegmentKind], ...]] = {
    "mysql": (
        *((f"--{chr(code)}", "\n", "comment") for code in (*range(33), 127)),  # 5--1 is a subtraction
        ("#", "\n", "comment"),
        ("/*", "*/", "comment"),
        ("'", "'", "string"),
        ('"', '"', "string"),
        ("`", "`", "name"),
    ),
    "sqlite": (*_OPENERS, ("[", "]", "name")),
    "clickhouse": (("# ", "\n", "comment"), ("#!", "\n", "comment"), *_OPENERS),
}
_ESCAPED_QUOTES: dict[Dialect, str] = {"mysql": "'\"", "clickhouse": "'\"`"}
"""The quotes within which a backslash escapes the next character."""
LETTER = r"[^\x00-@\[-^`{-\x7f]"
"""What begins a name: PostgreSQL also takes spaces and dashes beyond ASCII for letters."""
NAME_SIGN = r"[^\x00-#%-/:-@\[-^`{-\x7f]"
"""What continues a name: a letter, a digit or `$`."""
_DOLLAR_QUOTE = re.compile(rf"(?<!{NAME_SIGN})\$(?:{LETTER}(?:(?!\$){NAME_SIGN})*)?\$")
_DOLLAR_QUOTED_DIALECTS: frozenset[Dialect] = frozenset({"duckdb", "postgres", "clickhouse"})
_ESCAPE_PREFIX = re.compile(rf"(?<!{NAME_SIGN})[eE]")
_ESCAPE_PREFIXED_DIALECTS: frozenset[Dialect] = frozenset({"duckdb", "postgres"})
"""The dialects that read backslashes in `E'…'`, but not in `'…'`. A carriage return ends a comment in them."""
_NEWLINE = re.compile(r"[\r\n]")
_NESTED_COMMENT_DIALECTS: frozenset[Dialect] = frozenset({"duckdb", "postgres", "clickhouse"})
_COMMENT_MARK = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of SQL text of one kind.

    `text` includes its quotes and begins at `start`. `is_closed` is false where the SQL ends before the closing mark.
    `has_escape_prefix` is true for the `'…'` of `E'…'`, and for the strings that continue it on the next lines.
    """

    kind: SegmentKind
    text: str
    start: int
    is_closed: bool = True
    has_escape_prefix: bool = False


def split_segments(sql: str, dialect: Dialect = "sqlite") -> Iterator[Segment]:
    """Yield the segments of `sql` in order; their texts joined are `sql`."""
    openers = _OPENERS_BY_DIALECT.get(dialect, _OPENERS)
    signs = {"$"} | {opener[0] for opener, _, _ in openers}
    escaped_quotes = _ESCAPED_QUOTES.get(dialect, "")
    code_start = position = 0
    continues_escapes = False
    while position < len(sql):
        if sql[position] not in signs:
            position += 1
            continue
        opener = next((o for o in openers if sql.startswith(o[0], position)), None)
        if dialect in _DOLLAR_QUOTED_DIALECTS and (mark := _DOLLAR_QUOTE.match(sql, position)):
            opener = (mark[0], mark[0], "string")
        if opener is None:
            position += 1
            continue
        if position > code_start:
            continues_escapes = continues_escapes and sql[code_start:position].isspace()
            yield Segment("code", sql[code_start:position], code_start)
        content_start = position + (1 if opener[1] == "\n" else len(opener[0]))
        prefixed = opener[1] == "'" and dialect in _ESCAPE_PREFIXED_DIALECTS and position > 0
        prefixed = prefixed and (continues_escapes or _ESCAPE_PREFIX.match(sql, position - 1) is not None)
        continues_escapes = prefixed or (continues_escapes and opener[2] == "comment")
        has_escapes = prefixed or opener[1] in escaped_quotes
        end, closed = _find_segment_end(sql, content_start, opener[1], has_escapes=has_escapes)
        if opener[0] == "/*" and dialect in _NESTED_COMMENT_DIALECTS:
            end, closed = _find_comment_end(sql, position)
        if opener[1] == "\n" and dialect in _ESCAPE_PREFIXED_DIALECTS and (newline := _NEWLINE.search(sql, position)):
            end = newline.end()
        yield Segment(opener[2], sql[position:end], position, closed or opener[1] == "\n", prefixed)
        code_start = position = end
    if code_start < len(sql):
        yield Segment("code", sql[code_start:], code_start)


def standardize_string(string: Segment, dialect: Dialect) -> str:
    r"""Return the text of a string in a form whose end every parser sees alike.

    `$$it's$$` becomes `'it''s'`. In `E'…'` a quote after a backslash is doubled, and two backslashes become `\x5c`.
    """
    if string.text.startswith("$"):
        mark = string.text[: string.text.index("$", 1) + 1]
        content = string.text[len(mark) : -len(mark)].replace("'", "''")
        content = content.replace("\\", r"\\") if dialect == "clickhouse" else content
        return f" '{content}' "
    if not string.has_escape_prefix:
        return string.text
    return re.sub(r"\\(['\\])", lambda escaped: "''" if escaped[1] == "'" else r"\x5c", string.text)


def _find_comment_end(sql: str, position: int) -> tuple[int, bool]:
    """Return where a comment with comments in it ends, and whether it is closed."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(sql, position):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end(), True
    return len(sql), False


def _find_segment_end(sql: str, position: int, closer: str, *, has_escapes: bool) -> tuple[int, bool]:
    """Return where a segment ends, and whether it is closed.

    A doubled quote does not end a segment, nor does one after an odd number of backslashes with `has_escapes`.
    """
    doubles = closer in "'\"`"
    while (found := sql.find(closer, position)) >= 0:
        before = sql[position:found]
        if has_escapes and (len(before) - len(before.rstrip("\\"))) % 2:
            position = found + 1
            continue
        if doubles and sql.startswith(closer, found + 1):
            position = found + 2
            continue
        return found + len(closer), True
    return len(sql), False
