"""Modes in which text goes through as it comes: code, what is only shown, reasoning."""

import re

from opposable.parsers.markers import THINKING
from opposable.parsers.state_machine import Machine

ANY_THINKING_END = "any"
BODY_END = re.compile(r"<\|(?:end|return|eot|eom|start|call|im_end|channel)\|>")


class Flowing(Machine):
    """Code, what is only shown, and reasoning on a channel of its own."""

    def _enter_code(self, ticks: str, end: int) -> bool:
        self._close = ticks
        self._mode = self._code
        return self._say_to(end)

    def _code(self, final: bool) -> bool:
        """A fence that shows code: it goes through as it is."""
        return self._through(self._close, final)

    def _quoting(self, final: bool) -> bool:
        """An element that shows or repeats something: it goes through as it is."""
        return self._through(self._close, final)

    def _through(self, close: str, final: bool) -> bool:
        text, at = self._buffer, self._at
        end = text.find(close, at)
        if end >= 0:
            self._mode = self._text
            return self._say_to(end + len(close))
        keep = (
            0
            if final
            else next((n for n in range(min(len(close) - 1, len(text) - at), 0, -1) if text.endswith(close[:n])), 0)
        )
        if len(text) - keep > at:
            self._say_to(len(text) - keep)
        return False

    def _inline(self, final: bool) -> bool:
        """Code in a line: it goes through as it is, up to its backticks or the end of the line."""
        text, at = self._buffer, self._at
        line = text.find("\n", at)
        end = text.find(self._close, at, line if line >= 0 else len(text))
        if end >= 0:
            self._mode = self._text
            return self._say_to(end + len(self._close))
        if line >= 0:
            self._mode = self._text
            return self._say_to(line) if line > at else True
        keep = 0 if final or len(self._close) == 1 or not text.endswith("`") else 1
        if len(text) - keep > at:
            self._say_to(len(text) - keep)
        return False

    def _thinking_begins(self, mark: str) -> bool:
        if not self._out.blank and not mark.startswith("<|"):
            return self._say_to(self._at + len(mark))
        self._at += len(mark)
        self._think(THINKING[mark])
        return True

    def _think(self, close: str) -> None:
        self._close = close
        self._thought = True
        self._mode = self._thinking

    def _thinking_ends(self, mark: str, final: bool) -> bool:
        """A closing mark without an opening one: if it is the first, the prompt had opened the block."""
        text, at = self._buffer, self._at
        after = at + len(mark)
        if after >= len(text) and not final:
            return False
        if not self._thought:
            before = self._out.tail(1)
            if before in " \"'“(" and before and text[after : after + 1] in " .,;:!?\"'”)" and text[after : after + 1]:
                return self._say_to(after)
            self._out.text_was_thinking()
            self._thought = True
        self._at = after
        self._out.thought_ends()
        return True

    def _thinking_body(self, final: bool) -> bool:
        """Reasoning on a channel of its own, up to the end of its message."""
        text, at = self._buffer, self._at
        found = BODY_END.search(text, at)
        hold = 0 if found or final else next((n for n in range(min(12, len(text) - at), 0, -1) if text[-n] == "<"), 0)
        end = found.start() if found else len(text) - hold
        self._out.think(text[at:end])
        self._at = end
        if found is None:
            return False
        self._out.thought_ends()
        self._mode = self._text
        return True
