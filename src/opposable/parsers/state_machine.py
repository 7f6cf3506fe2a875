"""The data that all parser states share: the text to parse and the emitter."""

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
    END_OF_TEXT,
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
    *OPENERS.keys() - set(LINE_OPENERS), *CLOSERS, *IGNORED_MARKERS, *THINKING_MARKERS, *THINKING_ENDS, *QUOTED_ELEMENTS, *HEADER_MARKERS, *TAGGED_CALL_STARTS, END_OF_TEXT,
})  # fmt: skip
"""All markers that may occur in the middle of text."""

INLINE_MARKER_PATTERN = compile_alternatives(INLINE_MARKERS)
INLINE_MARKER_PREFIXES = get_prefixes(INLINE_MARKERS)
SPECIAL_TEXT_PATTERN = re.compile("[\n`]|" + build_alternatives(INLINE_MARKERS))
WORD_PATTERN = re.compile(r"(?:functions\.|tools\.)?[^\W\d][\w.\-]{0,127}")
MAX_LOOKAHEAD_CHARACTERS = 120
_MARKER_START_PATTERN = re.compile(r"[<\[\]◁]")
_PASSTHROUGH_STATES = frozenset(
    {"_parse_text", "_parse_thinking", "_pass_until_closer", "_pass_inline_code", "_pass_thinking_body"}
)
"""Names of the states that no longer need the text they have emitted."""


_LINE_START_CHARACTERS = frozenset("{[>*-~AFf t行动最✿")
"""First characters of a line that may begin a call, in addition to those of the tools' names."""


class StateMachine(ABC):
    """The shared state of the parser.

    A state is a method that parses the text from `_at` on. It returns True if there is more to parse at once (in
    whichever state it selected), and False if it needs more text. `final` means that no more text will come.
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
        self._is_react_quoted = False  # an action was quoted, and those after it belong to the quotation
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
        """Parse plain text."""

    @abstractmethod
    def _parse_thinking(self, final: bool) -> bool:
        """Parse reasoning."""

    def _advance(self, final: bool) -> None:
        """Run states until one needs more text."""
        while self._state(final):
            pass
        if self._at and self._state.__name__ in _PASSTHROUGH_STATES:
            self._buffer = self._buffer[self._at :]
            self._at = 0
        is_text_flowing = self._state.__name__ == "_parse_text" and not self._emitter.is_line_blank
        self._is_plain_text = (
            is_text_flowing
            and not self._buffer
            and not self._translator.buffered
            and self._translator.uses_standard_starts
        )

    def _emit_until(self, end: int) -> bool:
        """Emit the text before `end`; return False if it is empty."""
        if end <= self._at:
            return False
        self._emitter.emit_text(self._buffer[self._at : end])
        self._at = end
        return True

    def _drop_characters(self, count: int) -> bool:
        """Skip characters that are not shown to the user."""
        self._at += count
        self._emitter.mark_gap()
        return True

    def _marker_may_begin(self, text: str, start: int, final: bool) -> bool:
        """Return whether a marker begins, or may begin, at `start`."""
        if INLINE_MARKER_PATTERN.match(text, start):
            return True
        return (
            not final
            and text[start : start + MAX_MARKER_CHARACTERS] in INLINE_MARKER_PREFIXES
            and len(text) - start > 1
        )


def find_partial_marker(text: str, at: int, prefixes: frozenset[str]) -> int:
    """Return where an incomplete marker at the end of `text` begins.

    Return the length of `text` if no marker begins there.
    """
    for match in _MARKER_START_PATTERN.finditer(text, max(at, len(text) - MAX_MARKER_CHARACTERS)):
        if text[match.start() :] in prefixes:
            return match.start()
    return len(text)
