"""Parser state for the final answer `{"action": "finish", "content": "…"}`."""

import json
import re

from opposable.parsers.lenient_json import skip_pattern
from opposable.parsers.passthrough_states import PassthroughStates

_HEAD_TOKENS = ("{", '"action"', ":", '"finish"', ",", '"content"', ":", '"')
_MAX_HEAD_CHARACTERS = 160
_WHITESPACE = re.compile(r"[ \t\r\n]*")
_STOP = re.compile(r'["\\]')
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^u])", re.DOTALL)
_MAX_ESCAPE_CHARACTERS = 12
_MAX_END_CHARACTERS = 64
_ANSWER_REST = re.compile(r'"(?:[^"}]|"(?:[^"\\]|\\.)*")*\}')
_MAX_REST_CHARACTERS = 2000
_EXTRA_BRACKETS = re.compile(r"[\s}\]]*")


class FinalAnswerStates(PassthroughStates):
    """The states for a JSON final answer."""

    def _enter_answer(self, text: str, start: int, final: bool) -> bool | None:
        """Enter the answer state at the head of an answer.

        Returns:
            None if there is no head, False if more text is needed.
        """
        at = start
        for token in _HEAD_TOKENS:
            at = skip_pattern(_WHITESPACE, text, at)
            upcoming = text[at : at + len(token)]
            if upcoming != token:
                may_continue = token.startswith(upcoming) and at + len(upcoming) == len(text)
                return False if may_continue and not final and at - start < _MAX_HEAD_CHARACTERS else None
            at += len(token)
        self._emit_until(start)
        self._at = at
        self._state = self._parse_answer
        return True

    def _parse_answer(self, final: bool) -> bool:
        """Emit the text of the answer, up to the closing quotation mark."""
        text = self._buffer
        while True:
            stop = _STOP.search(text, self._at)
            if stop is None:
                return self._emit_until(len(text)) and False
            self._emit_until(stop.start())
            if stop[0] == "\\":
                if not self._emit_escape(text, final):
                    return False
                continue
            ends = self._quote_ends_answer(text, final)
            if ends is None:
                return False
            if ends:
                self._state = self._skip_answer_rest
                return True
            self._emit_until(self._at + 1)

    def _emit_escape(self, text: str, final: bool) -> bool:
        """Emit an escaped character; return False if it is incomplete."""
        if len(text) - self._at < _MAX_ESCAPE_CHARACTERS and not final:
            head = text[self._at : self._at + 2]
            if len(head) < 2 or head == "\\u":
                return False
        match = _ESCAPE.match(text, self._at)
        raw = match[0] if match else text[self._at]
        try:
            character = str(json.loads(f'"{raw}"'))
        except ValueError:
            character = raw
        self._emitter.emit_text(character.encode("utf-8", "replace").decode())
        self._at += len(raw)
        return True

    def _quote_ends_answer(self, text: str, final: bool) -> bool | None:
        """Return whether the quotation mark here ends the answer.

        None if more text is needed.

        It does if a bracket or another field follows, also a bracket after a comma. Models forget to escape quotation
        marks inside an answer: those are emitted as text.
        """
        at = skip_pattern(_WHITESPACE, text, self._at + 1)
        if at >= len(text):
            return True if final or at - self._at > _MAX_END_CHARACTERS else None
        if text[at] == "}":
            return True
        if text[at] != ",":
            return False
        after = text[at + 1 : at + 1 + _MAX_END_CHARACTERS].lstrip(" \t\r\n")
        if not after and not final and len(text) - at <= _MAX_END_CHARACTERS:
            return None
        return after[:1] in ('"', "}")

    def _skip_answer_rest(self, final: bool) -> bool:
        """Skip the JSON after the answer."""
        text = self._buffer
        rest = _ANSWER_REST.match(text, self._at, self._at + _MAX_REST_CHARACTERS)
        if rest is None and not final and len(text) - self._at < _MAX_REST_CHARACTERS:
            return False
        self._at = rest.end() if rest else len(text) if final else self._at + 1
        self._emitter.mark_gap()
        self._state = self._skip_extra_brackets
        return True

    def _skip_extra_brackets(self, final: bool) -> bool:
        """Skip closing brackets after the end of the JSON."""
        self._at = skip_pattern(_EXTRA_BRACKETS, self._buffer, self._at)
        if self._at >= len(self._buffer) and not final:
            return False
        self._state = self._parse_text
        return True
