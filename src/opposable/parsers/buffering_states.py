"""Modes in which text is held because it may be a call without a marker: JSON, Python, fences."""

import re

from opposable.parsers import quotation as provenance
from opposable.parsers.bracket_scanner import BracketScan
from opposable.parsers.call_candidates import ACT_INFO, FENCE_INFO, Held, held_in, may_be_call
from opposable.parsers.final_answer import Answering
from opposable.parsers.markers import CLOSERS, MAX_MARKER, NOISE, OPENERS, TAGGED_STEMS
from opposable.parsers.state_machine import MARKUP, MARKUP_PREFIXES, MAX_INFO, WORD, blank_end

_FENCE_OPEN = re.compile(r"(?P<ticks>`{3,16})[ \t]*(?P<info>[\w.+\-]{0,32})[ \t]*(?P<rest>[^\n`]*)")
_TICKS = re.compile(r"`{1,16}")
_AFTER = re.compile(r"[\s;,\u3000]*")
MAX_AFTER = 240
_PROGRAM_OR_TEXT = frozenset({"python", "py", "text", "plaintext", "txt", "plain"})


class Holding(Answering):
    """Held text: it becomes a call, or is told as it stands."""

    def _brackets_begin(self, text: str, start: int, final: bool) -> bool | None:
        if (
            self._out.silent
            and not self._shown_only
            and (answer := self._answer_begins(text, start, final)) is not None
        ):
            return answer
        verdict = may_be_call(text, start, self._tools)
        if verdict is None and not final:
            return len(text) - start >= MAX_INFO and None
        if verdict is False or self._shown_only:
            return None
        self._skip_to(start)
        self._start, self._scan = start, BracketScan(start)
        self._mode = self._brackets
        return True

    def _brackets(self, final: bool) -> bool:
        """A value that may be a call, held to its end."""
        scan = self._scan
        assert scan is not None
        end = scan.scan(self._buffer, final)
        if end is None:
            return False
        self._scan = None
        raw = self._buffer[self._start : end]
        held = held_in(raw, self._tools)
        if held is None:
            self._mode = self._text
            return self._say_to(end)
        self._pend(held, raw, end, fenced=False)
        return True

    def _code_begins(self, final: bool) -> bool:
        text, at = self._buffer, self._at
        ticks = _TICKS.match(text, at)
        size = ticks.end() - at if ticks else 1
        if not final and at + size >= len(text) and size < 16:
            return False
        if size < 3:
            self._close = "`" * size
            self._mode = self._inline
            return self._say_to(at + size)
        return self._fence_begins(text, at, final)

    def _fence_begins(self, text: str, at: int, final: bool) -> bool:
        opened = _FENCE_OPEN.match(text, at)
        assert opened is not None
        end = opened.end()
        same_line = opened["rest"].lstrip()[:1] in ("{", "[") and opened["rest"].strip()
        if not same_line and end >= len(text) and not final:
            return len(text) - at >= MAX_INFO and self._enter_code(opened["ticks"], end)
        body = opened.start("rest") if same_line else end
        first = blank_end(text, body)
        if first >= len(text) and not final and first - body < MAX_INFO:
            return False
        verdict = self._fence_may_act(text, first, opened, final)
        if verdict is None:
            return False
        if not verdict:
            return self._enter_code(opened["ticks"], end)
        self._info, self._close = opened["info"].lower(), opened["ticks"]
        self._start, self._body, self._scan_from = at, first, first
        self._scan = BracketScan(first) if text[first : first + 1] in ("{", "[") else None
        self._mode = self._fence
        return True

    def _fence_may_act(self, text: str, first: int, opened: re.Match[str], final: bool) -> bool | None:
        """Whether a fence may be a call; None while that is not clear."""
        info = opened["info"].lower()
        if not self._tools or self._shown_only or info not in FENCE_INFO or first >= len(text):
            return False
        if text[first] in "{[" and not self._marker_may_begin(text, first, final):
            verdict = may_be_call(text, first, self._tools)
            return verdict if verdict is not None or not (final or len(text) - first >= MAX_INFO) else final
        if text[first] in "<[]":
            if not final and text[first : first + MAX_MARKER] in MARKUP_PREFIXES:
                return None
            mark = MARKUP.match(text, first)
            return mark is not None and (mark[0] in OPENERS or mark[0] in TAGGED_STEMS)
        if info in ("tool_code", "python", "py", ""):
            word = WORD.match(text, first)
            if word is None:
                return False
            if word.end() >= len(text) and not final:
                return None
            return info == "tool_code" or word[0] == "print" or self._tools.find(word[0])[0] is not None
        return False

    def _fence(self, final: bool) -> bool:
        """A fence that may be a call, held to its end."""
        text = self._buffer
        body_end, end = self._fence_end(text, final)
        if end < 0:
            if not final:
                return False
            body_end = end = len(text)
        self._scan = None
        body = text[self._start : end]
        inner = text[self._body : body_end]
        held = held_in(inner, self._tools, self._info)
        if held is None or (not held.found and not held.answer):
            self._mode = self._text
            return self._say_to(end)
        self._pend(held, body, end, fenced=True)
        return True

    def _fence_end(self, text: str, final: bool) -> tuple[int, int]:
        """Where the fence's body and the fence end; -1 where the end has not come."""
        close = "\n" + self._close
        found = text.find(close, max(self._scan_from, self._start))
        if self._scan is not None:
            value_end = self._scan.scan(text, False)
            if value_end is not None and (found < 0 or value_end <= found):
                after = blank_end(text, value_end)
                if text.startswith(self._close, after):
                    return value_end, after + len(self._close)
        if found >= 0:
            return found, found + len(close)
        self._scan_from = max(self._scan_from, len(text) - len(close) + 1)
        return -1, -1

    def _pend(self, held: Held, raw: str, end: int, fenced: bool) -> None:
        self._pending, self._pending_raw, self._pending_fenced = held, raw, fenced
        self._at = self._start = end
        self._mode = self._after

    def _after(self, final: bool) -> bool:
        """What follows a held call tells whether it was one."""
        text, at = self._buffer, self._at
        found = _AFTER.match(text, at)
        start = found.end() if found else at
        if start >= len(text):
            return self._decide("", same_line=False) if final else False
        if not final and text[start : start + MAX_MARKER] in MARKUP_PREFIXES:
            return False
        mark = MARKUP.match(text, start)
        if mark and (mark[0] in NOISE or mark[0] in CLOSERS):
            self._at = mark.end()
            return True
        if mark or text.startswith("```", start) or (text[start] in "{[" and not self._pending_fenced):
            self._at = start
            return self._decide("", same_line=False)
        if not self._pending_fenced and (follows := self._call_follows(text, start, final)) is not False:
            self._at = start if follows else self._at
            return self._decide("", same_line=False) if follows else False
        paragraph = text.find("\n\n", start)
        if paragraph < 0 and len(text) - start < MAX_AFTER and not final:
            return False
        after = text[start : paragraph if 0 <= paragraph - start < MAX_AFTER else start + MAX_AFTER]
        return self._decide(after, same_line="\n" not in text[at:start])

    def _call_follows(self, text: str, start: int, final: bool) -> bool | None:
        """Whether another call in Python follows; None while that is not clear."""
        word = WORD.match(text, start)
        if word is None:
            return False
        if word.end() >= len(text) and not final:
            return None if self._tools.may_begin(word[0]) else False
        return text.startswith("(", word.end()) and self._tools.find(word[0])[0] is not None

    def _decide(self, after: str, same_line: bool) -> bool:
        held, raw = self._pending, self._pending_raw
        assert held is not None
        self._mode = self._text
        act = self._is_act(self._out.lead(), after, same_line)
        self._pending = None
        if act:
            if held.thinking:
                self._out.think(held.thinking)
            for found in held.found:
                self._out.promote(found, raw, self._truncated)
            self._out.gap()
            if held.answer:
                self._out.say(held.answer)
                self._out.gap()
        else:
            for found in held.found:
                self._out.reject(raw, found.written.name if found.written else "", "quoted")
            self._out.say(raw)
        return True

    def _is_act(self, lead: str, after: str, same_line: bool) -> bool:
        """Whether a held call is the model's act: the reply itself, or led up to and followed by no more than that."""
        before = lead.strip()
        if provenance.explains(after) or provenance.is_shown(before):
            return False
        if self._pending is not None and not self._pending.found:
            return True
        if self._pending_fenced:
            if self._info in _PROGRAM_OR_TEXT and (before or after):
                return provenance.makes(before) and (self._info == "text" or not after)
            return self._info in ACT_INFO or len(before) < provenance.MAX_LEAD or provenance.makes(before)
        if after and same_line:
            return False
        return not before or provenance.makes(before)
