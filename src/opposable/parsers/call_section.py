"""Reads what stands behind a call marker: one call or several, in whichever way the family writes them."""

import re
from typing import Protocol

from opposable.parsers import minimax_m3, pythonic
from opposable.parsers.arguments import Arguments
from opposable.parsers.bracket_scanner import BracketScan
from opposable.parsers.json_calls import RawCall, broken_call, shape_of
from opposable.parsers.lenient_json import LenientReader, Repairs, Unreadable, lenient
from opposable.parsers.markers import CLOSERS, FILLERS, LINE_OPENERS, OPENERS, TAGGED_STEMS, one_of, prefixes_of
from opposable.parsers.schema_coercion import Schema
from opposable.parsers.tagged_calls import KEY_VALUE, TaggedScan, family_at, may_become_call
from opposable.parsers.tool_names import Tools

MAX_FALLBACKS = 8
MAX_NAMED = 256
_JOINTS = (
    "<tool_sep>",
    "[ARGS]",
    "[CALL_ID]",
    "<|tool_call_argument_begin|>",
    "<arg_key>",
    *(f"<{bar}tool{gap}sep{bar}>" for bar in "｜|" for gap in ("▁", "_", " ")),
)
_MARK_LITERALS = (set(OPENERS) | CLOSERS | FILLERS) - set(LINE_OPENERS)
_MARKS = one_of(_MARK_LITERALS)
_MARK_PREFIXES = prefixes_of(_MARK_LITERALS)
_BLANK = re.compile(r"[\s\u3000]*")
_BETWEEN = re.compile(r"(?:[\s,;})]|\](?=[^<]))*")
_NAME = re.compile(r":?(?:call:)?(?P<name>[^\s<>\[\]{}()\"'=,;|｜`]{1,128})")
_JOINT = re.compile(r"\s*(?:" + "|".join(re.escape(joint) for joint in _JOINTS) + r")")
_CALL_ID = re.compile(r"\s*\[CALL_ID\](?P<id>[^\[\]\s]{1,64})\s*\[ARGS\]")
_FENCE = re.compile(r"\s*```[\w]*\s*")
_COUNTER = re.compile(r"\A(?P<name>.+):\d+\Z")
_ENDS = tuple(CLOSERS)
_WAIT = -1
_GO_ON = -2


class Written(Protocol):
    """A call as a section hands it on: its name and a way to its arguments."""

    @property
    def name(self) -> str:
        """The tool's name as written."""

    def arguments(self, schema: Schema, truncated: bool) -> Arguments:
        """The arguments, typed by the tool's schema."""


class Found:
    """One thing found in a section: a call, or what could not be read as one (`written` is None)."""

    __slots__ = ("dialect", "end", "id", "start", "written")

    def __init__(self, written: Written | None, start: int, end: int, dialect: str, call_id: str = "") -> None:
        self.written = written
        self.start = start
        self.end = end
        self.dialect = dialect
        self.id = call_id


class Section:
    """A run of calls that begins at `start`, scanned in pieces. `found` fills as calls are complete.

    `told` is for the reader: how many of them it has handed on.
    """

    def __init__(self, tools: Tools, start: int, dialect: str = "", naked: bool = False, hard: bool = False) -> None:
        self.tools = tools
        self.start = self.at = start
        self.dialect = dialect
        self.naked = naked
        self.hard = hard
        self.found: list[Found] = []
        self.told = 0
        self.closed = False
        self.fallbacks = 0
        self._active: BracketScan | TaggedScan | minimax_m3.M3Scan | None = None
        self._item_start = start
        self._name = ""
        self._id = ""
        self._fenced = False

    def scan(self, text: str, final: bool) -> int | None:
        """The position after the section, or None while more text is needed."""
        while True:
            step = self._in_item(text, final) if self._active is not None else self._between(text, final)
            if step == _WAIT:
                return None
            if step != _GO_ON:
                return step

    def _in_item(self, text: str, final: bool) -> int:
        active = self._active
        assert active is not None
        end = active.scan(text, final)
        if end is None:
            return _WAIT
        self._active = None
        self.at = end
        if isinstance(active, BracketScan):
            self._finish_brackets(text, active, end)
        else:
            family = active.tags.dialect if isinstance(active, TaggedScan) else "minimax_m3"
            dialect = self.dialect if self.dialect not in ("", "hermes", "function_calls") else family
            self.found.append(Found(active, self._item_start, end, dialect))
            self.naked = False
        return _GO_ON

    def _finish_brackets(self, text: str, scan: BracketScan, end: int) -> None:
        if scan.fell_back:
            self.fallbacks += 1
            self.hard = self.hard or self.fallbacks >= MAX_FALLBACKS
        value = text[scan.start : end]
        if self._name:
            written: Written = RawCall(self._name, _braced(value, self.dialect), self._id)
            self.found.append(Found(written, self._item_start, end, self.dialect, self._id))
            self._name = self._id = ""
            return
        self._finish_value(value, self._item_start, end)

    def _finish_value(self, value: str, start: int, end: int) -> None:
        python = value[:1] not in ("{", "[") or pythonic.LIST.match(value)
        if python and (calls := pythonic.calls_in(value, self.tools)) is not None:
            self.found.extend(Found(call, start, end, self._called("pythonic")) for call in calls)
            return
        repairs = Repairs()
        try:
            shape = shape_of(lenient(value, repairs), self.tools, marked=True)
        except (Unreadable, RecursionError):
            shape = None
        if shape is None or not shape.calls:
            self.found.append(Found(broken_call(value, self.tools), start, end, self._called("json")))
            return
        for call in shape.calls:
            mended = RawCall(call.name, call.written, call.id, (*repairs, *call.repairs))
            self.found.append(Found(Whole(mended, repairs.unfinished), start, end, self._called("json"), call.id))

    def _called(self, otherwise: str) -> str:
        return self.dialect or otherwise

    def _between(self, text: str, final: bool) -> int:
        """Between calls: a marker, the next call, or the section's end."""
        if self._fenced and not self._leaves_fence(text, final):
            return _WAIT
        at = self._skip_between(text)
        if at >= len(text):
            return self.at if final else _WAIT
        if mark := _MARKS.match(text, at):
            return self._mark(mark[0], at)
        if not final and (text[at : at + 64] in _MARK_PREFIXES or may_become_call(text, at)):
            return _WAIT
        if self._tagged(text, at):
            return _GO_ON
        if self.closed:
            return self.at
        if text[at] in "{[":
            self._item_start = at
            self._active = BracketScan(at, self.hard)
            return _GO_ON
        if self.naked:
            return self._named(text, at, final)
        return self.at

    def _leaves_fence(self, text: str, final: bool) -> bool:
        """Step over the end of the fence around the arguments; false while it may still come."""
        at = _skip(text, self.at)
        if not final and text[at : at + 3] in ("", "`", "``"):
            return False
        self.at = at + 3 if text.startswith("```", at) else self.at
        self._fenced = False
        return True

    def _skip_between(self, text: str) -> int:
        found = (_BLANK if self.closed or not self.found else _BETWEEN).match(text, self.at)
        at = found.end() if found else self.at
        if not self.closed:
            self.at = at
        return at

    def _mark(self, mark: str, at: int) -> int:
        opener = OPENERS.get(mark)
        self.at = at + len(mark)
        if opener is not None:
            self.closed = False
            self.naked = opener.naked
            if self.dialect in ("", "tool_calls", "function_calls") or opener.control:
                self.dialect = opener.dialect
        elif mark not in FILLERS:
            self.closed = True
        return _GO_ON

    def _tagged(self, text: str, at: int) -> bool:
        if not text.startswith(TAGGED_STEMS, at):
            return False
        self._item_start = at
        if m3 := minimax_m3.call_at(text, at):
            self._active = m3
        elif family := family_at(text, at):
            self._active = TaggedScan(family[0], family[1], family[2], hard=self.hard)
        self.closed = False
        return self._active is not None

    def _named(self, text: str, at: int, final: bool) -> int:
        """A call that begins with the tool's bare name; while that is not clear, more text is waited for."""
        found = _NAME.match(text, at)
        if found is not None and (final or found.end() < len(text)):
            self._item_start = at
            if self._after_name(text, _name_alone(found["name"]), found.end(), final):
                return _GO_ON
        return self.at if final or len(text) - at >= MAX_NAMED else _WAIT

    def _after_name(self, text: str, name: str, end: int, final: bool) -> bool:
        """Whether what follows the name makes it a call."""
        at = _skip(text, end)
        if (joint := _JOINT.match(text, end)) and "sep" in joint[0]:
            if name == "function":
                self.at = joint.end()
                return True
            at = _skip(text, joint.end())
        if text.startswith("<arg_key>", at) or text.startswith(_ENDS, at):
            self._active = TaggedScan(KEY_VALUE, name, at, hard=self.hard)
            return True
        if call_id := _CALL_ID.match(text, end):
            self._id, at = call_id["id"], _skip(text, call_id.end())
        elif joint:
            at = _skip(text, joint.end())
        fence = _FENCE.match(text, at)
        if fence:
            at = fence.end()
        if text.startswith("{", at):
            self._fenced = fence is not None
            return self._arguments_follow(name, at)
        if text.startswith("(", at):
            self._active = _PythonScan(at, self._item_start, self.hard)
            return True
        if final and at >= len(text) and self.tools.find(_bare(name))[0]:
            self._active = TaggedScan(KEY_VALUE, name, at)
            return True
        return False

    def _arguments_follow(self, name: str, at: int) -> bool:
        if not self._id and ":" in name:
            self._id = name
        self._name = _bare(name)
        self._active = BracketScan(at, self.hard)
        return True


class _PythonScan(BracketScan):
    """A bare Python call: its brackets are those of its arguments, its text begins with its name."""

    def __init__(self, at: int, start: int, hard: bool) -> None:
        super().__init__(at, hard)
        self.start = start


class Whole:
    """A call from a JSON value whose own brackets may have been missing."""

    __slots__ = ("call", "name", "unfinished")

    def __init__(self, call: RawCall, unfinished: bool) -> None:
        self.call = call
        self.name = call.name
        self.unfinished = unfinished

    def arguments(self, schema: Schema, truncated: bool) -> Arguments:
        """The arguments, typed by the tool's schema."""
        result = self.call.arguments(schema, truncated)
        if result.value is None or not self.unfinished:
            return result
        if truncated or any(name not in result.value for name in schema.required()):
            return Arguments(None, "The call ends in the middle.", result.repairs, cut=True)
        return result


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _name_alone(written: str) -> str:
    """The name without the line breaks behind it that were escaped."""
    while written.endswith("\\n") and len(written) > 2:
        written = written[:-2]
    return written


def _bare(name: str) -> str:
    """The tool's name without the counter that Kimi adds."""
    found = _COUNTER.match(name)
    return found["name"] if found else name


def _braced(value: str, dialect: str) -> object:
    """Arguments in braces; Gemma's have bare keys and their own quotation marks."""
    if dialect not in ("gemma4", "function_gemma"):
        return value
    try:
        result, end = LenientReader(value, Repairs(), bare_words=True).value(0)
    except (Unreadable, RecursionError):
        return value
    return result if not value[end:].strip() else value
