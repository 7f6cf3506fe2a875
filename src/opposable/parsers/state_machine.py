"""The state every mode of the reader works on: the text not yet told, and what was told."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from opposable.parsers.bracket_scanner import BracketScan
from opposable.parsers.call_candidates import Held
from opposable.parsers.call_section import Section
from opposable.parsers.emitter import Output
from opposable.parsers.marker_aliases import Translation
from opposable.parsers.markers import (
    CLOSERS,
    HEADERS,
    LINE_OPENERS,
    MAX_MARKER,
    NOISE,
    OPENERS,
    QUOTING,
    TAGGED_STEMS,
    THINKING,
    THINKING_ENDS,
    one_of,
    pattern_of,
    prefixes_of,
)  # fmt: skip
from opposable.parsers.react import ReactScan
from opposable.parsers.tool_names import OfferedTool, tools_of

LITERALS = frozenset({
    *OPENERS.keys() - set(LINE_OPENERS), *CLOSERS, *NOISE, *THINKING, *THINKING_ENDS, *QUOTING, *HEADERS, *TAGGED_STEMS,
})  # fmt: skip
"""All markup that may stand in the middle of text."""

MARKUP = one_of(LITERALS)
MARKUP_PREFIXES = prefixes_of(LITERALS)
NEXT = re.compile("[\n`]|" + pattern_of(LITERALS))
BLANK = re.compile(r"[\s\u3000]*")
WORD = re.compile(r"(?:functions\.|tools\.)?[^\W\d][\w.\-]{0,127}")
MAX_INFO = 120
_PARTIAL = re.compile(r"[<\[\]◁]")
_FLOWING = frozenset({"_text", "_thinking", "_code", "_quoting", "_inline", "_thinking_body"})
"""The modes in which what was told is no longer needed."""


_LINE_FIRSTS = frozenset("{[>*-Af t")
"""What begins a line that may be more than text, besides the tools' names."""


class Machine(ABC):
    """The reader's state.

    A mode is a method that looks at the text from `_at` on: it gives True where there is more to do at once (in
    whichever mode it set), and False where it waits for more text. `final` says that none will come.
    """

    def __init__(self, tools: Sequence[OfferedTool], new_id: Callable[[], str], translation: Translation) -> None:
        self._tools = tools_of(tools)
        self._out = Output(self._tools, new_id)
        self._translation = translation
        self._line_firsts = _LINE_FIRSTS | self._tools.first_letters()
        self._buffer = ""
        self._at = 0
        self._mode: Callable[[bool], bool] = self._text
        self._plain = False
        self._truncated = False
        self._thought = False  # a block of reasoning was opened or closed
        self._shown_only = False  # the message is addressed to the user: nothing in it is a call
        self._fallbacks = 0
        self._section: Section | None = None
        self._scan: BracketScan | None = None
        self._react: ReactScan | None = None
        self._scan_from = 0
        self._start = self._body = 0
        self._opener = self._close = self._info = ""
        self._pending: Held | None = None
        self._pending_raw = ""
        self._pending_fenced = False
        self._header_tool = ""

    @abstractmethod
    def _text(self, final: bool) -> bool:
        """The mode of plain text."""

    @abstractmethod
    def _thinking(self, final: bool) -> bool:
        """The mode of reasoning."""

    def _run(self, final: bool) -> None:
        while self._mode(final):
            pass
        if self._at and self._mode.__name__ in _FLOWING:
            self._buffer = self._buffer[self._at :]
            self._at = 0
        flowing = self._mode.__name__ == "_text" and not self._out.blank
        self._plain = flowing and not self._buffer and not self._translation.held and self._translation.usual

    def _say_to(self, end: int) -> bool:
        """Tell the text before `end`; false where there was none."""
        if end <= self._at:
            return False
        self._out.say(self._buffer[self._at : end])
        self._at = end
        return True

    def _skip_to(self, start: int) -> None:
        """Tell the white space before something that is held."""
        if start > self._at:
            self._say_to(start)

    def _drop(self, size: int) -> bool:
        self._at += size
        self._out.gap()
        return True

    def _marker_may_begin(self, text: str, start: int, final: bool) -> bool:
        if MARKUP.match(text, start):
            return True
        return not final and text[start : start + MAX_MARKER] in MARKUP_PREFIXES and len(text) - start > 1


def blank_end(text: str, at: int) -> int:
    """The position of the first character at or after `at` that is no white space."""
    found = BLANK.match(text, at)
    return found.end() if found else at


def without_partial(text: str, at: int, prefixes: frozenset[str]) -> int:
    """The end of `text` without what may become a marker."""
    for found in _PARTIAL.finditer(text, max(at, len(text) - MAX_MARKER)):
        if text[found.start() :] in prefixes:
            return found.start()
    return len(text)
