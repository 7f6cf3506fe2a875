"""The streaming parser: emits plain text at once and buffers possible calls.

How the modules of this package relate:

- `stream_parser` holds the plain-text state. Its base classes add the other states: `marker_states` (calls announced by
  a marker, a header or a label), `buffering_states` (JSON, Python and code fences that may be calls), `final_answer`
  (the JSON final answer) and `passthrough_states` (code, reasoning). They share one state in `state_machine`.
- `emitter` collects events and creates the calls. `parse_result` has the classes of the result.
- `call_section` parses what follows a marker. `call_candidates` and `json_calls` classify JSON values.
- `tagged_calls`, `pythonic`, `react`, `harmony_headers` and `minimax_m3` each parse one format.
- `bracket_scanner` finds where a bracketed value ends.
- `quotation` decides whether a call is made or only quoted, using the phrases in `quotation_patterns`.
- `arguments`, `lenient_json` and `schema_coercion` parse arguments. `tool_names` resolves tool names.
- `markers` and `marker_aliases` are data: to support a new model family, add a line there.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from opposable.domain.tools import new_call_id
from opposable.parsers import quotation, react
from opposable.parsers.bracket_scanner import BracketScan
from opposable.parsers.lenient_json import skip_whitespace
from opposable.parsers.marker_aliases import create_translator
from opposable.parsers.marker_states import MarkerStates
from opposable.parsers.markers import (
    END_OF_TEXT,
    HEADER_MARKERS,
    IGNORED_MARKERS,
    LINE_OPENERS,
    MAX_MARKER_CHARACTERS,
    OPENERS,
    QUOTED_ELEMENTS,
    ROLE_HEADERS,
    TAGGED_CALL_STARTS,
    THINKING_ENDS,
    THINKING_MARKERS,
    USER_TURNS,
    get_prefixes,
)
from opposable.parsers.parse_result import ParseResult, ParserEvent
from opposable.parsers.passthrough_states import ANY_THINKING_END
from opposable.parsers.state_machine import (
    INLINE_MARKER_PREFIXES,
    MAX_LOOKAHEAD_CHARACTERS,
    SPECIAL_TEXT_PATTERN,
    WORD_PATTERN,
    find_partial_marker,
)
from opposable.parsers.tool_names import ToolLike

_TRIGGER_CHARACTERS = re.compile(r"[\n`<\[\]◁]")
_LINE_STARTS = (
    *LINE_OPENERS,
    *react.LABELS,
    "**Action:**",
    "**Action**:",
    "**Final Answer:**",
    "**Final Answer**:",
    ">>>",
    "to=",
    "~~~",
)
_LINE_START_PREFIXES = get_prefixes(_LINE_STARTS)
_ROLE_HEADER_PREFIXES = get_prefixes(ROLE_HEADERS)
_FUNCTIONARY_CALL = re.compile(r">>>(?P<name>[\w.\-]{1,128})\n")


def parse(text: str | None, tools: Sequence[ToolLike], truncated: bool = False, thinking: bool = False) -> ParseResult:
    """Parse a whole reply. Never raises; linear in the length of the text.

    Args:
        text: The reply. None, as in a message that has calls alone, counts as empty.
        tools: The available tools; only these can be called.
        truncated: Whether the model stopped at its token limit. If so, no unfinished call is repaired.
        thinking: Whether the prompt already opened a thinking block.
    """
    parser = StreamParser(tools, thinking)
    parser.feed(text or "")
    return parser.close(truncated)


class StreamParser(MarkerStates):
    """Parses a reply that arrives in deltas, however the reply is split.

    `feed` returns the events that a delta makes certain. After `close`, `final_events` holds the last ones. Execute the
    calls of the `ParseResult` only; events are for display.

    Args:
        tools: The available tools; only these can be called.
        thinking: Whether the prompt already opened a thinking block.
        new_id: Creates an id for a call that has none.
        aliases: Extra markers, mapped to the markers they stand for (see `aliases_from_template`).
    """

    def __init__(
        self,
        tools: Sequence[ToolLike],
        thinking: bool = False,
        new_id: Callable[[], str] = new_call_id,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(tools, new_id, create_translator(aliases))
        self.final_events: tuple[ParserEvent, ...] = ()
        if thinking:
            self._enter_thinking(ANY_THINKING_END)

    def feed(self, delta: str) -> tuple[ParserEvent, ...]:
        """Parse the next delta and return the events that are now certain."""
        if self._is_plain_text and not _TRIGGER_CHARACTERS.search(delta):
            return (self._emitter.emit_plain_text(delta),) if delta else ()
        buffer, self._buffer = self._buffer, ""
        buffer += self._translator.feed(delta)  # a local variable lets CPython extend the string in place
        self._buffer = buffer
        del buffer
        self._advance(final=False)
        return self._emitter.take_events()

    def close(self, truncated: bool = False) -> ParseResult:
        """Parse the rest of the buffer and return the whole result.

        Args:
            truncated: Whether the model stopped at its token limit.
        """
        self._truncated = truncated
        self._buffer += self._translator.close()
        self._advance(final=True)
        self.final_events = self._emitter.take_events()
        return self._emitter.build_result()

    def _parse_text(self, final: bool) -> bool:
        """Emit text for the user up to the next special character."""
        text, at = self._buffer, self._at
        if at >= len(text):
            return False
        if self._emitter.is_line_blank:
            start = skip_whitespace(text, at)
            if start >= len(text):
                return self._emit_until(start)
            if self._emitter.is_empty and text.startswith(ROLE_HEADERS, start):
                self._at = text.index("\n", start)
                return True
            if (
                self._emitter.is_empty
                and not final
                and text[start : start + MAX_MARKER_CHARACTERS] in _ROLE_HEADER_PREFIXES
            ):
                return False
            if (step := self._parse_line_start(text, start, final)) is not None:
                return step
            at = start
        match = SPECIAL_TEXT_PATTERN.search(text, at)
        if match is None:
            return self._emit_until(len(text) if final else find_partial_marker(text, at, INLINE_MARKER_PREFIXES))
        if match[0] == "\n":
            return self._emit_until(skip_whitespace(text, match.start()))
        self._emit_until(match.start())
        if not final and len(text) - self._at < MAX_MARKER_CHARACTERS and text[self._at :] in INLINE_MARKER_PREFIXES:
            return False
        return self._enter_backticks(final) if match[0] == "`" else self._parse_marker(match[0], final)

    def _parse_line_start(self, text: str, start: int, final: bool) -> bool | None:
        """Enter a state that can only begin at the start of a line.

        Returns:
            None if no such state begins here, False if more text is needed.
        """
        if text[start] not in self._line_start_characters or not self._tools:
            return None
        if text[start] == "-" and text[start + 1 : start + 2] not in (">", ""):  # an item of a list
            return None
        upcoming = text[start : start + MAX_MARKER_CHARACTERS]
        if not final and upcoming in _LINE_START_PREFIXES:
            return False
        if self._emitter.has_no_text and upcoming.startswith("to="):
            return self._enter_header(start)
        if upcoming.startswith(LINE_OPENERS):
            return self._enter_section(start, next(opener for opener in LINE_OPENERS if upcoming.startswith(opener)))
        if upcoming.startswith("~~~"):  # a code fence that no model writes calls in
            return self._enter_code("~~~", start + 3)
        if upcoming.startswith(">>>"):
            return self._parse_functionary(text, start, final)
        if text[start] in "{[" and not self._marker_may_begin(text, start, final):
            return self._enter_brackets(text, start, final)
        if react.is_action_start(text, start):
            return self._enter_react(start)
        if (answer_start := react.match_final_answer(text, start)) is not None:
            return self._enter_final_answer(answer_start)
        return self._enter_named_call(text, start, final)

    def _enter_final_answer(self, start: int) -> bool | None:
        """Enter the answer after its ReAct label: the thoughts before it are reasoning."""
        if not self._emitter.is_empty:
            if self._emitter.has_calls or not react.begins_with_thought(self._emitter.get_text_head()):
                return None
            self._emitter.reclassify_text_as_thinking()
        self._at = start
        self._is_addressed_to_user = True
        return True

    def _parse_functionary(self, text: str, start: int, final: bool) -> bool | None:
        """Enter a call in the Functionary format, `>>>name` on a line of its own."""
        match = _FUNCTIONARY_CALL.match(text, start)
        if match is None:
            return None if final or "\n" in text[start : start + 140] or len(text) - start > 140 else False
        if match["name"] == "all":
            self._at = match.end()
            self._emitter.mark_gap()
            return True
        if match.end() >= len(text) and not final:
            return False
        if self._tools.find(match["name"])[0] is None and not text.startswith("{", match.end()):
            return None
        return self._enter_section(start, ">>>")

    def _enter_named_call(self, text: str, start: int, final: bool) -> bool | None:
        """Enter a call that starts with a bare tool name.

        Forms: `f(x=1)`, `f[ARGS]{…}`, or `f` followed by JSON on the next line.
        """
        word = WORD_PATTERN.match(text, start)
        if word is None:
            return None
        if word.end() >= len(text) and not final:
            return False if self._tools.may_start_name(word[0]) else None
        if self._tools.find(word[0])[0] is None:
            return None
        upcoming = text[word.end() : word.end() + 8]
        if upcoming.startswith("[ARGS]"):
            return self._enter_section(start, "")
        if not final and "[ARGS]".startswith(upcoming):
            return False
        if self._is_addressed_to_user:
            return None
        if upcoming.startswith("(") and (
            self._emitter.has_no_text or quotation.announces_call(self._emitter.get_preceding_text())
        ):
            self._emit_until(start)
            self._start, self._bracket_scan = start, BracketScan(word.end())
            self._state = self._buffer_brackets
            return True
        if self._emitter.has_no_text and upcoming.startswith(("\n", "\r\n")):
            after = skip_whitespace(text, word.end())
            is_near = after - word.end() <= MAX_LOOKAHEAD_CHARACTERS
            if is_near and after >= len(text) and not final:
                return False
            if is_near and text.startswith("{", after):
                return self._enter_section(start, "")
        return None

    def _parse_end_of_text(self, final: bool) -> bool:
        """Drop the token at the end of a text, unless it ends a line that is struck through in HTML."""
        end = self._at + len(END_OF_TEXT)
        is_last = skip_whitespace(self._buffer, end) >= len(self._buffer)
        if is_last and not final:
            return False
        if is_last and not self._emitter.has_calls and "<s>" not in self._emitter.get_preceding_text():
            return self._drop_characters(len(END_OF_TEXT))
        return self._emit_until(end)

    def _parse_marker(self, marker: str, final: bool) -> bool:
        """Handle a marker in the middle of text."""
        at = self._at
        if marker in THINKING_MARKERS:
            return self._enter_thinking_block(marker)
        if marker in THINKING_ENDS or (marker in THINKING_MARKERS.values() and self._has_seen_thinking):
            return self._leave_thinking(marker, final)
        if marker in HEADER_MARKERS:
            return self._enter_header(at)
        if marker == END_OF_TEXT:
            return self._parse_end_of_text(final)
        if marker in QUOTED_ELEMENTS:
            if marker in USER_TURNS and not self._emitter.is_empty:
                end = at + len(marker)
                if end >= len(self._buffer) and not final:
                    return False
                is_turn = self._emitter.is_line_blank or self._buffer.startswith("\n", end)
                self._is_addressed_to_user |= is_turn or self._emitter.get_preceding_text().endswith(END_OF_TEXT)
            self._closer = QUOTED_ELEMENTS[marker]
            self._state = self._pass_until_closer
            return self._emit_until(at + len(marker))
        if marker in IGNORED_MARKERS and marker not in OPENERS:
            after = self._buffer[at + len(marker) : at + len(marker) + 2]
            if len(after) < 2 and not final:
                return False
            is_in_sentence = not self._emitter.is_line_blank and self._emitter.get_preceding_text().endswith(" ")
            if is_in_sentence and after[:1] == " " and after[1:].isalnum():
                return self._emit_until(at + len(marker))
            return self._drop_characters(len(marker))
        if not self._tools:
            return self._emit_until(at + len(marker))
        if marker in OPENERS or marker in TAGGED_CALL_STARTS:
            return self._enter_section(at, marker if marker in OPENERS else "")
        return self._drop_characters(len(marker)) if self._emitter.is_line_blank else self._emit_until(at + len(marker))
