"""A lexer that splits SQL into code, strings, quoted names and comments."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

SegmentKind = Literal["code", "string", "name", "comment"]

_OPENERS: tuple[tuple[str, str, SegmentKind], ...] = (
    ("--", "\n", "comment"),
    ("/*", "*/", "comment"),
    ("'", "'", "string"),
    ('"', '"', "name"),
    ("`", "`", "name"),
)


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of SQL text of one kind.

    `text` includes its quotes and begins at `start`. `is_closed` is false where the SQL ends before the closing mark.
    """

    kind: SegmentKind
    text: str
    start: int
    is_closed: bool = True


def split_segments(sql: str) -> Iterator[Segment]:
    """Yield the segments of `sql` in order; their texts joined are `sql`."""
    code_start = position = 0
    while position < len(sql):
        opener = next((o for o in _OPENERS if sql.startswith(o[0], position)), None)
        if opener is None:
            position += 1
            continue
        if position > code_start:
            yield Segment("code", sql[code_start:position], code_start)
        end, closed = _find_segment_end(sql, position + len(opener[0]), opener[1])
        yield Segment(opener[2], sql[position:end], position, closed or opener[1] == "\n")
        code_start = position = end
    if code_start < len(sql):
        yield Segment("code", sql[code_start:], code_start)


def _find_segment_end(sql: str, position: int, closer: str) -> tuple[int, bool]:
    """Return where a segment ends, and whether it is closed.

    A doubled quote does not end a segment.
    """
    doubles = closer in "'\"`"
    while (found := sql.find(closer, position)) >= 0:
        if doubles and sql.startswith(closer, found + 1):
            position = found + 2
            continue
        return found + len(closer), True
    return len(sql), False
