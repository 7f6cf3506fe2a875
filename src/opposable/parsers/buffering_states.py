"""Parser states that buffer possible calls: JSON, Python and code fences."""

import re

from opposable.parsers import quotation
from opposable.parsers.bracket_scanner import BracketScan
from opposable.parsers.call_candidates import (
    CALL_INFO_STRINGS,
    FENCE_INFO_STRINGS,
    CallCandidate,
    classify_candidate,
    may_be_call,
)
from opposable.parsers.final_answer import FinalAnswerStates
from opposable.parsers.lenient_json import skip_pattern, skip_whitespace
from opposable.parsers.markers import CLOSERS, IGNORED_MARKERS, MAX_MARKER_CHARACTERS, OPENERS, TAGGED_CALL_STARTS
from opposable.parsers.state_machine import (
    INLINE_MARKER_PATTERN,
    INLINE_MARKER_PREFIXES,
    MAX_LOOKAHEAD_CHARACTERS,
    WORD_PATTERN,
)

_FENCE_OPEN = re.compile(r"(?P<ticks>`{3,16})[ \t]*(?P<info>[\w.+\-]{0,32})[ \t]*(?P<rest>[^\n`]*)")
_BACKTICKS = re.compile(r"`{1,16}")
_CALL_SEPARATORS = re.compile(r"[\s;,\u3000]*")
_EXTRA_BRACKETS = re.compile(r"(?:\s{0,120}[}\]])+")
MAX_FOLLOWING_CHARACTERS = 240
_CODE_OR_TEXT_FENCES = frozenset({"python", "py", "text", "plaintext", "txt", "plain"})


class BufferingStates(FinalAnswerStates):
    """The states that buffer a possible call, then emit it as a call or as text."""

    def _enter_brackets(self, text: str, start: int, final: bool) -> bool | None:
        """Start buffering a bracketed value; return None if it cannot be a call."""
        if (
            self._emitter.has_no_text
            and not self._is_addressed_to_user
            and (answer := self._enter_answer(text, start, final)) is not None
        ):
            return answer
        may_be = may_be_call(text, start, self._tools)
        if may_be is None and not final:
            return len(text) - start >= MAX_LOOKAHEAD_CHARACTERS and None
        if may_be is False or self._is_addressed_to_user:
            return None
        self._emit_until(start)
        self._start, self._bracket_scan = start, BracketScan(start, needs_own_bracket=True)
        self._state = self._buffer_brackets
        return True

    def _buffer_brackets(self, final: bool) -> bool:
        """Buffer a value that may be a call, up to its end."""
        scan = self._bracket_scan
        assert scan is not None
        end = scan.scan(self._buffer, final)
        if end is None:
            return False
        self._bracket_scan = None
        raw = self._buffer[self._start : end]
        candidate = classify_candidate(raw, self._tools)
        if candidate is None:
            self._state = self._parse_text
            return self._emit_until(end)
        self._set_pending_candidate(candidate, raw, end, is_fenced=False)
        return True

    def _enter_backticks(self, final: bool) -> bool:
        """Enter inline code or a code fence."""
        text, at = self._buffer, self._at
        match = _BACKTICKS.match(text, at)
        count = match.end() - at if match else 1
        if not final and at + count >= len(text) and count < 16:
            return False
        if count < 3:
            self._closer = "`" * count
            self._state = self._pass_inline_code
            return self._emit_until(at + count)
        return self._enter_fence(text, at, final)

    def _enter_fence(self, text: str, at: int, final: bool) -> bool:
        """Enter a code fence: pass it through as code, or buffer it if it may be a call."""
        opened = _FENCE_OPEN.match(text, at)
        assert opened is not None
        end = opened.end()
        same_line = opened["rest"].lstrip()[:1] in ("{", "[") and opened["rest"].strip()
        if not same_line and end >= len(text) and not final:
            return len(text) - at >= MAX_LOOKAHEAD_CHARACTERS and self._enter_code(opened["ticks"], end)
        body = opened.start("rest") if same_line else end
        first = skip_whitespace(text, body)
        if first >= len(text) and not final and first - body < MAX_LOOKAHEAD_CHARACTERS:
            return False
        may_be = self._fence_may_be_call(text, first, opened, final)
        if may_be is None:
            return False
        if not may_be:
            return self._enter_code(opened["ticks"], end)
        self._fence_info, self._closer = opened["info"].lower(), opened["ticks"]
        self._start, self._body_start, self._search_from = at, first, first
        is_bracket = text[first : first + 1] in ("{", "[")
        self._bracket_scan = BracketScan(first, needs_own_bracket=True) if is_bracket else None
        self._state = self._buffer_fence
        return True

    def _fence_may_be_call(self, text: str, first: int, opened: re.Match[str], final: bool) -> bool | None:
        """Return whether a fence may be a call; None if more text is needed."""
        info = opened["info"].lower()
        if not self._tools or self._is_addressed_to_user or info not in FENCE_INFO_STRINGS or first >= len(text):
            return False
        if info in CALL_INFO_STRINGS:
            return True
        if text[first] in "{[" and not self._marker_may_begin(text, first, final):
            verdict = may_be_call(text, first, self._tools)
            return (
                verdict
                if verdict is not None or not (final or len(text) - first >= MAX_LOOKAHEAD_CHARACTERS)
                else final
            )
        if text[first] in "<[]":
            if not final and text[first : first + MAX_MARKER_CHARACTERS] in INLINE_MARKER_PREFIXES:
                return None
            match = INLINE_MARKER_PATTERN.match(text, first)
            return match is not None and (match[0] in OPENERS or match[0] in TAGGED_CALL_STARTS)
        if info in ("python", "py", ""):
            word = WORD_PATTERN.match(text, first)
            if word is None:
                return False
            if word.end() >= len(text) and not final:
                return None
            return word[0] == "print" or self._tools.find(word[0])[0] is not None
        return False

    def _buffer_fence(self, final: bool) -> bool:
        """Buffer a fence that may be a call, up to its end."""
        text = self._buffer
        body_end, end = self._find_fence_end(text, final)
        if end < 0:
            if not final:
                return False
            body_end = end = len(text)
        self._bracket_scan = None
        body = text[self._start : end]
        inner = text[self._body_start : body_end]
        candidate = classify_candidate(inner, self._tools, self._fence_info, is_ended=end > body_end)
        if candidate is None or (not candidate.spans and not candidate.answer):
            self._state = self._parse_text
            return self._emit_until(end)
        self._set_pending_candidate(candidate, body, end, is_fenced=True)
        return True

    def _find_fence_end(self, text: str, final: bool) -> tuple[int, int]:
        """Return where the fence's body and the fence end; -1 if the end has not arrived."""
        close = "\n" + self._closer
        close_at = text.find(close, max(self._search_from, self._start))
        if self._bracket_scan is not None:
            value_end = self._bracket_scan.scan(text, False)
            if value_end is not None and (close_at < 0 or value_end <= close_at):
                value_close = skip_whitespace(text, value_end)
                if text.startswith(self._closer, value_close):
                    return value_end, value_close + len(self._closer)
        if close_at >= 0:
            return close_at, close_at + len(close)
        self._search_from = max(self._search_from, len(text) - len(close) + 1)
        return -1, -1

    def _set_pending_candidate(self, candidate: CallCandidate, raw: str, end: int, is_fenced: bool) -> None:
        self._pending_candidate, self._pending_raw, self._is_pending_fenced = candidate, raw, is_fenced
        self._at = self._start = end
        self._state = self._buffer_following_text

    def _buffer_following_text(self, final: bool) -> bool:
        """Buffer the text after a candidate, which decides whether it is a call."""
        text, at = self._buffer, self._at
        if not self._is_pending_fenced and (extra := _EXTRA_BRACKETS.match(text, at)):
            self._pending_raw += extra[0]
            self._at = at = extra.end()
        start = skip_pattern(_CALL_SEPARATORS, text, at)
        is_far = start - at > MAX_FOLLOWING_CHARACTERS
        if is_far or start >= len(text):
            return self._resolve_candidate("", same_line=False) if final or is_far else False
        if not final and text[start : start + MAX_MARKER_CHARACTERS] in INLINE_MARKER_PREFIXES:
            return False
        marker = INLINE_MARKER_PATTERN.match(text, start)
        if marker and (marker[0] in IGNORED_MARKERS or marker[0] in CLOSERS):
            self._at = marker.end()
            return True
        if marker or text.startswith("```", start) or (text[start] in "{[" and not self._is_pending_fenced):
            self._at = start
            return self._resolve_candidate("", same_line=False)
        if not self._is_pending_fenced and (follows := self._call_follows(text, start, final)) is not False:
            self._at = start if follows else self._at
            return self._resolve_candidate("", same_line=False) if follows else False
        paragraph = text.find("\n\n", start)
        if paragraph < 0 and len(text) - start < MAX_FOLLOWING_CHARACTERS and not final:
            return False
        after = text[
            start : paragraph if 0 <= paragraph - start < MAX_FOLLOWING_CHARACTERS else start + MAX_FOLLOWING_CHARACTERS
        ]
        return self._resolve_candidate(after, same_line="\n" not in text[at:start])

    def _call_follows(self, text: str, start: int, final: bool) -> bool | None:
        """Return whether another call in Python follows; None if more text is needed."""
        word = WORD_PATTERN.match(text, start)
        if word is None:
            return False
        if word.end() >= len(text) and not final:
            return None if self._tools.may_start_name(word[0]) else False
        return text.startswith("(", word.end()) and self._tools.find(word[0])[0] is not None

    def _resolve_candidate(self, after: str, same_line: bool) -> bool:
        """Emit the pending candidate as calls, or as text if it is only quoted."""
        candidate, raw = self._pending_candidate, self._pending_raw
        assert candidate is not None
        self._state = self._parse_text
        is_call = self._is_call(self._emitter.get_preceding_text(), after, same_line)
        self._pending_candidate = None
        if is_call:
            if candidate.thinking:
                self._emitter.emit_thinking(candidate.thinking)
            for span in candidate.spans:
                self._emitter.emit_call(span, raw, self._truncated)
            self._emitter.mark_gap()
            if candidate.answer:
                self._emitter.emit_text(candidate.answer)
                self._emitter.mark_gap()
        else:
            for span in candidate.spans:
                self._emitter.reject_call(raw, span.call.name if span.call else "", "quoted")
            self._emitter.emit_text(raw)
        return True

    def _is_call(self, lead: str, after: str, same_line: bool) -> bool:
        """Return whether a candidate is a call that the model makes.

        That is the case if it is the whole reply, or if the text before and after it only announces it.
        """
        before = lead.strip()
        if quotation.describes_example(after) or quotation.is_quoted(before):
            return False
        if (candidate := self._pending_candidate) is not None and not candidate.spans:
            return bool(candidate.answer) or not self._emitter.has_calls
        if candidate is not None and candidate.is_uncertain and self._emitter.has_calls:
            return False
        if self._is_pending_fenced:
            if self._fence_info in _CODE_OR_TEXT_FENCES and (before or after):
                return quotation.announces_call(before) and (self._fence_info == "text" or not after)
            return (
                self._fence_info in CALL_INFO_STRINGS
                or len(before) < quotation.MAX_LEAD_CHARACTERS
                or quotation.announces_call(before)
            )
        if after and same_line:
            return False
        return not before or quotation.announces_call(before) or (not after and quotation.ends_statement(before))
