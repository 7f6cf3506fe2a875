"""Modes behind a marker: sections of calls, calls in thinking, message headers, ReAct."""

import re
from itertools import takewhile

from opposable.parsers import quotation as provenance
from opposable.parsers import react
from opposable.parsers.bracket_scanner import BracketScan
from opposable.parsers.buffering_states import Holding
from opposable.parsers.call_section import MAX_FALLBACKS, Found, Section
from opposable.parsers.harmony_headers import MAX_HEADER, MESSAGE, header_of
from opposable.parsers.json_calls import RawCall
from opposable.parsers.markers import (
    HEADERS,
    LINE_OPENERS,
    MAX_MARKER,
    NOISE,
    OPENERS,
    TAGGED_STEMS,
    THINKING,
    THINKING_ENDS,
    one_of,
    pattern_of,
    prefixes_of,
)  # fmt: skip
from opposable.parsers.passthrough_states import ANY_THINKING_END, BODY_END
from opposable.parsers.state_machine import MARKUP, MARKUP_PREFIXES, blank_end, without_partial

_THOUGHT_LITERALS = {
    *OPENERS.keys() - set(LINE_OPENERS),
    *TAGGED_STEMS,
    *THINKING_ENDS,
    *THINKING.values(),
}
_THOUGHT_MARKUP = one_of(_THOUGHT_LITERALS)
_THOUGHT_PREFIXES = prefixes_of(_THOUGHT_LITERALS)
_NOTHING_MORE = re.compile(rf"(?:\s|{pattern_of(NOISE)})*\Z")


class Marked(Holding):
    """Calls that a marker, a header or a label announces."""

    def _enter_section(self, start: int, opener: str) -> bool:
        """Calls begin behind `opener`, which stands at `start` ("" where the call itself does)."""
        self._skip_to(start)
        known = OPENERS.get(opener)
        at = start + len(opener) - (known.keep if known else 0)
        dialect = known.dialect if known else ("functionary" if opener == ">>>" else "")
        naked = known.naked if known else True
        self._start, self._opener = start, opener
        self._section = Section(self._tools, at, dialect, naked, self._fallbacks >= MAX_FALLBACKS)
        self._mode = self._in_section
        return True

    def _in_section(self, final: bool) -> bool:
        section = self._section
        assert section is not None
        end = section.scan(self._buffer, final)
        if end is None:
            return self._told_early(section)
        self._fallbacks += section.fallbacks
        if not section.found:
            return self._no_section(section)
        line_end = self._rest_of_line(end, final)
        if line_end is None:
            return False
        raw = self._buffer[self._start : end]
        lead = self._out.lead()
        shown = self._shown_only or self._is_shown(lead, line_end)
        if shown:
            self._reject_shown(section.found, raw)
        else:
            self._promote(section.found[section.told :], end)
            self._out.gap()
        self._at, self._section, self._mode = end, None, self._text
        return True

    def _told_early(self, section: Section) -> bool:
        """Calls that are complete are told at once where nothing that may follow can make them a quotation."""
        if section.told < len(section.found) and not self._shown_only:
            lead = self._out.lead()
            line = _last_line(lead)
            certain = not line.strip() or provenance.ends_sentence(line)
            if certain and not self._is_shown(lead, ""):
                complete = list(takewhile(lambda found: found.written, section.found[section.told :]))
                section.told += len(complete)
                self._promote(complete, section.at)
        return False

    def _is_shown(self, lead: str, after: str) -> bool:
        """Whether calls behind `lead`, with `after` behind them on their line, are shown rather than made."""
        known = OPENERS.get(self._opener)
        return (
            provenance.is_shown(lead)
            or provenance.is_mentioned(_last_line(lead), after)
            or (not (known and known.control) and provenance.is_indented_code(lead))
        )

    def _promote(self, calls: list[Found], end: int) -> None:
        for found in calls:
            raw = self._buffer[found.start : found.end] or self._buffer[self._start : end]
            self._out.promote(found, raw, self._truncated)

    def _reject_shown(self, found: list[Found], raw: str) -> None:
        for one in found:
            self._out.reject(raw, one.written.name if one.written else "", "quoted")
        self._out.say(raw)

    def _no_section(self, section: Section) -> bool:
        """Behind the marker stands no call: a control token is dropped, a tag is text."""
        self._section, self._mode = None, self._text
        known = OPENERS.get(self._opener)
        after = max(section.at, section.start) if section.at > self._start else self._start + 1
        if known and known.control:
            return self._drop(after - self._at)
        return self._say_to(after)

    def _rest_of_line(self, end: int, final: bool) -> str | None:
        """What stands behind `end` on its line, as far as it is there; None where nothing is there yet."""
        left = self._buffer[end : end + 80]
        line = left.split("\n", 1)[0]
        if not final and line.strip() and line.lstrip()[:MAX_MARKER] in MARKUP_PREFIXES and "\n" not in left:
            return None
        if line.strip():
            return "" if MARKUP.match(line.lstrip()) else line
        return line if final or "\n" in left or len(left) >= 80 else None

    def _thinking(self, final: bool) -> bool:
        text, at = self._buffer, self._at
        mark = _THOUGHT_MARKUP.search(text, at)
        start = mark.start() if mark else (len(text) if final else without_partial(text, at, _THOUGHT_PREFIXES))
        if start > at:
            self._out.think(text[at:start])
            self._at = start
        if mark is None:
            return False
        if mark[0] == self._close or (self._close == ANY_THINKING_END and mark[0] in THINKING_ENDS):
            self._at = mark.end()
            self._mode = self._text
            self._out.thought_ends()
            return True
        if self._tools and (mark[0] in OPENERS or mark[0] in TAGGED_STEMS):
            return self._call_in_thought(mark[0], start)
        self._out.think(mark[0])
        self._at = mark.end()
        return True

    def _call_in_thought(self, mark: str, start: int) -> bool:
        known = OPENERS.get(mark)
        at = start + (len(mark) - known.keep if known else 0)
        self._start, self._opener = start, mark
        self._section = Section(self._tools, at, known.dialect if known else "", bool(known and known.naked), hard=True)
        self._mode = self._in_thought_section
        return True

    def _in_thought_section(self, final: bool) -> bool:
        """A call inside thinking is one only where the reply ends with it and the thinking was never closed."""
        section = self._section
        assert section is not None
        text = self._buffer
        end = section.scan(text, final)
        if end is None:
            return False
        self._section, self._mode = None, self._thinking
        known = OPENERS.get(self._opener)
        tail = self._out.thinking_tail(80)
        acts = (known is not None and known.control) or not tail.rpartition("\n")[2].strip()
        whole = final and _NOTHING_MORE.match(text, end) is not None
        if whole and acts and not self._truncated and section.found and not provenance.is_shown(tail):
            for found in section.found:
                self._out.promote(found, text[self._start : end], False, "call in thinking that was never closed")
            self._at = len(text)
            return False
        for found in section.found:
            if found.written:
                self._out.reject(text[self._start : end], found.written.name, "in_thinking")
        stop = max(end, self._start + len(self._opener)) if section.found else self._start + len(self._opener)
        self._out.think(text[self._start : stop])
        self._at = stop
        return True

    def _enter_header(self, start: int) -> bool:
        self._skip_to(start) if self._buffer[self._at : start].strip() else None
        self._at = self._start = start
        self._mode = self._header
        return True

    def _header(self, final: bool) -> bool:
        text, at = self._buffer, self._at
        end = text.find(MESSAGE, at, at + MAX_HEADER)
        if end < 0:
            if not final and len(text) - at < MAX_HEADER:
                return False
            self._mode = self._text
            return self._drop_header(text, at)
        header = header_of(text[at:end])
        self._at = end + len(MESSAGE)
        self._shown_only = header.body == "text"
        self._mode = self._text
        if header.body == "thinking":
            self._mode = self._thinking_body
            self._thought = True
        elif header.body == "call" and self._tools:
            self._begin_call_body(header.tool)
        self._out.gap()
        return True

    def _drop_header(self, text: str, at: int) -> bool:
        mark = next((mark for mark in HEADERS if text.startswith(mark, at)), "")
        return self._drop(len(mark)) if mark else self._say_to(at + 1)

    def _begin_call_body(self, tool: str) -> None:
        self._header_tool = tool
        self._start = self._scan_from = self._at
        self._scan = None
        self._mode = self._call_body

    def _call_body(self, final: bool) -> bool:
        """The body of a message that is addressed to a tool."""
        text = self._buffer
        first = blank_end(text, self._start)
        if first >= len(text) and not final:
            return False
        if text[first : first + 1] == "<" and not BODY_END.match(text, first):
            self._at = first
            self._mode = self._text
            return True
        if text[first : first + 1] == "{":
            self._scan = self._scan or BracketScan(first)
            end = self._scan.scan(text, final)
        else:
            found = BODY_END.search(text, self._scan_from)
            self._scan_from = max(self._scan_from, len(text) - 12)
            end = found.start() if found else (len(text) if final else None)
        if end is None:
            return False
        self._scan = None
        written = text[first:end]
        found_call = Found(RawCall(self._header_tool, written), first, end, "harmony")
        self._out.promote(found_call, text[self._start : end], self._truncated)
        self._at, self._mode = end, self._text
        self._out.gap()
        return True

    def _enter_react(self, start: int) -> bool:
        self._skip_to(start)
        self._start = start
        self._react = react.ReactScan(start, self._tools)
        self._mode = self._in_react
        return True

    def _in_react(self, final: bool) -> bool:
        scan = self._react
        assert scan is not None
        verdict = scan.scan(self._buffer, final)
        if verdict is None:
            return False
        self._react, self._mode = None, self._text
        if verdict == "text":
            return self._say_to(scan.end)
        if verdict == "label":  # the call itself follows as JSON, with or without a fence
            self._at = scan.end
            self._out.gap()
            return True
        raw = self._buffer[self._start : scan.end]
        found = Found(RawCall(scan.name, scan.written(), repairs=scan.repairs), self._start, scan.end, "react")
        if self._shown_only or provenance.is_shown(react.without_thoughts(self._out.lead())):
            self._reject_shown([found], raw)
        else:
            self._out.promote(found, raw, self._truncated)
            self._out.gap()
        self._at = scan.end
        if scan.invented:
            self._mode = self._invented
            self._start = self._at
        return True

    def _invented(self, final: bool) -> bool:
        """A tool result the model made up, and all that follows from it."""
        if not final:
            return False
        text = self._buffer[self._at :]
        if "Action" in text:
            self._out.reject(text, "", "invented_result")
        self._at = len(self._buffer)
        return False


def _last_line(text: str) -> str:
    return text.rpartition("\n")[2]
