"""Comments written inside CREATE TABLE, which SQLite stores only as text."""

import re

from opposable.sql.lexer import split_segments

_COLUMN_NAME = re.compile(r"^[\s,(]*(?:\"([^\"]+)\"|`([^`]+)`|\[([^\]]+)\]|(\w+))")


def parse_column_comments(create_table: str) -> dict[str, str]:
    """Return comments by column name in lower case.

    A comment belongs to the column that its line defines.
    """
    comments_by_column: dict[str, str] = {}
    for line in _split_column_lines(create_table):
        comments = [part.text for part in split_segments(line) if part.kind == "comment"]
        column = _COLUMN_NAME.match(line)
        if comments and column and not line.lstrip().startswith(("--", "/*")):
            name = next(group for group in column.groups() if group)
            if name.casefold() not in {"create", "primary", "foreign", "unique", "check", "constraint"}:
                text = comments[0].removeprefix("--").removeprefix("/*").removesuffix("*/")
                comments_by_column[name.casefold()] = text.strip()
    return comments_by_column


def _split_column_lines(sql: str) -> list[str]:
    """Return the lines after the opening parenthesis of CREATE TABLE."""
    head, parenthesis, rest = sql.partition("(")
    return rest.splitlines() if parenthesis and "create" in head.casefold() else []
