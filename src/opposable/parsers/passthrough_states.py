"""Parser states that emit text as it arrives: code, quotations, reasoning."""

from opposable.parsers.markers import THINKING_MARKERS, compile_alternatives, get_prefixes
from opposable.parsers.state_machine import StateMachine

ANY_THINKING_END = "any"
_BODY_ENDS = [f"<|{end}|>" for end in ("end", "return", "eot", "eom", "start", "call", "im_end", "channel")]
BODY_END_PATTERN = compile_alternatives(_BODY_ENDS)
BODY_END_PREFIXES = get_prefixes(_BODY_ENDS) | {""}
MAX_BODY_END_CHARACTERS = max(map(len, _BODY_ENDS))


class PassthroughStates(StateMachine):
    """The states for code, quoted elements, and reasoning in a harmony message."""

    def _enter_code(self, ticks: str, end: int) -> bool:
        """Enter a code fence that is not a call."""
        self._closer = ticks
        self._state = self._pass_until_closer
        return self._emit_until(end)

    def _pass_until_closer(self, final: bool) -> bool:
        """Emit a code fence or a quoted element unchanged, up to and including its closing mark."""
        text, at, closer = self._buffer, self._at, self._closer
        end = text.find(closer, at)
        if end >= 0:
            self._state = self._parse_text
            return self._emit_until(end + len(closer))
        partial_size = (
            0
            if final
            else next((n for n in range(min(len(closer) - 1, len(text) - at), 0, -1) if text.endswith(closer[:n])), 0)
        )
        self._emit_until(len(text) - partial_size)
        return False

    def _pass_inline_code(self, final: bool) -> bool:
        """Emit inline code unchanged, up to its closing backticks or the end of the line."""
        text, at = self._buffer, self._at
        line = text.find("\n", at)
        end = text.find(self._closer, at, line if line >= 0 else len(text))
        if end >= 0:
            self._state = self._parse_text
            return self._emit_until(end + len(self._closer))
        if line >= 0:
            self._state = self._parse_text
            return self._emit_until(line) if line > at else True
        partial_size = 0 if final or len(self._closer) == 1 or not text.endswith("`") else 1
        self._emit_until(len(text) - partial_size)
        return False

    def _enter_thinking_block(self, marker: str) -> bool:
        if not self._emitter.is_line_blank and not marker.startswith("<|"):
            return self._emit_until(self._at + len(marker))
        self._at += len(marker)
        self._enter_thinking(THINKING_MARKERS[marker])
        return True

    def _enter_thinking(self, closer: str) -> None:
        self._closer = closer
        self._has_seen_thinking = True
        self._state = self._parse_thinking

    def _leave_thinking(self, marker: str, final: bool) -> bool:
        """Leave reasoning; if no marker opened it, the prompt had."""
        text, at = self._buffer, self._at
        after = at + len(marker)
        if after >= len(text) and not final:
            return False
        if not self._has_seen_thinking:
            line = self._emitter.get_preceding_text().rpartition("\n")[2]
            if any(opener in line for opener, closer in THINKING_MARKERS.items() if closer == marker):
                return self._emit_until(after)  # the line mentions both markers
            before = self._emitter.get_text_tail(1)
            if before in " \"'“(" and before and text[after : after + 1] in " .,;:!?\"'”)" and text[after : after + 1]:
                return self._emit_until(after)
            self._emitter.reclassify_text_as_thinking()
            self._has_seen_thinking = True
        self._at = after
        self._emitter.end_thinking()
        return True

    def _pass_thinking_body(self, final: bool) -> bool:
        """Emit the reasoning of a harmony message, up to the end of the message."""
        text, at = self._buffer, self._at
        match = BODY_END_PATTERN.search(text, at)
        partial_size = (
            0 if match or final else next((n for n in range(min(12, len(text) - at), 0, -1) if text[-n] == "<"), 0)
        )
        end = match.start() if match else len(text) - partial_size
        self._emitter.emit_thinking(text[at:end])
        self._at = end
        if match is None:
            return False
        self._emitter.end_thinking()
        self._state = self._parse_text
        return True
