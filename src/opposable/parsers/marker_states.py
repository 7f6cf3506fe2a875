"""Parser states entered at a marker, a message header or a ReAct label."""

import re
from itertools import groupby, takewhile
from operator import attrgetter

from opposable.parsers import quotation, react
from opposable.parsers.bracket_scanner import BracketScan
from opposable.parsers.buffering_states import BufferingStates
from opposable.parsers.call_section import MAX_FALLBACKS, CallSection, CallSpan
from opposable.parsers.harmony_headers import MAX_HEADER_CHARACTERS, MESSAGE_MARKER, parse_header
from opposable.parsers.json_calls import RawCall
from opposable.parsers.lenient_json import skip_whitespace
from opposable.parsers.markers import (
    HEADER_MARKERS,
    IGNORED_MARKERS,
    LINE_OPENERS,
    MAX_MARKER_CHARACTERS,
    OPENERS,
    TAGGED_CALL_STARTS,
    THINKING_ENDS,
    THINKING_MARKERS,
    build_alternatives,
    compile_alternatives,
    get_prefixes,
)  # fmt: skip
from opposable.parsers.passthrough_states import (
    ANY_THINKING_END,
    BODY_END_PATTERN,
    BODY_END_PREFIXES,
    MAX_BODY_END_CHARACTERS,
)
from opposable.parsers.state_machine import (
    INLINE_MARKER_PATTERN,
    INLINE_MARKER_PREFIXES,
    find_partial_marker,
)

_THINKING_LITERALS = {
    *OPENERS.keys() - set(LINE_OPENERS),
    *TAGGED_CALL_STARTS,
    *THINKING_ENDS,
    *THINKING_MARKERS.values(),
}
_THINKING_MARKER = compile_alternatives(_THINKING_LITERALS)
_THINKING_MARKER_PREFIXES = get_prefixes(_THINKING_LITERALS)
_ONLY_IGNORED_MARKERS = re.compile(rf"(?:\s|{build_alternatives(IGNORED_MARKERS)})*\Z")


class MarkerStates(BufferingStates):
    """The states for calls announced by a marker, a header or a label."""

    def _enter_section(self, start: int, opener: str) -> bool:
        """Enter a section of calls after the marker `opener` at `start`.

        `opener` is "" if the call has no marker.
        """
        self._emit_until(start)
        marker = OPENERS.get(opener)
        at = start + len(opener) - (marker.shared_characters if marker else 0)
        parser = marker.parser if marker else ("functionary" if opener == ">>>" else "")
        allows_bare_names = marker.allows_bare_names if marker else True
        self._start, self._opener = start, opener
        self._section = CallSection(self._tools, at, parser, allows_bare_names, self._fallback_count >= MAX_FALLBACKS)
        self._state = self._parse_section
        return True

    def _parse_section(self, final: bool) -> bool:
        """Scan a section to its end, then emit or reject its calls."""
        section = self._section
        assert section is not None
        end = section.scan(self._buffer, final)
        if end is None:
            return self._emit_complete_calls(section)
        self._fallback_count += section.fallback_count
        if not section.spans:
            return self._leave_empty_section(section, final and end >= len(self._buffer.rstrip()))
        line_end = self._get_rest_of_line(end, final)
        if line_end is None:
            return False
        raw = self._buffer[self._start : end]
        lead = self._emitter.get_preceding_text()
        is_quoted = self._is_addressed_to_user or self._is_quoted(lead, line_end)
        if is_quoted:
            self._reject_quoted_calls(section.spans, raw)
        else:
            self._emit_calls(section.spans[section.emitted_count :], end)
            self._emitter.mark_gap()
        self._at, self._section, self._state = end, None, self._parse_text
        return True

    def _emit_complete_calls(self, section: CallSection) -> bool:
        """Emit complete calls early if no later text can turn them into a quotation."""
        if section.emitted_count < len(section.spans) and not self._is_addressed_to_user:
            lead = self._emitter.get_preceding_text()
            line = _last_line(lead)
            is_line_complete = not line.strip() or quotation.ends_sentence(line)
            if is_line_complete and not self._is_quoted(lead, ""):
                complete_spans = list(takewhile(lambda span: span.call, section.spans[section.emitted_count :]))
                section.emitted_count += len(complete_spans)
                self._emit_calls(complete_spans, section.at)
        return False

    def _is_quoted(self, lead: str, after: str) -> bool:
        """Return whether calls are quoted rather than made.

        `lead` is the text before the calls; `after` is the text after them on the same line.
        """
        marker = OPENERS.get(self._opener)
        return (
            quotation.is_quoted(lead)
            or quotation.is_mentioned(_last_line(lead), after)
            or (not (marker and marker.is_control_token) and quotation.is_indented_code(lead))
        )

    def _emit_calls(self, spans: list[CallSpan], end: int, repair_note: str = "") -> None:
        for (start, stop), same_text in groupby(spans, key=attrgetter("start", "end")):
            raw = self._buffer[start:stop] or self._buffer[self._start : end]
            for span in same_text:
                self._emitter.emit_call(span, raw, self._truncated, repair_note)

    def _reject_quoted_calls(self, spans: list[CallSpan], raw: str) -> None:
        for span in spans:
            self._emitter.reject_call(raw, span.call.name if span.call else "", "quoted")
        self._emitter.emit_text(raw)

    def _leave_empty_section(self, section: CallSection, ends_reply: bool) -> bool:
        """Leave a section without calls: drop a control token, emit a tag as text unless it is the whole reply."""
        self._section, self._state = None, self._parse_text
        marker = OPENERS.get(self._opener)
        after = max(section.at, section.start) if section.at > self._start else self._start + 1
        if marker and (marker.is_control_token or (ends_reply and self._emitter.is_empty)):
            return self._drop_characters(after - self._at)
        return self._emit_until(after)

    def _get_rest_of_line(self, end: int, final: bool) -> str | None:
        """Return the rest of the line after `end`, or None if it has not arrived."""
        upcoming = self._buffer[end : end + 80]
        line = upcoming.split("\n", 1)[0]
        if (
            not final
            and line.strip()
            and line.lstrip()[:MAX_MARKER_CHARACTERS] in INLINE_MARKER_PREFIXES
            and "\n" not in upcoming
        ):
            return None
        if line.strip():
            return "" if INLINE_MARKER_PATTERN.match(line.lstrip()) else line
        return line if final or "\n" in upcoming or len(upcoming) >= 80 else None

    def _parse_thinking(self, final: bool) -> bool:
        """Emit reasoning up to its closing marker, or up to a call inside it."""
        text, at = self._buffer, self._at
        match = _THINKING_MARKER.search(text, at)
        start = (
            match.start()
            if match
            else (len(text) if final else find_partial_marker(text, at, _THINKING_MARKER_PREFIXES))
        )
        if start > at:
            self._emitter.emit_thinking(text[at:start])
            self._at = start
        if match is None:
            return False
        if match[0] == self._closer or (self._closer == ANY_THINKING_END and match[0] in THINKING_ENDS):
            self._at = match.end()
            self._state = self._parse_text
            self._emitter.end_thinking()
            return True
        if self._tools and (match[0] in OPENERS or match[0] in TAGGED_CALL_STARTS):
            return self._enter_thinking_section(match[0], start)
        self._emitter.emit_thinking(match[0])
        self._at = match.end()
        return True

    def _enter_thinking_section(self, marker: str, start: int) -> bool:
        """Enter a section of calls inside reasoning."""
        opening = OPENERS.get(marker)
        at = start + (len(marker) - opening.shared_characters if opening else 0)
        self._start, self._opener = start, marker
        self._section = CallSection(
            self._tools,
            at,
            opening.parser if opening else "",
            bool(opening and opening.allows_bare_names),
            markers_end_strings=True,
        )
        self._state = self._parse_thinking_section
        return True

    def _parse_thinking_section(self, final: bool) -> bool:
        """Accept calls in reasoning only if they end the reply and it was never closed."""
        section = self._section
        assert section is not None
        text = self._buffer
        end = section.scan(text, final)
        if end is None:
            return False
        self._section, self._state = None, self._parse_thinking
        marker = OPENERS.get(self._opener)
        tail = self._emitter.get_thinking_tail(80)
        is_control_token = marker is not None and marker.is_control_token
        is_call = is_control_token or not _last_line(tail).strip()
        ends_reply = final and not self._truncated and _ONLY_IGNORED_MARKERS.match(text, end) is not None
        if ends_reply and is_call and section.spans and not quotation.is_quoted(tail):
            self._emit_calls(section.spans, end, "call in thinking that was never closed")
            self._at = len(text)
            return False
        raw = text[self._start : end]
        for span in section.spans:
            if span.call:
                self._emitter.reject_call(raw, span.call.name, "in_thinking")
        opener_end = self._start + len(self._opener)
        stop = max(end, opener_end)
        if not section.spans and (closer_at := text.find(self._closer, opener_end, stop)) >= 0:
            stop = closer_at  # the section also reads markers that end a block of reasoning
        self._emitter.emit_thinking(text[self._start : stop])
        self._at = stop
        return True

    def _enter_header(self, start: int) -> bool:
        if self._buffer[self._at : start].strip():
            self._emit_until(start)
        self._at = self._start = start
        self._state = self._parse_header
        return True

    def _parse_header(self, final: bool) -> bool:
        """Parse a harmony message header and enter the state of its body."""
        text, at = self._buffer, self._at
        end = text.find(MESSAGE_MARKER, at, at + MAX_HEADER_CHARACTERS)
        if end < 0:
            if not final and len(text) - at < MAX_HEADER_CHARACTERS:
                return False
            self._state = self._parse_text
            return self._drop_header(text, at)
        header = parse_header(text[at:end])
        self._at = end + len(MESSAGE_MARKER)
        self._is_addressed_to_user = header.body == "text"
        self._state = self._parse_text
        if header.body == "thinking":
            self._state = self._pass_thinking_body
            self._has_seen_thinking = True
        elif header.body == "call" and self._tools:
            self._enter_call_body(header.tool)
        self._emitter.mark_gap()
        return True

    def _drop_header(self, text: str, at: int) -> bool:
        marker = next((marker for marker in HEADER_MARKERS if text.startswith(marker, at)), "")
        return self._drop_characters(len(marker)) if marker else self._emit_until(at + 1)

    def _enter_call_body(self, tool: str) -> None:
        self._header_tool = tool
        self._start = self._search_from = self._at
        self._bracket_scan = None
        self._state = self._parse_call_body

    def _parse_call_body(self, final: bool) -> bool:
        """Parse the body of a message addressed to a tool."""
        text = self._buffer
        self._start = first = skip_whitespace(text, self._start)
        if not final and text[first : first + MAX_BODY_END_CHARACTERS] in BODY_END_PREFIXES:
            return False
        if text[first : first + 1] == "<" and not BODY_END_PATTERN.match(text, first):
            self._at = first
            self._state = self._parse_text
            return True
        if text[first : first + 1] == "{":
            self._bracket_scan = self._bracket_scan or BracketScan(first)
            end = self._bracket_scan.scan(text, final)
        else:
            match = BODY_END_PATTERN.search(text, self._search_from)
            self._search_from = max(self._search_from, len(text) - 12)
            end = match.start() if match else (len(text) if final else None)
        if end is None:
            return False
        self._bracket_scan = None
        raw_arguments = text[first:end]
        span = CallSpan(RawCall(self._header_tool, raw_arguments), first, end, "harmony")
        self._emitter.emit_call(span, text[self._start : end], self._truncated)
        self._at, self._state = end, self._parse_text
        self._emitter.mark_gap()
        return True

    def _enter_react(self, start: int) -> bool:
        self._emit_until(start)
        self._start = start
        self._react_scan = react.ReactScan(start, self._tools)
        self._state = self._parse_react
        return True

    def _parse_react(self, final: bool) -> bool:
        """Parse a ReAct action."""
        scan = self._react_scan
        assert scan is not None
        verdict = scan.scan(self._buffer, final)
        if verdict is None:
            return False
        self._react_scan, self._state = None, self._parse_text
        if verdict == "text":
            return self._emit_until(scan.end)
        if verdict == "label":  # the call follows as JSON, with or without a fence
            self._at = scan.end
            self._emitter.mark_gap()
            return True
        raw = self._buffer[self._start : scan.end]
        raw_arguments = scan.get_raw_arguments()
        is_open_text = isinstance(raw_arguments, dict) and scan.end >= len(self._buffer)
        call = RawCall(scan.name, raw_arguments, repairs=scan.repairs, is_unfinished=is_open_text)
        span = CallSpan(call, self._start, scan.end, "react")
        lead = self._emitter.get_preceding_text()
        self._is_react_quoted = (
            self._is_react_quoted
            or self._is_addressed_to_user
            or quotation.is_quoted(react.remove_thoughts(lead))
            or (scan.lacks_input and not react.begins_with_thought(lead))
        )
        self._at = scan.end
        if self._is_react_quoted:
            self._reject_quoted_calls([span], raw)
            return True
        self._emitter.emit_call(span, raw, self._truncated)
        self._emitter.mark_gap()
        if scan.has_invented_result:
            self._state = self._drop_invented_result
            self._start = self._at
        return True

    def _drop_invented_result(self, final: bool) -> bool:
        """Drop a tool result made up by the model, and everything after it."""
        if not final:
            return False
        text = self._buffer[self._at :]
        if any(label in text for label in ("Action", "行动", "动作", "✿FUNCTION✿")):
            self._emitter.reject_call(text, "", "invented_result")
        self._at = len(self._buffer)
        return False


def _last_line(text: str) -> str:
    return text.rpartition("\n")[2]
