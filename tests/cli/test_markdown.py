"""Markdown that arrives in parts."""

import io

import pytest
from rich.console import Console

from opposable.cli.markdown import MarkdownPrinter, find_block_end

BLOCKS = [
    ("one", 0),
    ("one\n", 0),
    ("one\n\n", 5),
    ("one\n\ntwo", 5),
    ("one\n\ntwo\n\nthree", 10),
    ("```\na\n\nb\n", 0),
    ("```\na\n\nb\n```\n\n", 14),
    ("```\n~~~\n\n```\n\nx", 14),
    ("\n\n", 0),
    ("", 0),
]


@pytest.mark.parametrize(("text", "end"), BLOCKS)
def test_a_block_ends_at_a_blank_line_outside_of_code(text: str, end: int) -> None:
    assert find_block_end(text) == end


def test_parts_are_printed_like_the_whole() -> None:
    text = "# Title\n\nSome *text* with [a link](https://example.com).\n\n1. one\n2. two\n\n```\ncode\n\nmore\n```\n"
    shown = []
    parts = ["# Title\n\n", text[9:59], text[59:]]
    assert "".join(parts) == text
    for written in (parts, [text]):
        console = Console(file=io.StringIO(), width=40)
        printer = MarkdownPrinter(console)
        for part in written:
            printer.write(part)
        printer.end()
        shown.append(" ".join(console.file.getvalue().split()))
    assert shown[0] == shown[1]
    assert "a link (https://example.com)" in shown[0]
    assert shown[0].endswith("1 one 2 two code more")
