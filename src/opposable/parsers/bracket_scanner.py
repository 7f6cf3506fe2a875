"""Finds where a bracketed value ends, in pieces: strings are skipped, and what was looked at is not looked at again."""

import re

from opposable.parsers.markers import MAX_MARKER_CHARACTERS, match_stop, may_become_stop

_STRUCTURE_CHARACTERS = re.compile(r"""["'{}\[\]()<]""")
_PLAIN_STRING_PATTERNS = {
    quote: re.compile(rf"[^{quote}\\<]*(?:\\.[^{quote}\\<]*){{0,1000}}", re.DOTALL) for quote in ('"', "'")
}
"""The plain part of a string, with what is escaped in it."""
_STRING_MARKS = ("<escape>", '<|"|>')
_LOOK_BACK_CHARACTERS = 64
_WAIT = -1
_CONTINUE = -2


class BracketScan:
    """Scans one value that begins with a bracket at `start`.

    `complete` tells whether the value's own bracket closed it; otherwise a marker, or the end of the text, did. A
    marker inside a string ends the value only if its own end never comes, or at once where `hard` is set.
    """

    __slots__ = ("_depth", "_fallback_end", "_quote", "at", "end", "is_complete", "markers_end_strings", "start")

    def __init__(self, start: int, markers_end_strings: bool = False) -> None:
        self.start = self.at = start
        self.is_complete = False
        self.end: int | None = None
        self.markers_end_strings = markers_end_strings
        self._depth = 0
        self._quote = ""
        self._fallback_end = -1

    def scan(self, text: str, final: bool) -> int | None:
        """The position after the value, or None while more text is needed; once found, it stays."""
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
            if step == _WAIT:
                break
        if not final:
            return None
        return self._fallback_end if self._quote and self._fallback_end >= 0 else len(text)

    @property
    def ended_at_fallback(self) -> bool:
        """Whether the value ended, for want of its own end, at a marker inside a string."""
        return bool(self._quote) and self._fallback_end >= 0

    def _scan_marked_string(self, text: str) -> int:
        end = text.find(self._quote, self.at)
        if end < 0:
            self.at = max(self.at, len(text) - len(self._quote) + 1)
            return _WAIT
        self.at = end + len(self._quote)
        self._quote = ""
        return _CONTINUE

    def _scan_string(self, text: str, final: bool) -> int:
        found = _PLAIN_STRING_PATTERNS[self._quote].match(text, self.at)
        self.at = found.end() if found else self.at
        if self.at >= len(text):
            return _WAIT
        char = text[self.at]
        if char == "\\":
            return _WAIT if self.at + 1 >= len(text) else _CONTINUE
        if char == self._quote:
            self._quote = ""
        elif match_stop(text, self.at):
            if self.markers_end_strings:
                return self.at
            if self._fallback_end < 0:
                self._fallback_end = self.at
        elif not final and may_become_stop(text, self.at):
            return _WAIT
        self.at += 1
        return _CONTINUE

    def _scan_structure(self, text: str, final: bool) -> int:
        found = _STRUCTURE_CHARACTERS.search(text, self.at)
        if found is None:
            self.at = len(text)
            return _WAIT
        self.at, char = found.start(), found[0]
        if char == "<":
            return self._scan_marker(text, final)
        self.at += 1
        if char in "{[(":
            self._depth += 1
        elif char in "}])":
            self._depth -= 1
            if self._depth <= 0:
                self.is_complete = True
                return self.at
        elif char == '"' or _opens_string(text, self.at - 1):
            self._quote = char
        return _CONTINUE

    def _scan_marker(self, text: str, final: bool) -> int:
        for mark in _STRING_MARKS:
            if text.startswith(mark, self.at):
                self._quote = mark
                self.at += len(mark)
                return _CONTINUE
        if match_stop(text, self.at):
            return self.at
        left = text[self.at : self.at + MAX_MARKER_CHARACTERS]
        if not final and (may_become_stop(text, self.at) or any(mark.startswith(left) for mark in _STRING_MARKS)):
            return _WAIT
        self.at += 1
        return _CONTINUE


def _opens_string(text: str, at: int) -> bool:
    """Whether a single quote begins a string here, rather than being an apostrophe."""
    before = text[max(0, at - _LOOK_BACK_CHARACTERS) : at].rstrip()
    return not before or before[-1] in "{[(,:="
