"""The comments people write into CREATE TABLE, which SQLite keeps only as text."""

import re

from opposable.sql.lexer import split_segments

_COLUMN_NAME = re.compile(r"^[\s,(]*(?:\"([^\"]+)\"|`([^`]+)`|\[([^\]]+)\]|(\w+))")


def parse_column_comments(create_table: str) -> dict[str, str]:
    """Comments by column (in lower case): `-- …` or `/* … */` on the line where the column is defined."""
    found: dict[str, str] = {}
    for line in _split_column_lines(create_table):
        comments = [part.text for part in split_segments(line) if part.kind == "comment"]
        column = _COLUMN_NAME.match(line)
        if comments and column and not line.lstrip().startswith(("--", "/*")):
            name = next(group for group in column.groups() if group)
            if name.casefold() not in {"create", "primary", "foreign", "unique", "check", "constraint"}:
                found[name.casefold()] = _strip_comment_marks(comments[0])
    return found


def _split_column_lines(sql: str) -> list[str]:
    """The text by lines, with what stands on CREATE's own line after the parenthesis on a line of its own."""
    head, opened, rest = sql.partition("(")
    return rest.splitlines() if opened and "create" in head.casefold() else []


def _strip_comment_marks(comment: str) -> str:
    return comment.removeprefix("--").removeprefix("/*").removesuffix("*/").strip()
