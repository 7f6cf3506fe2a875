"""Calls whose arguments stand in tags of their own: one line of data for each family."""

import re
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from opposable.parsers.arguments import WRAPPERS, Arguments, arguments_of
from opposable.parsers.bracket_scanner import BracketScan
from opposable.parsers.lenient_json import Repairs, Unreadable, strict
from opposable.parsers.markers import CLOSERS, OPENERS, SPACE, TAGGED_STEMS, THINKING_ENDS, one_of, prefixes_of
from opposable.parsers.schema_coercion import Schema, from_text

MAX_TAG = 400
MAX_TAG_END = 40


@dataclass(frozen=True, slots=True)
class Tags:
    """How one family writes the parts of a call.

    `call` and `parameter` are patterns of opening tags with the groups `name` and `key`; `parameter` may have the
    group `kind`, which tells how the value is written where the schema says nothing.
    """

    dialect: str
    call: re.Pattern[str]
    parameter: re.Pattern[str]
    parameter_end: str
    end: str


def _tags(dialect: str, call: str, parameter: str, parameter_end: str, end: str) -> Tags:
    return Tags(dialect, re.compile(call), re.compile(parameter), parameter_end, end)


def _invoke(dialect: str, prefix: str) -> Tags:
    return _tags(
        dialect,
        rf'<{prefix}invoke name="(?P<name>[^"\n]{{1,200}})"[^>\n]*>',
        rf'<{prefix}parameter name="(?P<key>[^"\n]{{1,200}})"(?:[^>\n]{{0,60}}?\bstring="(?P<kind>true|false)")?[^>\n]{{0,60}}>',
        f"</{prefix}parameter>",
        f"</{prefix}invoke>",
    )


FAMILIES = (
    _tags("qwen_xml", r"<function=(?P<name>[^>\n]{1,200})>", r"<parameter=(?P<key>[^>\n]{1,200})>", "</parameter>", "</function>"),
    _tags("minicpm", r'<function name="(?P<name>[^"\n]{1,200})"[^>\n]*>', r'<param name="(?P<key>[^"\n]{1,200})"[^>\n]*>', "</param>", "</function>"),
    _invoke("invoke", ""),
    _invoke("invoke", "atem:"),
    _invoke("invoke", "antml:"),
    _invoke("step3", "steptml:"),
    _invoke("deepseek_dsml", "｜DSML｜"),
    _tags(
        "kimi_k3",
        r'<\|open\|>call tool="(?P<name>[^"\n]{1,200})"[^<>\n]{0,100}<\|sep\|>',
        r'<\|open\|>argument key="(?P<key>[^"\n]{1,200})"(?:[^<\n]{0,60}?type="(?P<kind>[a-z]{1,20})")?[^<\n]{0,60}<\|sep\|>',
        "<|close|>argument<|sep|>",
        "<|close|>call<|sep|>",
    ),
)  # fmt: skip
KEY_VALUE = _tags(
    "glm",
    r"(?!)",
    r"<arg_key>(?P<key>[^<]{1,200})</arg_key>\s{0,100}(?:\\n\s{0,20}){0,5}"
    r"(?:<arg_type>(?P<kind>[a-z]{1,20})</arg_type>\s{0,100}(?:\\n\s{0,20}){0,5})?<arg_value>",
    "</arg_value>",
    "</tool_call>",
)
"""GLM and Hunyuan: the name stands bare before the first key."""

_PARAMETER_STEMS = (
    "<parameter",
    "<param",
    "<arg_key>",
    "<｜DSML｜parameter",
    "<steptml:parameter",
    "<atem:parameter",
    f"<{SPACE}parameter",
    "<|open|>argument",
)
_ENDS = frozenset({family.end for family in FAMILIES}) | CLOSERS
_FOLLOW_LITERALS = {*_PARAMETER_STEMS, *_ENDS, *OPENERS, *TAGGED_STEMS, "<|im_end|>", "<|eot_id|>", "<|end|>"}
_FOLLOWS = one_of(_FOLLOW_LITERALS)
_CALL_ENDS = one_of(_FOLLOW_LITERALS - set(_PARAMETER_STEMS))
_FOLLOW_PREFIXES = prefixes_of(_FOLLOW_LITERALS) | {"", "\\"}
_STEM_PREFIXES = prefixes_of(TAGGED_STEMS)
_PARTIAL_CALL = re.compile(
    "|".join(
        re.escape(stem) + (r"[^>\n]*\Z" if stem == "<function=" else r'(?:"[^"\n]*(?:"[^>\n]*)?)?\Z')
        for stem in TAGGED_STEMS
    )
)
"""An opening tag of a call whose end has not come."""
_THOUGHT_ENDS = one_of(THINKING_ENDS)
_BLANK = re.compile(r"\s*(?:\\n\s*)*")
"""White space, and line breaks that were escaped."""
_CDATA = re.compile(r"\s*<!\[CDATA\[(.*?)\]\]>\s*\Z", re.DOTALL)


def family_at(text: str, at: int) -> tuple[Tags, str, int] | None:
    """The family, name and end of the opening tag of a call at `at`."""
    for family in FAMILIES:
        if found := family.call.match(text, at):
            return family, _attribute(found["name"]), found.end()
    return None


def _attribute(written: str) -> str:
    """A name as its tag gives it, with the characters that an attribute has to escape."""
    name = written.strip().strip("\"'")
    return unescape(name) if "&" in name else name


def may_become_call(text: str, at: int) -> bool:
    """Whether the text, which ends soon after `at`, may go on to be the opening tag of a call."""
    if len(text) - at >= MAX_TAG:
        return False
    return text[at:] in _STEM_PREFIXES or _PARTIAL_CALL.match(text, at) is not None


@dataclass(frozen=True, slots=True)
class Value:
    """One argument as written; `kind` is how the tag says it is written ("" where it does not)."""

    text: str
    kind: str = ""


@dataclass(slots=True)
class TaggedScan:
    """Scans the body of one call, from after its opening tag at `at` to after its end."""

    tags: Tags
    name: str
    at: int
    values: list[tuple[str, Value]] = field(default_factory=list)
    repairs: Repairs = field(default_factory=Repairs)
    body: str = ""
    cut: bool = False
    complete: bool = False
    hard: bool = False
    _key: str | None = None
    _kind: str = ""
    _value_start: int = 0
    _after_value: int = -1
    _first_end: int = -1
    _json: BracketScan | None = None

    def scan(self, text: str, final: bool) -> int | None:
        """The position after the call, or None while more text is needed."""
        while True:
            if self._json is not None:
                end = self._in_json(text, final)
            elif self._key is not None:
                end = self._in_value(text, final)
            else:
                end = self._between(text, final)
            if end != -2:
                return None if end == -1 else end

    def _in_json(self, text: str, final: bool) -> int:
        assert self._json is not None
        end = self._json.scan(text, final)
        if end is None:
            return -1
        self.body = text[self._json.start : end]
        self.cut = not self._json.complete
        self.at, self._json = end, None
        return -2

    def _between(self, text: str, final: bool) -> int:
        """Between tags: a parameter, the end, or nothing that belongs here."""
        self.at = _skip(text, self.at)
        if self.at >= len(text):
            if not final:
                return -1
            self.repairs.add("missing end of the call")
            return self.at
        if found := self.tags.parameter.match(text, self.at):
            self._key, self._kind = _attribute(found["key"]), found.groupdict().get("kind") or ""
            self._value_start = self.at = found.end()
            return -2
        if text.startswith(self.tags.end, self.at):
            self.complete = True
            return self.at + len(self.tags.end)
        if text[self.at] in "{[" and not self.values and not self.body:
            self._json = BracketScan(self.at)
            return -2
        left = text[self.at : self.at + MAX_TAG]
        if not final and len(left) < MAX_TAG and (left in _FOLLOW_PREFIXES or left.startswith(_PARAMETER_STEMS)):
            return -1
        self.repairs.add("missing end of the call")
        self.complete = _CALL_ENDS.match(text, self.at) is not None
        self.cut = self.cut or any(stem.startswith(left) or left.startswith(stem) for stem in _PARAMETER_STEMS)
        return self.at

    def _in_value(self, text: str, final: bool) -> int:
        """Inside a value: it ends at its end tag, where what follows can follow it."""
        tag = self.tags.parameter_end
        if self._after_value < 0:
            end = text.find(tag, self.at)
            if self.hard and (thought := _THOUGHT_ENDS.search(text, self.at, end if end >= 0 else len(text))):
                self.cut, self._key = True, None
                return thought.start()
            if end < 0:
                self.at = max(self.at, len(text) - MAX_TAG_END)
                return self._unended(text) if final else -1
            self._after_value = self.at = end + len(tag)
        self.at = _skip(text, self.at)
        if self.at >= len(text) and not final:
            return -1
        if self.at >= len(text) or _FOLLOWS.match(text, self.at):
            self._keep(text[self._value_start : self._after_value - len(tag)])
            return -2
        if not final and text[self.at : self.at + MAX_TAG] in _FOLLOW_PREFIXES:
            return -1
        if self._first_end < 0:
            self._first_end = self._after_value - len(tag)
        self._after_value = -1
        return -2

    def _keep(self, value: str) -> None:
        assert self._key is not None
        self.values.append((self._key, Value(_unwrapped(value), self._kind)))
        self._key, self._after_value, self._first_end = None, -1, -1

    def _unended(self, text: str) -> int:
        """The text ends inside a value: it is cut, unless the call's own end, or the next parameter, was reached."""
        value_end = self._first_end if self._first_end >= 0 else text.find(self.tags.end, self._value_start)
        if value_end >= 0:
            self.repairs.add("missing end of a parameter")
            self._keep(text[self._value_start : value_end])
            self.at = value_end + (
                len(self.tags.parameter_end) if text.startswith(self.tags.parameter_end, value_end) else 0
            )
            return -2
        self.cut, self._key = True, None
        return len(text)

    def arguments(self, schema: Schema, truncated: bool) -> Arguments:
        """The arguments, typed by the tool's schema."""
        if self.body:
            return arguments_of(self.body, schema, truncated, tuple(self.repairs))
        if not self.cut and (whole := _wrapped(self.values, schema)) is not None:
            return arguments_of(whole, schema, truncated, (*self.repairs, "wrapper around the arguments dropped"))
        repairs = Repairs(dict(self.repairs.told))
        try:
            values = _split_run_together(self, schema, repairs)
        except Unreadable as problem:
            return Arguments(None, str(problem), tuple(repairs))
        unfinished = "missing end of the call" in repairs.told and not self.complete
        missing = [name for name in schema.required() if name not in dict(values)]
        if self.cut or (unfinished and (truncated or missing)):
            return Arguments(None, "The call ends in the middle.", tuple(repairs), cut=True)
        typed = {key: _typed(value, schema.property(key), repairs) for key, value in values}
        return Arguments(typed, None, tuple(repairs))


def _split_run_together(scan: TaggedScan, schema: Schema, repairs: Repairs) -> list[tuple[str, Value]]:
    """Values, where a required one that seems missing stands inside another whose end tag was forgotten."""
    given = dict(scan.values)
    lost = {name for name in schema.required() if name not in given}
    if not lost:
        return scan.values
    result: list[tuple[str, Value]] = []
    for key, value in scan.values:
        start = 0
        for found in scan.tags.parameter.finditer(value.text):
            if found["key"] in lost:
                piece = value.text[start : found.start()].split(scan.tags.parameter_end)[0].removesuffix("\n")
                result.append((key, Value(_unwrapped(piece), value.kind)))
                repairs.add("missing end of a parameter")
                key, start = found["key"], found.end()
                lost.discard(key)
        result.append((key, Value(_unwrapped(value.text[start:]) if start else value.text, value.kind)))
    return result


def _wrapped(values: list[tuple[str, Value]], schema: Schema) -> dict[str, Any] | None:
    """The arguments, where they all stand as one object in a parameter that the tool does not have."""
    if len(values) != 1 or values[0][0] not in WRAPPERS or values[0][0] in schema.properties():
        return None
    found = from_text(values[0][1].text, Schema({"type": "object"}), Repairs())
    return found if isinstance(found, dict) and found.keys() <= schema.properties().keys() else None


def _typed(value: Value, schema: Schema, repairs: Repairs) -> Any:
    kinds = schema.kinds()
    text = value.text
    if found := _CDATA.match(text):
        text = found[1]
    if not kinds and value.kind and value.kind not in ("true", "string"):
        try:
            return strict(text)
        except ValueError:
            return text
    return from_text(text, schema, repairs)


def _unwrapped(value: str) -> str:
    """The value without the line breaks that its tags put around it."""
    if value.startswith("\n"):
        return value[1:-1] if value.endswith("\n") and len(value) > 1 else value[1:]
    return value


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at
