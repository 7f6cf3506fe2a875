"""Markdown in a terminal, rendered while it streams."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live

if TYPE_CHECKING:
    from rich.markdown import Markdown

_FENCES = ("```", "~~~")


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
            self._live.update(_render(self._block))

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
            self._out.print(_render(block), soft_wrap=False)
            self._has_printed = True


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


def _render(text: str) -> "Markdown":
    from rich.markdown import Markdown  # loads a parser and a highlighter, which most commands do not use

    return Markdown(text, hyperlinks=False)
