"""Incremental scanner for the end of a bracketed value."""

import re

from opposable.parsers.markers import MAX_MARKER_CHARACTERS, match_stop, may_become_stop

_STRUCTURE_CHARACTERS = re.compile(r"""["'{}\[\]()<]""")
_PLAIN_STRING_PATTERNS = {
    quote: re.compile(rf"[^{quote}\\<]*(?:\\.[^{quote}\\<]*){{0,1000}}", re.DOTALL) for quote in ('"', "'")
}
"""The plain part of a string, including escaped characters."""
_STRING_MARKS = ("<escape>", '<|"|>')
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_LOOK_BACK_CHARACTERS = 64
WAIT = -1
CONTINUE = -2
"""What a step of a scan returns in place of an end: more text is needed, or the scan goes on."""


class BracketScan:
    """The scan of one value that begins with a bracket at `start`.

    Attributes:
        is_complete: Whether the value's own bracket closed it, rather than a marker or the end of the text.
        markers_end_strings: Whether a marker inside a string ends the value at once. Otherwise it ends the value only
            if no closing bracket arrives.
        needs_own_bracket: Whether only a bracket of the kind that opened the value can close it.
    """

    __slots__ = (
        "_closing",
        "_depth",
        "_fallback_end",
        "_quote",
        "at",
        "end",
        "is_complete",
        "markers_end_strings",
        "needs_own_bracket",
        "start",
    )

    def __init__(self, start: int, markers_end_strings: bool = False, needs_own_bracket: bool = False) -> None:
        self.start = self.at = start
        self.is_complete = False
        self.end: int | None = None
        self.markers_end_strings = markers_end_strings
        self.needs_own_bracket = needs_own_bracket
        self._depth = 0
        self._closing = ""
        self._quote = ""
        self._fallback_end = -1

    def scan(self, text: str, final: bool) -> int | None:
        """Return the position after the value, or None if more text is needed."""
        if self.end is None:
            self.end = self._find_end(text, final)
        return self.end

    def _find_end(self, text: str, final: bool) -> int | None:
        while self.at < len(text):
            if len(self._quote) > 1:
                step = self._scan_marked_string(text)
            elif self._quote:
                step = self._scan_string(text, final)
            else:
                step = self._scan_structure(text, final)
            if step >= 0:
                return step
            if step == WAIT:
                break
        if not final:
            return None
        return self._fallback_end if self._quote and self._fallback_end >= 0 else len(text)

    @property
    def ended_at_fallback(self) -> bool:
        """Whether the value has no end of its own and ended at a marker inside a string."""
        return bool(self._quote) and self._fallback_end >= 0

    def _scan_marked_string(self, text: str) -> int:
        end = text.find(self._quote, self.at)
        if end < 0:
            self.at = max(self.at, len(text) - len(self._quote) + 1)
            return WAIT
        self.at = end + len(self._quote)
        self._quote = ""
        return CONTINUE

    def _scan_string(self, text: str, final: bool) -> int:
        match = _PLAIN_STRING_PATTERNS[self._quote].match(text, self.at)
        self.at = match.end() if match else self.at
        if self.at >= len(text):
            return WAIT
        char = text[self.at]
        if char == "\\":
            return WAIT if self.at + 1 >= len(text) else CONTINUE
        if char == self._quote:
            self._quote = ""
        elif match_stop(text, self.at):
            if self.markers_end_strings:
                return self.at
            if self._fallback_end < 0:
                self._fallback_end = self.at
        elif not final and may_become_stop(text, self.at):
            return WAIT
        self.at += 1
        return CONTINUE

    def _scan_structure(self, text: str, final: bool) -> int:
        match = _STRUCTURE_CHARACTERS.search(text, self.at)
        if match is None:
            self.at = len(text)
            return WAIT
        self.at, char = match.start(), match[0]
        if char == "<":
            return self._scan_marker(text, final)
        self.at += 1
        if char in "{[(":
            self._closing = self._closing or _CLOSING[char]
            self._depth += 1
        elif char in "}])":
            self._depth = max(self._depth - 1, int(self.needs_own_bracket and char != self._closing))
            if self._depth <= 0:
                self.is_complete = True
                return self.at
        elif char == '"' or _opens_string(text, self.at - 1):
            self._quote = char
        return CONTINUE

    def _scan_marker(self, text: str, final: bool) -> int:
        for string_mark in _STRING_MARKS:
            if text.startswith(string_mark, self.at):
                self._quote = string_mark
                self.at += len(string_mark)
                return CONTINUE
        if match_stop(text, self.at):
            return self.at
        upcoming = text[self.at : self.at + MAX_MARKER_CHARACTERS]
        if not final and (
            may_become_stop(text, self.at) or any(string_mark.startswith(upcoming) for string_mark in _STRING_MARKS)
        ):
            return WAIT
        self.at += 1
        return CONTINUE


def _opens_string(text: str, at: int) -> bool:
    """Return whether a single quote at `at` opens a string, unlike an apostrophe."""
    before = text[max(0, at - _LOOK_BACK_CHARACTERS) : at].rstrip()
    return not before or before[-1] in "{[(,:="
