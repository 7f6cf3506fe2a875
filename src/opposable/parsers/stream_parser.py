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
from opposable.parsers.marker_aliases import translation
from opposable.parsers.marker_states import Marked
from opposable.parsers.markers import (
    HEADERS,
    LINE_OPENERS,
    MAX_MARKER,
    NOISE,
    OPENERS,
    QUOTING,
    TAGGED_STEMS,
    THINKING,
    THINKING_ENDS,
    prefixes_of,
)
from opposable.parsers.parse_result import Part, Reading
from opposable.parsers.passthrough_states import ANY_THINKING_END
from opposable.parsers.state_machine import BLANK, MARKUP_PREFIXES, NEXT, WORD, blank_end, without_partial
from opposable.parsers.tool_names import OfferedTool

_TRIGGER = re.compile(r"[\n`<\[\]◁]")
_LINE_STARTS = (
    *LINE_OPENERS,
    "Action:",
    "**Action:**",
    "**Action**:",
    "Action：",
    ">>>",
    "to=",
)
_LINE_START_PREFIXES = prefixes_of(_LINE_STARTS)
_FUNCTIONARY = re.compile(r">>>(?P<name>[\w.\-]{1,128})\n")


def read(text: str, tools: Sequence[OfferedTool], truncated: bool = False, thinking: bool = False) -> Reading:
    """Read a whole reply.

    `tools` are the tools offered: only these can be called. `truncated` says that the model was stopped by its token
    limit: then nothing unfinished becomes a call. `thinking` says that the prompt had already opened a thinking
    block. Never raises; takes time in proportion to the text.
    """
    reader = Reader(tools, thinking)
    reader.feed(text)
    return reader.close(truncated)


class Reader(Marked):
    """Reads a reply in pieces, cut anywhere; what comes out is the same however it is cut.

    `feed` gives the parts that the piece made certain. After `close`, `rest` holds the last parts. The calls of the
    reading are the ones to act on: parts are for showing what happens. `aliases` gives markers of a family that the
    reader does not know, with what they mean (see `aliases_of`).
    """

    def __init__(
        self,
        tools: Sequence[OfferedTool],
        thinking: bool = False,
        new_id: Callable[[], str] = new_call_id,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(tools, new_id, translation(aliases))
        self.rest: tuple[Part, ...] = ()
        if thinking:
            self._think(ANY_THINKING_END)

    def feed(self, piece: str) -> tuple[Part, ...]:
        """The parts that this piece of the reply made certain."""
        if self._plain and not _TRIGGER.search(piece):
            return (self._out.plain(piece),) if piece else ()
        buffer, self._buffer = self._buffer, ""
        buffer += self._translation.feed(piece)  # on a local name, so that CPython extends the text in place
        self._buffer = buffer
        del buffer
        self._run(final=False)
        return self._out.take()

    def close(self, truncated: bool = False) -> Reading:
        """All that was read. `truncated` says that the model was stopped by its token limit."""
        self._truncated = truncated
        self._buffer += self._translation.close()
        self._run(final=True)
        self.rest = self._out.take()
        return self._out.reading()

    def _text(self, final: bool) -> bool:
        """Text for the user, up to what may be more than text. True where there is more to do."""
        text, at = self._buffer, self._at
        if at >= len(text):
            return False
        if self._out.blank:
            start = blank_end(text, at)
            if start >= len(text):
                return self._say_to(start)
            if (step := self._line_start(text, start, final)) is not None:
                return step
            at = start
        found = NEXT.search(text, at)
        if found is None:
            return self._say_to(len(text) if final else without_partial(text, at, MARKUP_PREFIXES))
        if found[0] == "\n":
            blank = BLANK.match(text, found.start())
            return self._say_to(blank.end() if blank else found.end())
        if found.start() > self._at:
            self._say_to(found.start())
        if not final and len(text) - self._at < MAX_MARKER and text[self._at :] in MARKUP_PREFIXES:
            return False
        return self._code_begins(final) if found[0] == "`" else self._markup(found[0], final)

    def _line_start(self, text: str, start: int, final: bool) -> bool | None:
        """What can only begin at the beginning of a line; None where nothing does, False to wait."""
        if text[start] not in self._line_firsts or not self._tools:
            return None
        if text[start] == "-" and text[start + 1 : start + 2] not in (">", ""):  # an item of a list
            return None
        left = text[start : start + MAX_MARKER]
        if not final and left in _LINE_START_PREFIXES:
            return False
        if self._out.silent and left.startswith("to="):
            return self._enter_header(start)
        if left.startswith(LINE_OPENERS):
            return self._enter_section(start, next(opener for opener in LINE_OPENERS if left.startswith(opener)))
        if left.startswith(">>>"):
            return self._functionary(text, start, final)
        if text[start] in "{[" and not self._marker_may_begin(text, start, final):
            return self._brackets_begin(text, start, final)
        if react.begins(text, start):
            return self._enter_react(start)
        return self._name_begins(text, start, final)

    def _functionary(self, text: str, start: int, final: bool) -> bool | None:
        found = _FUNCTIONARY.match(text, start)
        if found is None:
            return None if final or "\n" in text[start : start + 140] or len(text) - start > 140 else False
        if found["name"] == "all":
            self._at = found.end()
            self._out.gap()
            return True
        if found.end() >= len(text) and not final:
            return False
        if self._tools.find(found["name"])[0] is None and not text.startswith("{", found.end()):
            return None
        return self._enter_section(start, ">>>")

    def _name_begins(self, text: str, start: int, final: bool) -> bool | None:
        """A tool's bare name at the very beginning: `f(x=1)`, `f[ARGS]{…}`, or `f` with its JSON on the next line."""
        word = WORD.match(text, start)
        if word is None:
            return None
        if word.end() >= len(text) and not final:
            return False if self._tools.may_begin(word[0]) else None
        if self._tools.find(word[0])[0] is None:
            return None
        left = text[word.end() : word.end() + 8]
        if left.startswith("[ARGS]"):
            return self._enter_section(start, "")
        if not final and "[ARGS]".startswith(left):
            return False
        if self._shown_only:
            return None
        if left.startswith("(") and (self._out.silent or provenance.makes(self._out.lead())):
            self._skip_to(start)
            self._start, self._scan = start, BracketScan(word.end())
            self._mode = self._brackets
            return True
        if self._out.silent and left.startswith(("\n", "\r\n")):
            after = blank_end(text, word.end())
            if after >= len(text) and not final:
                return False
            if text.startswith("{", after):
                return self._enter_section(start, "")
        return None

    def _markup(self, mark: str, final: bool) -> bool:
        at = self._at
        if mark in THINKING:
            return self._thinking_begins(mark)
        if mark in THINKING_ENDS or (mark in THINKING.values() and self._thought):
            return self._thinking_ends(mark, final)
        if mark in HEADERS:
            return self._enter_header(at)
        if mark in QUOTING:
            self._close = QUOTING[mark]
            self._mode = self._quoting
            return self._say_to(at + len(mark))
        if mark in NOISE and mark not in OPENERS:
            return self._drop(len(mark))
        if not self._tools:
            return self._say_to(at + len(mark))
        if mark in OPENERS or mark in TAGGED_STEMS:
            return self._enter_section(at, mark if mark in OPENERS else "")
        return self._drop(len(mark)) if self._out.blank else self._say_to(at + len(mark))
