"""Markdown in a terminal, rendered while it streams."""

import functools
import re
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.constrain import Constrain
from rich.live import Live
from rich.text import Text

if TYPE_CHECKING:
    from rich.markdown import Markdown

INTERRUPT_COLUMNS = 2
"""Columns for the ^C that a terminal shows; in a new line, it would part the open block from its redrawing."""

_FENCES = ("```", "~~~")

_WIDE = "\u2e80-\u2fff\u3005-\u3007\u3040-\ua4cf\uac00-\ud7ff\uf900-\ufaff"
_OPENING, _CLOSING = "（《「『【“‘", "，。、！？；：）》」』】”’…"
_UNBREAKABLE = re.compile(rf"[{_OPENING}]*(?:[{_WIDE}]|[^\s{_WIDE}{_OPENING}{_CLOSING}]+|)[{_CLOSING}]*[^\S\n]*\n?")
"""A character of Chinese or a word of other scripts, with the punctuation that no line break may part from it."""


class MarkdownPrinter:
    """Renders Markdown that arrives in parts: the open block is redrawn, a complete one stays as printed.

    Words are wrapped, never broken. The address of a link follows its text. The caller escapes control
    characters.
    """

    def __init__(self, out: Console) -> None:
        self._out = out
        self._block = ""
        self._live: Live | None = None
        self._has_printed = False

    def write(self, text: str) -> None:
        """Add a part of the text."""
        self._block += text
        end = find_block_end(self._block)
        if end:
            self._print_block(self._block[:end])
            self._block = self._block[end:]
        if self._block.strip():
            if self._live is None:
                self._live = Live(console=self._out, refresh_per_second=8, transient=True)
                self._live.start()
            self._live.update(self._render(self._block))

    def end(self) -> None:
        """Print what is left."""
        self._print_block(self._block)
        self._block = ""

    def _print_block(self, block: str) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        if block.strip():
            if self._has_printed:
                self._out.print()
            self._out.print(self._render(block), soft_wrap=False)
            self._has_printed = True

    def _render(self, text: str) -> Constrain:
        markdown = _get_markdown_class()(text, hyperlinks=False, justify="default")
        return Constrain(markdown, self._out.width - INTERRUPT_COLUMNS)


def find_block_end(text: str) -> int:
    """Return where the last complete block of a Markdown text ends: after a blank line outside of code; else 0."""
    end = position = 0
    fence = ""
    for line in text.splitlines(keepends=True):
        position += len(line)
        marker = line.lstrip()[:3]
        if marker in _FENCES and fence in ("", marker):
            fence = "" if fence else marker
        elif not fence and not line.strip() and line.endswith("\n"):
            end = position
    return end if text[:end].strip() else 0


def find_line_breaks(text: str, width: int) -> list[int]:
    """Return where lines of at most `width` columns begin: between Chinese characters, but inside no other word."""
    breaks: list[int] = []
    used = 0
    for match in _UNBREAKABLE.finditer(text):
        part = match[0]
        columns = cell_len(part.rstrip())
        if used and used + columns > width:
            breaks.append(match.start())
            used = 0
        used = 0 if part.endswith("\n") else used + cell_len(part)
    return breaks


@functools.cache
def _get_markdown_class() -> type["Markdown"]:
    from rich.markdown import Markdown, Paragraph  # loads a parser and a highlighter, which most commands do not use

    class WrappedParagraph(Paragraph):
        """A paragraph with line breaks between Chinese characters; Rich knows spaces only."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            self.text.justify = self.justify
            lines = self.text.divide(find_line_breaks(self.text.plain, options.max_width))
            for line in lines:
                line.rstrip()
            yield Text("\n", justify=self.justify, end=self.text.end).join(lines)

    class WrappedMarkdown(Markdown):
        elements = Markdown.elements | {"paragraph_open": WrappedParagraph}

    return WrappedMarkdown
