"""Reads a reply as it comes: what is plain goes through at once, what may be a call is held until that is decided.

How the folder fits together, from what is told down to what is data:

- `reader` has plain text and sees where it ends; below it are the other modes: `marked` (behind a marker, a header or a
  label), `holding` (JSON, Python and fences that may be calls), `answering` (the seed protocol's answer), `flowing` (code,
  reasoning), all on one state in `machine`. `output` collects what is told and makes the calls; `reading` has the classes that come out.
- `section` reads what stands behind a marker; `held` and `shapes` say what JSON may mean; `tagged`, `pythonic`, `react`,
  `headers` and `minimax_m3` are ways of writing; `brackets` finds where a value ends.
- `provenance` decides whether a call is made or shown, by the words in `cues`.
- `arguments`, `lenient_json` and `by_schema` read arguments; `names` finds the tool that is meant.
- `markers` and `aliases` are data: a new family is a line there, a new way of writing one small file.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from opposable.domain.tools import new_call_id
from opposable.parsers import quotation as provenance
from opposable.parsers import react
from opposable.parsers.bracket_scanner import BracketScan
from opposable.parsers.marker_aliases import create_translator
from opposable.parsers.marker_states import MarkerStates
from opposable.parsers.markers import (
    HEADER_MARKERS,
    IGNORED_MARKERS,
    LINE_OPENERS,
    MAX_MARKER_CHARACTERS,
    OPENERS,
    QUOTED_ELEMENTS,
    TAGGED_CALL_STARTS,
    THINKING_ENDS,
    THINKING_MARKERS,
    get_prefixes,
)
from opposable.parsers.parse_result import ParseResult, ParserEvent
from opposable.parsers.passthrough_states import ANY_THINKING_END
from opposable.parsers.state_machine import (
    INLINE_MARKER_PREFIXES,
    SPECIAL_TEXT_PATTERN,
    WHITESPACE_PATTERN,
    WORD_PATTERN,
    find_partial_marker,
    skip_whitespace,
)
from opposable.parsers.tool_names import ToolLike

_TRIGGER_CHARACTERS = re.compile(r"[\n`<\[\]◁]")
_LINE_STARTS = (
    *LINE_OPENERS,
    "Action:",
    "**Action:**",
    "**Action**:",
    "Action：",
    ">>>",
    "to=",
)
_LINE_START_PREFIXES = get_prefixes(_LINE_STARTS)
_FUNCTIONARY_CALL = re.compile(r">>>(?P<name>[\w.\-]{1,128})\n")


def parse(text: str, tools: Sequence[ToolLike], truncated: bool = False, thinking: bool = False) -> ParseResult:
    """Read a whole reply.

    `tools` are the tools offered: only these can be called. `truncated` says that the model was stopped by its token
    limit: then nothing unfinished becomes a call. `thinking` says that the prompt had already opened a thinking
    block. Never raises; takes time in proportion to the text.
    """
    reader = StreamParser(tools, thinking)
    reader.feed(text)
    return reader.close(truncated)


class StreamParser(MarkerStates):
    """Reads a reply in pieces, cut anywhere; what comes out is the same however it is cut.

    `feed` gives the parts that the piece made certain. After `close`, `rest` holds the last parts. The calls of the
    reading are the ones to act on: parts are for showing what happens. `aliases` gives markers of a family that the
    reader does not know, with what they mean (see `aliases_of`).
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
        """The parts that this piece of the reply made certain."""
        if self._is_plain_text and not _TRIGGER_CHARACTERS.search(delta):
            return (self._emitter.emit_plain_text(delta),) if delta else ()
        buffer, self._buffer = self._buffer, ""
        buffer += self._translator.feed(delta)  # on a local name, so that CPython extends the text in place
        self._buffer = buffer
        del buffer
        self._advance(final=False)
        return self._emitter.take_events()

    def close(self, truncated: bool = False) -> ParseResult:
        """All that was read. `truncated` says that the model was stopped by its token limit."""
        self._truncated = truncated
        self._buffer += self._translator.close()
        self._advance(final=True)
        self.final_events = self._emitter.take_events()
        return self._emitter.build_result()

    def _parse_text(self, final: bool) -> bool:
        """Text for the user, up to what may be more than text. True where there is more to do."""
        text, at = self._buffer, self._at
        if at >= len(text):
            return False
        if self._emitter.is_line_blank:
            start = skip_whitespace(text, at)
            if start >= len(text):
                return self._emit_until(start)
            if (step := self._parse_line_start(text, start, final)) is not None:
                return step
            at = start
        found = SPECIAL_TEXT_PATTERN.search(text, at)
        if found is None:
            return self._emit_until(len(text) if final else find_partial_marker(text, at, INLINE_MARKER_PREFIXES))
        if found[0] == "\n":
            blank = WHITESPACE_PATTERN.match(text, found.start())
            return self._emit_until(blank.end() if blank else found.end())
        if found.start() > self._at:
            self._emit_until(found.start())
        if not final and len(text) - self._at < MAX_MARKER_CHARACTERS and text[self._at :] in INLINE_MARKER_PREFIXES:
            return False
        return self._enter_backticks(final) if found[0] == "`" else self._parse_marker(found[0], final)

    def _parse_line_start(self, text: str, start: int, final: bool) -> bool | None:
        """What can only begin at the beginning of a line; None where nothing does, False to wait."""
        if text[start] not in self._line_start_characters or not self._tools:
            return None
        if text[start] == "-" and text[start + 1 : start + 2] not in (">", ""):  # an item of a list
            return None
        left = text[start : start + MAX_MARKER_CHARACTERS]
        if not final and left in _LINE_START_PREFIXES:
            return False
        if self._emitter.has_no_text and left.startswith("to="):
            return self._enter_header(start)
        if left.startswith(LINE_OPENERS):
            return self._enter_section(start, next(opener for opener in LINE_OPENERS if left.startswith(opener)))
        if left.startswith(">>>"):
            return self._parse_functionary(text, start, final)
        if text[start] in "{[" and not self._marker_may_begin(text, start, final):
            return self._enter_brackets(text, start, final)
        if react.is_action_start(text, start):
            return self._enter_react(start)
        return self._enter_named_call(text, start, final)

    def _parse_functionary(self, text: str, start: int, final: bool) -> bool | None:
        found = _FUNCTIONARY_CALL.match(text, start)
        if found is None:
            return None if final or "\n" in text[start : start + 140] or len(text) - start > 140 else False
        if found["name"] == "all":
            self._at = found.end()
            self._emitter.mark_gap()
            return True
        if found.end() >= len(text) and not final:
            return False
        if self._tools.find(found["name"])[0] is None and not text.startswith("{", found.end()):
            return None
        return self._enter_section(start, ">>>")

    def _enter_named_call(self, text: str, start: int, final: bool) -> bool | None:
        """A tool's bare name at the very beginning: `f(x=1)`, `f[ARGS]{…}`, or `f` with its JSON on the next line."""
        word = WORD_PATTERN.match(text, start)
        if word is None:
            return None
        if word.end() >= len(text) and not final:
            return False if self._tools.may_start_name(word[0]) else None
        if self._tools.find(word[0])[0] is None:
            return None
        left = text[word.end() : word.end() + 8]
        if left.startswith("[ARGS]"):
            return self._enter_section(start, "")
        if not final and "[ARGS]".startswith(left):
            return False
        if self._is_addressed_to_user:
            return None
        if left.startswith("(") and (
            self._emitter.has_no_text or provenance.announces_call(self._emitter.get_preceding_text())
        ):
            self._emit_whitespace_until(start)
            self._start, self._bracket_scan = start, BracketScan(word.end())
            self._state = self._buffer_brackets
            return True
        if self._emitter.has_no_text and left.startswith(("\n", "\r\n")):
            after = skip_whitespace(text, word.end())
            if after >= len(text) and not final:
                return False
            if text.startswith("{", after):
                return self._enter_section(start, "")
        return None

    def _parse_marker(self, marker: str, final: bool) -> bool:
        at = self._at
        if marker in THINKING_MARKERS:
            return self._enter_thinking_block(marker)
        if marker in THINKING_ENDS or (marker in THINKING_MARKERS.values() and self._has_seen_thinking):
            return self._leave_thinking(marker, final)
        if marker in HEADER_MARKERS:
            return self._enter_header(at)
        if marker in QUOTED_ELEMENTS:
            self._closer = QUOTED_ELEMENTS[marker]
            self._state = self._pass_quotation
            return self._emit_until(at + len(marker))
        if marker in IGNORED_MARKERS and marker not in OPENERS:
            return self._drop_characters(len(marker))
        if not self._tools:
            return self._emit_until(at + len(marker))
        if marker in OPENERS or marker in TAGGED_CALL_STARTS:
            return self._enter_section(at, marker if marker in OPENERS else "")
        return self._drop_characters(len(marker)) if self._emitter.is_line_blank else self._emit_until(at + len(marker))
