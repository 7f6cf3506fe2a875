"""Markdown that arrives in parts."""

import io
import itertools

import pytest
from rich.console import Console

from opposable.cli.markdown import MarkdownPrinter, find_block_end, find_line_breaks

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


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ["one two", "three"]),
        ("用户名、密码、UID（用户）", ["用户名、密", "码、UID（用", "户）"]),
        ("/etc/a是一个文本文件，好", ["/etc/a是一", "个文本文", "件，好"]),
        ("shell 等。", ["shell 等。"]),
        ("一二三四五。", ["一二三四", "五。"]),
        ("one\ntwo three", ["one\ntwo three"]),
        ("abcdefghijklmno 一", ["abcdefghijklmno", "一"]),
        ("", [""]),
    ],
)
def test_lines_break_between_chinese_characters_and_inside_no_other_word(text: str, lines: list[str]) -> None:
    starts = [0, *find_line_breaks(text, 11), len(text)]
    assert [text[start:end].rstrip() for start, end in itertools.pairwise(starts)] == lines


def test_a_paragraph_is_neither_padded_nor_broken_inside_words() -> None:
    console = Console(file=io.StringIO(), width=20)
    printer = MarkdownPrinter(console)
    printer.write("每个用户的信息包括**用户名**、UID、shell 等。\n\n- 列表里的一个长句子，包括 Linux 和 shell。\n")
    printer.end()
    text = console.file.getvalue()
    assert [line for line in text.splitlines() if line.startswith("每") and line.endswith(" ")] == []
    for word in ("UID、", "shell", "Linux"):
        assert word in text
    assert max(len(line.encode("gbk", "replace")) for line in text.splitlines()) <= 18
