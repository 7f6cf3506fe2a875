"""Reads a reply as it comes: what is plain goes through at once, what may be a call is held until that is decided."""

import re
from collections.abc import Callable, Sequence
from itertools import takewhile
from uuid import uuid4

from opposable.dialects import provenance, react
from opposable.dialects.brackets import BracketScan
from opposable.dialects.headers import MAX_HEADER, MESSAGE, header_of
from opposable.dialects.held import ACT_INFO, FENCE_INFO, Held, held_in, may_be_call
from opposable.dialects.markers import (
    CLOSERS,
    HEADERS,
    MAX_MARKER,
    NOISE,
    OPENERS,
    QUOTING,
    TAGGED_STEMS,
    THINKING,
    THINKING_ENDS,
    one_of,
    pattern_of,
    prefixes_of,
)  # fmt: skip
from opposable.dialects.names import OfferedTool, Tools
from opposable.dialects.output import Output
from opposable.dialects.reading import Part, Reading
from opposable.dialects.section import MAX_FALLBACKS, Found, Section
from opposable.dialects.shapes import RawCall

_TRIGGER = re.compile(r"[\n`<\[\]◁]")
_LITERALS = {
    *OPENERS.keys() - {"functools[", "function call<|role_sep|>"},
    *CLOSERS,
    *NOISE,
    *THINKING,
    *THINKING_ENDS,
    *QUOTING,
    *HEADERS,
    *TAGGED_STEMS,
}
_MARKUP = one_of(_LITERALS)
_MARKUP_PREFIXES = prefixes_of(_LITERALS)
_NEXT = re.compile("[\n`]|" + pattern_of(_LITERALS))
_PARTIAL = re.compile(r"[<\[\]◁f]")
_THOUGHT_MARKUP = one_of({*OPENERS.keys() - {"functools["}, *TAGGED_STEMS, *THINKING_ENDS, *THINKING.values()})
_THOUGHT_PREFIXES = prefixes_of({*OPENERS.keys() - {"functools["}, *TAGGED_STEMS, *THINKING_ENDS, *THINKING.values()})
_BODY_END = re.compile(r"<\|(?:end|return|eot|eom|start|call|im_end|channel)\|>")
_LINE_STARTS = (
    "functools[",
    "function call<|role_sep|>",
    "Action:",
    "**Action:**",
    "**Action**:",
    "Action：",
    ">>>",
    "to=",
)
_LINE_START_PREFIXES = prefixes_of(_LINE_STARTS)
_WORD = re.compile(r"(?:functions\.|tools\.)?[^\W\d][\w.\-]{0,127}")
_BLANK = re.compile(r"[\s\u3000]*")
_FENCE_OPEN = re.compile(r"(?P<ticks>`{3,16})[ \t]*(?P<info>[\w.+\-]{0,32})[ \t]*(?P<rest>[^\n`]*)")
_TICKS = re.compile(r"`{1,16}")
_FUNCTIONARY = re.compile(r">>>(?P<name>[\w.\-]{1,128})\n")
MAX_INFO = 120
MAX_AFTER = 240
_ANY_THINKING_END = "any"


def read(text: str, tools: Sequence[OfferedTool], truncated: bool = False, thinking: bool = False) -> Reading:
    """Read a whole reply.

    `tools` are the tools offered: only these can be called. `truncated` says that the model was stopped by its token
    limit: then nothing unfinished becomes a call. `thinking` says that the prompt had already opened a thinking
    block. Never raises; takes time in proportion to the text.
    """
    reader = Reader(tools, thinking)
    reader.feed(text)
    return reader.close(truncated)


def _new_id() -> str:
    return f"call_{uuid4().hex[:24]}"


class Reader:
    """Reads a reply in pieces, cut anywhere; what comes out is the same however it is cut.

    `feed` gives the parts that the piece made certain. After `close`, `rest` holds the last parts. The calls of the
    reading are the ones to act on: parts are for showing what happens.
    """

    def __init__(
        self, tools: Sequence[OfferedTool], thinking: bool = False, new_id: Callable[[], str] = _new_id
    ) -> None:
        self.rest: tuple[Part, ...] = ()
        self._tools = Tools(tools)
        self._out = Output(self._tools, new_id)
        self._buffer = ""
        self._at = 0
        self._mode: Callable[[bool], bool] = self._text
        self._plain = False
        self._truncated = False
        self._thought = False
        self._shown_only = False
        self._fallbacks = 0
        self._section: Section | None = None
        self._scan: BracketScan | None = None
        self._scan_from = 0
        self._start = self._body = 0
        self._opener = ""
        self._close = ""
        self._info = ""
        self._pending: Held | None = None
        self._pending_raw = ""
        self._pending_fenced = False
        self._react: react.ReactScan | None = None
        self._header_tool = ""
        if thinking:
            self._think(_ANY_THINKING_END)

    def feed(self, piece: str) -> tuple[Part, ...]:
        """The parts that this piece of the reply made certain."""
        if self._plain and not _TRIGGER.search(piece):
            return (self._out.plain(piece),) if piece else ()
        buffer, self._buffer = self._buffer, ""
        buffer += piece  # on a local name, so that CPython extends the text in place
        self._buffer = buffer
        del buffer
        self._run(final=False)
        return self._out.take()

    def close(self, truncated: bool = False) -> Reading:
        """All that was read. `truncated` says that the model was stopped by its token limit."""
        self._truncated = truncated
        self._run(final=True)
        self.rest = self._out.take()
        return self._out.reading()

    def _run(self, final: bool) -> None:
        while self._mode(final):
            pass
        if self._at and self._mode.__name__ in _FLOWING:
            self._buffer = self._buffer[self._at :]
            self._at = 0
        self._plain = not self._buffer and self._mode == self._text and not self._out.blank

    # --- plain text -------------------------------------------------------------------------------------------

    def _text(self, final: bool) -> bool:
        """Text for the user, up to what may be more than text. True where there is more to do."""
        text, at = self._buffer, self._at
        if at >= len(text):
            return False
        if self._out.blank:
            blank = _BLANK.match(text, at)
            start = blank.end() if blank else at
            if start >= len(text):
                return self._say_to(start)
            if (step := self._line_start(text, start, final)) is not None:
                return step
            at = start
        found = _NEXT.search(text, at)
        if found is None:
            return self._say_to(len(text) if final else _without_partial(text, at, _MARKUP_PREFIXES))
        if found[0] == "\n":
            blank = _BLANK.match(text, found.start())
            return self._say_to(blank.end() if blank else found.end())
        if found.start() > self._at:
            self._say_to(found.start())
        if not final and len(text) - self._at < MAX_MARKER and text[self._at :] in _MARKUP_PREFIXES:
            return False
        return self._code_begins(final) if found[0] == "`" else self._markup(found[0], final)

    def _say_to(self, end: int) -> bool:
        """Tell the text before `end`; false where there was none."""
        if end <= self._at:
            return False
        self._out.say(self._buffer[self._at : end])
        self._at = end
        return True

    def _line_start(self, text: str, start: int, final: bool) -> bool | None:
        """What can only begin at the beginning of a line; None where nothing does, False to wait."""
        if not self._tools:
            return None
        left = text[start : start + MAX_MARKER]
        if not final and left in _LINE_START_PREFIXES:
            return False
        if self._out.silent and left.startswith("to="):
            return self._enter_header(start)
        if left.startswith("functools["):
            return self._enter_section(start, "functools[")
        if left.startswith("function call<|role_sep|>"):
            return self._enter_section(start, "function call<|role_sep|>")
        if left.startswith(">>>"):
            return self._functionary(text, start, final)
        if text[start] in "{[" and not self._marker_may_begin(text, start, final):
            return self._brackets_begin(text, start, final)
        if react.begins(text, start):
            return self._enter_react(start)
        return self._name_begins(text, start, final)

    def _marker_may_begin(self, text: str, start: int, final: bool) -> bool:
        if _MARKUP.match(text, start):
            return True
        return not final and text[start : start + MAX_MARKER] in _MARKUP_PREFIXES and len(text) - start > 1

    def _brackets_begin(self, text: str, start: int, final: bool) -> bool | None:
        verdict = may_be_call(text, start, self._tools)
        if verdict is None and not final:
            return len(text) - start >= MAX_INFO and None
        if verdict is False or self._shown_only:
            return None
        self._skip_to(start)
        self._start, self._scan = start, BracketScan(start)
        self._mode = self._brackets
        return True

    def _skip_to(self, start: int) -> None:
        """Tell the white space before something that is held."""
        if start > self._at:
            self._say_to(start)

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
        word = _WORD.match(text, start)
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
        if not self._out.silent or self._shown_only:
            return None
        if left.startswith("("):
            self._skip_to(start)
            self._start, self._scan = start, BracketScan(word.end())
            self._mode = self._brackets
            return True
        if left.startswith(("\n", "\r\n")):
            blank = _BLANK.match(text, word.end())
            after = blank.end() if blank else word.end()
            if after >= len(text) and not final:
                return False
            if text.startswith("{", after):
                return self._enter_section(start, "")
        return None

    # --- markers ----------------------------------------------------------------------------------------------

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

    def _drop(self, size: int) -> bool:
        self._at += size
        self._out.gap()
        return True

    def _enter_section(self, start: int, opener: str) -> bool:
        """Calls begin behind `opener`, which stands at `start` ("" where the call itself does)."""
        self._skip_to(start)
        known = OPENERS.get(opener)
        at = start + len(opener) - (known.keep if known else 0)
        dialect = known.dialect if known else ("functionary" if opener == ">>>" else "")
        naked = known.naked if known else True
        self._start, self._opener = start, opener
        self._section = Section(
            self._tools, at, dialect, naked and opener not in _TAGGED, self._fallbacks >= MAX_FALLBACKS
        )
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
        shown = self._shown_only or provenance.is_shown(lead) or provenance.is_mentioned(_last_line(lead), line_end)
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
            if certain and not provenance.is_shown(lead) and not provenance.is_mentioned(line, ""):
                complete = list(takewhile(lambda found: found.written, section.found[section.told :]))
                section.told += len(complete)
                self._promote(complete, section.at)
        return False

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
        if not final and line.strip() and line.lstrip()[:MAX_MARKER] in _MARKUP_PREFIXES and "\n" not in left:
            return None
        if line.strip():
            return "" if _MARKUP.match(line.lstrip()) else line
        return line if final or "\n" in left or len(left) >= 80 else None

    # --- thinking ---------------------------------------------------------------------------------------------

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

    def _thinking(self, final: bool) -> bool:
        text, at = self._buffer, self._at
        mark = _THOUGHT_MARKUP.search(text, at)
        start = mark.start() if mark else (len(text) if final else _without_partial(text, at, _THOUGHT_PREFIXES))
        if start > at:
            self._out.think(text[at:start])
            self._at = start
        if mark is None:
            return False
        if mark[0] == self._close or (self._close == _ANY_THINKING_END and mark[0] in THINKING_ENDS):
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

    # --- code, and what is only shown ---------------------------------------------------------------------------

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
        blank = _BLANK.match(text, body)
        first = blank.end() if blank else body
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
            if not final and text[first : first + MAX_MARKER] in _MARKUP_PREFIXES:
                return None
            mark = _MARKUP.match(text, first)
            return mark is not None and (mark[0] in OPENERS or mark[0] in TAGGED_STEMS)
        if info in ("tool_code", "python", "py", ""):
            word = _WORD.match(text, first)
            if word is None:
                return False
            if word.end() >= len(text) and not final:
                return None
            return info == "tool_code" or word[0] == "print" or self._tools.find(word[0])[0] is not None
        return False

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

    # --- held text ----------------------------------------------------------------------------------------------

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
                blank = _BLANK.match(text, value_end)
                after = blank.end() if blank else value_end
                if text.startswith(self._close, after):
                    return value_end, after + len(self._close)
        if found >= 0:
            return found, found + len(close)
        self._scan_from = max(self._scan_from, len(text) - len(close) + 1)
        return -1, -1

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
        if not final and text[start : start + MAX_MARKER] in _MARKUP_PREFIXES:
            return False
        mark = _MARKUP.match(text, start)
        if mark and (mark[0] in NOISE or mark[0] in CLOSERS):
            self._at = mark.end()
            return True
        if mark or text.startswith("```", start) or (text[start] in "{[" and not self._pending_fenced):
            self._at = start
            return self._decide("", same_line=False)
        paragraph = text.find("\n\n", start)
        if paragraph < 0 and len(text) - start < MAX_AFTER and not final:
            return False
        after = text[start : paragraph if 0 <= paragraph - start < MAX_AFTER else start + MAX_AFTER]
        return self._decide(after, same_line="\n" not in text[at:start])

    def _decide(self, after: str, same_line: bool) -> bool:
        held, raw = self._pending, self._pending_raw
        assert held is not None
        self._pending, self._mode = None, self._text
        lead = self._out.lead()
        if self._is_act(lead, after, same_line):
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
        if self._pending_fenced:
            if self._info in ("python", "py", "text", "plaintext", "txt", "plain") and (before or after):
                return self._info == "text" and provenance.makes(before)
            return self._info in ACT_INFO or len(before) < provenance.MAX_LEAD or provenance.makes(before)
        if after and same_line:
            return False
        return not before or provenance.makes(before)

    # --- headers and ReAct -----------------------------------------------------------------------------------------

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

    def _thinking_body(self, final: bool) -> bool:
        """Reasoning on a channel of its own, up to the end of its message."""
        text, at = self._buffer, self._at
        found = _BODY_END.search(text, at)
        hold = 0 if found or final else next((n for n in range(min(12, len(text) - at), 0, -1) if text[-n] == "<"), 0)
        end = found.start() if found else len(text) - hold
        self._out.think(text[at:end])
        self._at = end
        if found is None:
            return False
        self._out.thought_ends()
        self._mode = self._text
        return True

    def _begin_call_body(self, tool: str) -> None:
        self._header_tool = tool
        self._start = self._scan_from = self._at
        self._scan = None
        self._mode = self._call_body

    def _call_body(self, final: bool) -> bool:
        """The body of a message that is addressed to a tool."""
        text = self._buffer
        blank = _BLANK.match(text, self._start)
        first = blank.end() if blank else self._start
        if first >= len(text) and not final:
            return False
        if text[first : first + 1] == "<" and not _BODY_END.match(text, first):
            self._at = first
            self._mode = self._text
            return True
        if text[first : first + 1] == "{":
            self._scan = self._scan or BracketScan(first)
            end = self._scan.scan(text, final)
        else:
            found = _BODY_END.search(text, self._scan_from)
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


_TAGGED = frozenset(TAGGED_STEMS)
_NOTHING_MORE = re.compile(rf"(?:\s|{pattern_of(NOISE)})*\Z")
_FLOWING = frozenset({"_text", "_thinking", "_code", "_quoting", "_inline", "_thinking_body"})
"""The modes in which what was told is no longer needed."""
_AFTER = re.compile(r"[\s;,\u3000]*")


def _without_partial(text: str, at: int, prefixes: frozenset[str]) -> int:
    """The end of `text` without what may become a marker."""
    for found in _PARTIAL.finditer(text, max(at, len(text) - MAX_MARKER)):
        if text[found.start() :] in prefixes:
            return found.start()
    return len(text)


def _last_line(text: str) -> str:
    return text.rpartition("\n")[2]
