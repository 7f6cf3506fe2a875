"""The tagged formats: arguments in tags, with one line of data per model family."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from opposable.domain.json_text import parse_json
from opposable.parsers.arguments import WRAPPER_KEYS, ParsedArguments, coerce_arguments, parse_written_arguments
from opposable.parsers.bracket_scanner import CONTINUE, WAIT, BracketScan
from opposable.parsers.lenient_json import Repairs, skip_pattern
from opposable.parsers.markers import (
    CLOSERS,
    MISSING_END,
    OPENERS,
    TAG_NAMESPACE,
    TAGGED_CALL_STARTS,
    THINKING_ENDS,
    compile_alternatives,
    get_prefixes,
)
from opposable.parsers.schema_coercion import SchemaNode, coerce_text

MAX_TAG_CHARACTERS = 400
MAX_END_TAG_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class TagFormat:
    """How one family writes a call in tags.

    Attributes:
        parser: The name of the format.
        call_start: The pattern of a call's opening tag, with the group `name`.
        parameter_start: The pattern of a parameter's opening tag, with the group `key`. An optional group `kind` says
            how
            the value is written if the schema does not restrict its type.
        parameter_end: The closing tag of a parameter.
        call_end: The closing tag of a call.
        has_value_lines: Whether the chat template writes a line break after the opening and before the closing tag of a
            parameter. In other formats line breaks belong to the value.
    """

    parser: str
    call_start: re.Pattern[str]
    parameter_start: re.Pattern[str]
    parameter_end: str
    call_end: str
    has_value_lines: bool = False


def _compile_tag_format(
    parser: str, call: str, parameter: str, parameter_end: str, end: str, has_value_lines: bool = False
) -> TagFormat:
    return TagFormat(parser, re.compile(call), re.compile(parameter), parameter_end, end, has_value_lines)


def _compile_invoke_format(parser: str, prefix: str) -> TagFormat:
    return _compile_tag_format(
        parser,
        rf'<{prefix}invoke name="(?P<name>[^"\n]{{1,200}})"[^>\n]*>',
        rf'<{prefix}parameter name="(?P<key>[^"\n]{{1,200}})"(?:[^>\n]{{0,60}}?\bstring="(?P<kind>true|false)")?[^>\n]{{0,60}}>',
        f"</{prefix}parameter>",
        f"</{prefix}invoke>",
    )


TAG_FORMATS = (
    _compile_tag_format("qwen_xml", r"<function=(?P<name>[^>\n]{1,200})>", r"<parameter=(?P<key>[^>\n]{1,200})>", "</parameter>", "</function>", True),
    _compile_tag_format("minicpm", r'<function name="(?P<name>[^"\n]{1,200})"[^>\n]*>', r'<param name="(?P<key>[^"\n]{1,200})"[^>\n]*>', "</param>", "</function>"),
    *(
        _compile_tag_format("text", rf'<{tag} name="(?P<name>[^"\n]{{1,200}})"[^>\n]*>', r"(?!)", "", f"</{tag}>")
        for tag in ("tool_call", "function_call")
    ),
    _compile_invoke_format("invoke", ""),
    _compile_invoke_format("invoke", "atem:"),
    _compile_invoke_format("invoke", "antml:"),
    _compile_invoke_format("step3", "steptml:"),
    _compile_invoke_format("deepseek_dsml", "｜DSML｜"),
    _compile_tag_format(
        "kimi_k3",
        r'<\|open\|>call tool="(?P<name>[^"\n]{1,200})"[^<>\n]{0,100}<\|sep\|>',
        r'<\|open\|>argument key="(?P<key>[^"\n]{1,200})"(?:[^<\n]{0,60}?type="(?P<kind>[a-z]{1,20})")?[^<\n]{0,60}<\|sep\|>',
        "<|close|>argument<|sep|>",
        "<|close|>call<|sep|>",
    ),
)  # fmt: skip
NAMED_FORMATS = tuple(
    _compile_tag_format(
        "text",
        rf"<name>\s{{0,20}}(?P<name>[\w.\-]{{1,128}})\s{{0,20}}</name>\s{{0,20}}<{arguments}>(?=\s{{0,20}}\{{)",
        r"(?!)",
        "",
        f"</{arguments}>",
    )
    for arguments in ("arguments", "parameters")
)
"""The name and the JSON of the arguments in tags, which no template has, within the tags of a template."""
KEY_VALUE_FORMAT, LONGCAT_FORMAT = (
    _compile_tag_format(
        parser,
        r"(?!)",
        rf"<{prefix}arg_key>(?P<key>[^<]{{1,200}})</{prefix}arg_key>\s{{0,100}}(?:\\n\s{{0,20}}){{0,5}}"
        rf"(?:<arg_type>(?P<kind>[a-z]{{1,20}})</arg_type>\s{{0,100}}(?:\\n\s{{0,20}}){{0,5}})?<{prefix}arg_value>",
        f"</{prefix}arg_value>",
        f"</{prefix}tool_call>",
    )
    for parser, prefix in (("glm", ""), ("longcat", "longcat_"))
)
"""GLM, Hunyuan and LongCat: the bare name precedes the first key."""

_PARAMETER_STARTS = (
    "<parameter",
    "<param",
    "<arg_key>",
    "<longcat_arg_key>",
    "<｜DSML｜parameter",
    "<steptml:parameter",
    "<atem:parameter",
    f"<{TAG_NAMESPACE}parameter",
    "<|open|>argument",
)
_CALL_END_LITERALS = frozenset({family.call_end for family in TAG_FORMATS}) | CLOSERS
_FOLLOW_LITERALS = {
    *_PARAMETER_STARTS,
    *_CALL_END_LITERALS,
    *OPENERS,
    *TAGGED_CALL_STARTS,
    "<|im_end|>",
    "<|eot_id|>",
    "<|end|>",
}
_FOLLOW_PATTERN = compile_alternatives(_FOLLOW_LITERALS)
_CALL_END_PATTERN = compile_alternatives(_FOLLOW_LITERALS - set(_PARAMETER_STARTS))
_FOLLOW_PREFIXES = get_prefixes(_FOLLOW_LITERALS) | {"", "\\"}
_CALL_START_PREFIXES = get_prefixes(TAGGED_CALL_STARTS)
_PARTIAL_CALL = re.compile(
    "|".join(
        re.escape(stem) + (r"[^>\n]*\Z" if stem == "<function=" else r'(?:"[^"\n]*(?:"[^>\n]*)?)?\Z')
        for stem in TAGGED_CALL_STARTS
    )
)
"""The opening tag of a call, without its end."""
_THINKING_END_PATTERN = compile_alternatives(THINKING_ENDS)
_WHITESPACE = re.compile(r"\s*(?:\\n\s*)*")
"""White space and escaped line breaks."""
_CDATA = re.compile(r"\s*<!\[CDATA\[(.*?)\]\]>\s*\Z", re.DOTALL)


def match_opening_tag(
    text: str, at: int, formats: Sequence[TagFormat] = TAG_FORMATS
) -> tuple[TagFormat, str, int] | None:
    """Return the format, tool name and end of the call's opening tag at `at`."""
    for tag_format in formats:
        if match := tag_format.call_start.match(text, at):
            return tag_format, _unescape_attribute(match["name"]), match.end()
    return None


def _unescape_attribute(value: str) -> str:
    """Return an attribute's value without quotation marks and character references."""
    name = value.strip().strip("\"'")
    return unescape(name) if "&" in name else name


def may_become_named_tags(text: str, at: int) -> bool:
    """Return whether the text from `at` on may become the tags of `NAMED_FORMATS`."""
    upcoming = text[at : at + MAX_TAG_CHARACTERS]
    if len(upcoming) >= MAX_TAG_CHARACTERS or not ("<name>".startswith(upcoming) or upcoming.startswith("<name>")):
        return False
    return upcoming.count(">") < 3 or (upcoming.count(">") == 3 and upcoming.rstrip().endswith(">"))


def may_become_call(text: str, at: int) -> bool:
    """Return whether the text from `at` on may become the opening tag of a call."""
    if len(text) - at >= MAX_TAG_CHARACTERS:
        return False
    return text[at:] in _CALL_START_PREFIXES or _PARTIAL_CALL.match(text, at) is not None


@dataclass(frozen=True, slots=True)
class TagValue:
    """One argument as written; `type_name` is the type given by the tag, or ""."""

    text: str
    type_name: str = ""


@dataclass(slots=True)
class TaggedScan:
    """The scan of the body of one call, from `at` to after its end."""

    tag_format: TagFormat
    name: str
    at: int
    values: list[tuple[str, TagValue]] = field(default_factory=list)
    repairs: Repairs = field(default_factory=Repairs)
    json_body: str = ""
    is_cut_off: bool = False
    is_complete: bool = False
    markers_end_strings: bool = False
    _key: str | None = None
    _type_name: str = ""
    _value_start: int = 0
    _value_end: int = -1
    _first_value_end: int = -1
    _json_scan: BracketScan | None = None

    def scan(self, text: str, final: bool) -> int | None:
        """Return the position after the call, or None if more text is needed."""
        while True:
            if self._json_scan is not None:
                end = self._scan_json(text, final)
            elif self._key is not None:
                end = self._scan_value(text, final)
            else:
                end = self._scan_between_tags(text, final)
            if end != CONTINUE:
                return None if end == WAIT else end

    def _scan_json(self, text: str, final: bool) -> int:
        assert self._json_scan is not None
        end = self._json_scan.scan(text, final)
        if end is None:
            return WAIT
        self.json_body = text[self._json_scan.start : end]
        self.is_cut_off = not self._json_scan.is_complete
        self.at, self._json_scan = end, None
        return CONTINUE

    def _scan_between_tags(self, text: str, final: bool) -> int:
        """Scan the text between tags: a parameter, the end, or foreign text."""
        self.at = skip_pattern(_WHITESPACE, text, self.at)
        if self.at >= len(text):
            if not final:
                return WAIT
            self.repairs.add(MISSING_END)
            return self.at
        if match := self.tag_format.parameter_start.match(text, self.at):
            self._key, self._type_name = _unescape_attribute(match["key"]), match.groupdict().get("kind") or ""
            self._value_start = self.at = match.end()
            return CONTINUE
        if text.startswith(self.tag_format.call_end, self.at):
            self.is_complete = True
            return self.at + len(self.tag_format.call_end)
        if text[self.at] in "{[" and not self.values and not self.json_body:
            self._json_scan = BracketScan(self.at)
            return CONTINUE
        upcoming = text[self.at : self.at + MAX_TAG_CHARACTERS]
        if (
            not final
            and len(upcoming) < MAX_TAG_CHARACTERS
            and (
                upcoming in _FOLLOW_PREFIXES
                or upcoming.startswith(_PARAMETER_STARTS)
                or self.tag_format.call_end.startswith(upcoming)
            )
        ):
            return WAIT
        self.repairs.add(MISSING_END)
        self.is_complete = _CALL_END_PATTERN.match(text, self.at) is not None
        self.is_cut_off = self.is_cut_off or any(
            stem.startswith(upcoming) or upcoming.startswith(stem) for stem in _PARAMETER_STARTS
        )
        return self.at

    def _scan_value(self, text: str, final: bool) -> int:
        """Scan a value up to an end tag that is followed by another tag or nothing."""
        tag = self.tag_format.parameter_end
        if self._value_end < 0:
            end = text.find(tag, self.at)
            if self.markers_end_strings and (
                thinking_end := _THINKING_END_PATTERN.search(text, self.at, end if end >= 0 else len(text))
            ):
                self.is_cut_off, self._key = True, None
                return thinking_end.start()
            if end < 0:
                self.at = max(self.at, len(text) - MAX_END_TAG_CHARACTERS)
                return self._finish_unended_value(text) if final else WAIT
            self._value_end = self.at = end + len(tag)
        self.at = skip_pattern(_WHITESPACE, text, self.at)
        if self.at >= len(text) and not final:
            return WAIT
        if self.at >= len(text) or _FOLLOW_PATTERN.match(text, self.at):
            self._store_value(text[self._value_start : self._value_end - len(tag)])
            return CONTINUE
        if not final and text[self.at : self.at + MAX_TAG_CHARACTERS] in _FOLLOW_PREFIXES:
            return WAIT
        if self._first_value_end < 0:
            self._first_value_end = self._value_end - len(tag)
        self._value_end = -1
        return CONTINUE

    def _store_value(self, value: str, is_unended: bool = False) -> None:
        assert self._key is not None
        if is_unended or self.tag_format.has_value_lines:
            value = _strip_line_breaks(value)
        self.values.append((self._key, TagValue(value, self._type_name)))
        self._key, self._value_end, self._first_value_end = None, -1, -1

    def _finish_unended_value(self, text: str) -> int:
        """Finish a value without an end tag.

        It is cut off unless the end of the call or the next parameter was reached.
        """
        value_end = (
            self._first_value_end
            if self._first_value_end >= 0
            else text.find(self.tag_format.call_end, self._value_start)
        )
        if value_end >= 0:
            self.repairs.add("missing end of a parameter")
            self._store_value(_strip_last_line_break(text[self._value_start : value_end]), is_unended=True)
            self.at = value_end + (
                len(self.tag_format.parameter_end) if text.startswith(self.tag_format.parameter_end, value_end) else 0
            )
            return CONTINUE
        self.is_cut_off, self._key = True, None
        return len(text)

    def parse_arguments(self, schema: SchemaNode, truncated: bool) -> ParsedArguments:
        """Parse the arguments and coerce them to the tool's schema."""
        if self.json_body:
            return parse_written_arguments(self.json_body, schema, truncated, tuple(self.repairs))
        if not self.is_cut_off and (wrapped := _get_wrapped_arguments(self.values, schema)) is not None:
            return coerce_arguments(wrapped, schema, truncated, (*self.repairs, "wrapper around the arguments dropped"))
        repairs = Repairs(dict(self.repairs.entries))
        values = _split_merged_values(self, schema, repairs)
        is_unfinished = MISSING_END in repairs.entries and not self.is_complete
        if self.is_cut_off or (is_unfinished and (truncated or schema.lacks_property(dict(values)))):
            return ParsedArguments(None, "the call ends in the middle", tuple(repairs), is_cut_off=True)
        coerced = {key: _coerce_tag_value(value, schema.get_property(key), repairs) for key, value in values}
        return ParsedArguments(coerced, None, tuple(repairs))


def _split_merged_values(scan: TaggedScan, schema: SchemaNode, repairs: Repairs) -> list[tuple[str, TagValue]]:
    """Split values that contain another parameter because an end tag is missing.

    A value with as many end tags as start tags only mentions them, unless a required parameter is missing.
    """
    required = set(schema.required_names())
    missing = ({*schema.properties()} | required) - {name for name, _ in scan.values}
    result: list[tuple[str, TagValue]] = []
    for key, value in scan.values:
        matches = list(scan.tag_format.parameter_start.finditer(value.text)) if missing else []
        is_unended = len(matches) > value.text.count(scan.tag_format.parameter_end)
        start = 0
        for match in matches:
            name = _unescape_attribute(match["key"])
            if name in missing and (is_unended or name in required):
                text = _strip_last_line_break(value.text[start : match.start()].split(scan.tag_format.parameter_end)[0])
                result.append((key, TagValue(_strip_line_breaks(text), value.type_name)))
                repairs.add("missing end of a parameter")
                key, start = name, match.end()
                missing.discard(key)
        result.append((key, TagValue(_strip_line_breaks(value.text[start:]) if start else value.text, value.type_name)))
    return result


def _get_wrapped_arguments(values: list[tuple[str, TagValue]], schema: SchemaNode) -> dict[str, Any] | None:
    """Return arguments that are one object in a parameter which the tool does not have or allow."""
    if len(values) != 1 or values[0][0] not in WRAPPER_KEYS or values[0][0] in schema.properties():
        return None
    value = coerce_text(values[0][1].text, SchemaNode({"type": "object"}), Repairs())
    if not isinstance(value, dict) or not value.keys() <= schema.properties().keys():
        return None
    return None if schema.find_invalid_paths({values[0][0]: value}) == [] else value


def _coerce_tag_value(value: TagValue, schema: SchemaNode, repairs: Repairs) -> Any:
    types = schema.allowed_types()
    text = value.text
    if match := _CDATA.match(text):
        text = match[1]
    if not types and value.type_name and value.type_name not in ("true", "string"):
        try:
            return parse_json(text)
        except ValueError:
            return text
    return coerce_text(text, schema, repairs)


def _strip_last_line_break(value: str) -> str:
    """Return a value whose end tag is missing without the line break before the next tag."""
    return value if value.startswith("\n") else value.removesuffix("\n")


def _strip_line_breaks(value: str) -> str:
    """Return the value without the line breaks next to its tags."""
    if value.startswith("\n"):
        return value[1:-1] if value.endswith("\n") and len(value) > 1 else value[1:]
    return value
