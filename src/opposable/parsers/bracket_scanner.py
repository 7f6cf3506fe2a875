"""Finds where a bracketed value ends, in pieces: strings are skipped, and what was looked at is not looked at again."""

import re

from opposable.parsers.markers import MAX_MARKER, may_become_stop, stop_at

_OUTSIDE = re.compile(r"""["'{}\[\]()<]""")
_IN_STRING = {quote: re.compile(rf"[^{quote}\\<]*(?:\\.[^{quote}\\<]*){{0,1000}}", re.DOTALL) for quote in ('"', "'")}
"""The plain part of a string, with what is escaped in it."""
_STRING_MARKS = ("<escape>", '<|"|>')
_LOOK_BACK = 64
_WAIT = -1
_GO_ON = -2


class BracketScan:
    """Scans one value that begins with a bracket at `start`.

    `complete` tells whether the value's own bracket closed it; otherwise a marker, or the end of the text, did. A
    marker inside a string ends the value only if its own end never comes, or at once where `hard` is set.
    """

    __slots__ = ("_depth", "_fallback", "_quote", "at", "complete", "end", "hard", "start")

    def __init__(self, start: int, hard: bool = False) -> None:
        self.start = self.at = start
        self.complete = False
        self.end: int | None = None
        self.hard = hard
        self._depth = 0
        self._quote = ""
        self._fallback = -1

    def scan(self, text: str, final: bool) -> int | None:
        """The position after the value, or None while more text is needed; once found, it stays."""
        if self.end is None:
            self.end = self._end_in(text, final)
        return self.end

    def _end_in(self, text: str, final: bool) -> int | None:
        while self.at < len(text):
            if len(self._quote) > 1:
                step = self._in_marked_string(text)
            elif self._quote:
                step = self._in_string(text, final)
            else:
                step = self._outside(text, final)
            if step >= 0:
                return step
            if step == _WAIT:
                break
        if not final:
            return None
        return self._fallback if self._quote and self._fallback >= 0 else len(text)

    @property
    def fell_back(self) -> bool:
        """Whether the value ended, for want of its own end, at a marker inside a string."""
        return bool(self._quote) and self._fallback >= 0

    def _in_marked_string(self, text: str) -> int:
        end = text.find(self._quote, self.at)
        if end < 0:
            self.at = max(self.at, len(text) - len(self._quote) + 1)
            return _WAIT
        self.at = end + len(self._quote)
        self._quote = ""
        return _GO_ON

    def _in_string(self, text: str, final: bool) -> int:
        found = _IN_STRING[self._quote].match(text, self.at)
        self.at = found.end() if found else self.at
        if self.at >= len(text):
            return _WAIT
        char = text[self.at]
        if char == "\\":
            return _WAIT if self.at + 1 >= len(text) else _GO_ON
        if char == self._quote:
            self._quote = ""
        elif stop_at(text, self.at):
            if self.hard:
                return self.at
            if self._fallback < 0:
                self._fallback = self.at
        elif not final and may_become_stop(text, self.at):
            return _WAIT
        self.at += 1
        return _GO_ON

    def _outside(self, text: str, final: bool) -> int:
        found = _OUTSIDE.search(text, self.at)
        if found is None:
            self.at = len(text)
            return _WAIT
        self.at, char = found.start(), found[0]
        if char == "<":
            return self._marker(text, final)
        self.at += 1
        if char in "{[(":
            self._depth += 1
        elif char in "}])":
            self._depth -= 1
            if self._depth <= 0:
                self.complete = True
                return self.at
        elif char == '"' or _opens_string(text, self.at - 1):
            self._quote = char
        return _GO_ON

    def _marker(self, text: str, final: bool) -> int:
        for mark in _STRING_MARKS:
            if text.startswith(mark, self.at):
                self._quote = mark
                self.at += len(mark)
                return _GO_ON
        if stop_at(text, self.at):
            return self.at
        left = text[self.at : self.at + MAX_MARKER]
        if not final and (may_become_stop(text, self.at) or any(mark.startswith(left) for mark in _STRING_MARKS)):
            return _WAIT
        self.at += 1
        return _GO_ON


def _opens_string(text: str, at: int) -> bool:
    """Whether a single quote begins a string here, rather than being an apostrophe."""
    before = text[max(0, at - _LOOK_BACK) : at].rstrip()
    return not before or before[-1] in "{[(,:="
