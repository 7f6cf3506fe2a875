"""The state every mode of the reader works on: the text not yet told, and what was told."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from opposable.parsers.bracket_scanner import BracketScan
from opposable.parsers.call_candidates import CallCandidate
from opposable.parsers.call_section import CallSection
from opposable.parsers.emitter import Emitter
from opposable.parsers.marker_aliases import MarkerTranslator
from opposable.parsers.markers import (
    CLOSERS,
    HEADER_MARKERS,
    IGNORED_MARKERS,
    LINE_OPENERS,
    MAX_MARKER_CHARACTERS,
    OPENERS,
    QUOTED_ELEMENTS,
    TAGGED_CALL_STARTS,
    THINKING_ENDS,
    THINKING_MARKERS,
    build_alternatives,
    compile_alternatives,
    get_prefixes,
)  # fmt: skip
from opposable.parsers.react import ReactScan
from opposable.parsers.tool_names import ToolLike, get_tool_index

INLINE_MARKERS = frozenset({
    *OPENERS.keys() - set(LINE_OPENERS), *CLOSERS, *IGNORED_MARKERS, *THINKING_MARKERS, *THINKING_ENDS, *QUOTED_ELEMENTS, *HEADER_MARKERS, *TAGGED_CALL_STARTS,
})  # fmt: skip
"""All markup that may stand in the middle of text."""

INLINE_MARKER_PATTERN = compile_alternatives(INLINE_MARKERS)
INLINE_MARKER_PREFIXES = get_prefixes(INLINE_MARKERS)
SPECIAL_TEXT_PATTERN = re.compile("[\n`]|" + build_alternatives(INLINE_MARKERS))
WHITESPACE_PATTERN = re.compile(r"[\s\u3000]*")
WORD_PATTERN = re.compile(r"(?:functions\.|tools\.)?[^\W\d][\w.\-]{0,127}")
MAX_LOOKAHEAD_CHARACTERS = 120
_MARKER_START_PATTERN = re.compile(r"[<\[\]◁]")
_PASSTHROUGH_STATES = frozenset(
    {"_parse_text", "_parse_thinking", "_pass_code", "_pass_quotation", "_pass_inline_code", "_pass_thinking_body"}
)
"""The modes in which what was told is no longer needed."""


_LINE_START_CHARACTERS = frozenset("{[>*-Af t")
"""What begins a line that may be more than text, besides the tools' names."""


class StateMachine(ABC):
    """The reader's state.

    A mode is a method that looks at the text from `_at` on: it gives True where there is more to do at once (in
    whichever mode it set), and False where it waits for more text. `final` says that none will come.
    """

    def __init__(self, tools: Sequence[ToolLike], new_id: Callable[[], str], translator: MarkerTranslator) -> None:
        self._tools = get_tool_index(tools)
        self._emitter = Emitter(self._tools, new_id)
        self._translator = translator
        self._line_start_characters = _LINE_START_CHARACTERS | self._tools.first_letters()
        self._buffer = ""
        self._at = 0
        self._state: Callable[[bool], bool] = self._parse_text
        self._is_plain_text = False
        self._truncated = False
        self._has_seen_thinking = False  # a block of reasoning was opened or closed
        self._is_addressed_to_user = False  # the message is addressed to the user: nothing in it is a call
        self._fallback_count = 0
        self._section: CallSection | None = None
        self._bracket_scan: BracketScan | None = None
        self._react_scan: ReactScan | None = None
        self._search_from = 0
        self._start = self._body_start = 0
        self._opener = self._closer = self._fence_info = ""
        self._pending_candidate: CallCandidate | None = None
        self._pending_raw = ""
        self._is_pending_fenced = False
        self._header_tool = ""

    @abstractmethod
    def _parse_text(self, final: bool) -> bool:
        """The mode of plain text."""

    @abstractmethod
    def _parse_thinking(self, final: bool) -> bool:
        """The mode of reasoning."""

    def _advance(self, final: bool) -> None:
        while self._state(final):
            pass
        if self._at and self._state.__name__ in _PASSTHROUGH_STATES:
            self._buffer = self._buffer[self._at :]
            self._at = 0
        flowing = self._state.__name__ == "_parse_text" and not self._emitter.is_line_blank
        self._is_plain_text = (
            flowing and not self._buffer and not self._translator.buffered and self._translator.uses_standard_starts
        )

    def _emit_until(self, end: int) -> bool:
        """Tell the text before `end`; false where there was none."""
        if end <= self._at:
            return False
        self._emitter.emit_text(self._buffer[self._at : end])
        self._at = end
        return True

    def _emit_whitespace_until(self, start: int) -> None:
        """Tell the white space before something that is held."""
        if start > self._at:
            self._emit_until(start)

    def _drop_characters(self, count: int) -> bool:
        self._at += count
        self._emitter.mark_gap()
        return True

    def _marker_may_begin(self, text: str, start: int, final: bool) -> bool:
        if INLINE_MARKER_PATTERN.match(text, start):
            return True
        return (
            not final
            and text[start : start + MAX_MARKER_CHARACTERS] in INLINE_MARKER_PREFIXES
            and len(text) - start > 1
        )


def skip_whitespace(text: str, at: int) -> int:
    """The position of the first character at or after `at` that is no white space."""
    found = WHITESPACE_PATTERN.match(text, at)
    return found.end() if found else at


def find_partial_marker(text: str, at: int, prefixes: frozenset[str]) -> int:
    """The end of `text` without what may become a marker."""
    for found in _MARKER_START_PATTERN.finditer(text, max(at, len(text) - MAX_MARKER_CHARACTERS)):
        if text[found.start() :] in prefixes:
            return found.start()
    return len(text)
