"""Scanner for the calls after a marker, in any of the marked formats."""

import re
from dataclasses import dataclass, replace
from typing import Protocol

from opposable.parsers import minimax_m3, pythonic
from opposable.parsers.arguments import ParsedArguments
from opposable.parsers.bracket_scanner import CONTINUE, WAIT, BracketScan
from opposable.parsers.json_calls import RawCall, classify_value, find_broken_call
from opposable.parsers.lenient_json import (
    LenientJsonParser,
    Repairs,
    UnreadableText,
    parse_lenient,
    skip_pattern,
    skip_whitespace,
)
from opposable.parsers.markers import (
    CLOSERS,
    FILLER_MARKERS,
    LINE_OPENERS,
    OPENERS,
    TAGGED_CALL_STARTS,
    compile_alternatives,
    get_prefixes,
)
from opposable.parsers.schema_coercion import SchemaNode
from opposable.parsers.tagged_calls import (
    KEY_VALUE_FORMAT,
    LONGCAT_FORMAT,
    NAMED_FORMATS,
    TagFormat,
    TaggedScan,
    match_opening_tag,
    may_become_call,
    may_become_named_tags,
)
from opposable.parsers.tool_names import ToolIndex

MAX_FALLBACKS = 8
MAX_BARE_CALL_CHARACTERS = 256
_NAME_SEPARATORS = (
    "<tool_sep>",
    "[ARGS]",
    "[CALL_ID]",
    "<|tool_call_argument_begin|>",
    "<arg_key>",
    "<longcat_arg_key>",
    *(f"<{bar}tool{gap}sep{bar}>" for bar in "｜|" for gap in ("▁", "_", " ")),
)
_MARKER_LITERALS = (set(OPENERS) | CLOSERS | FILLER_MARKERS) - set(LINE_OPENERS)
_MARKER_PATTERN = compile_alternatives(_MARKER_LITERALS)
_MARKER_PREFIXES = get_prefixes(_MARKER_LITERALS)
_WHITESPACE = re.compile(r"\s*")
_CALL_SEPARATORS = re.compile(r"(?:[\s,;})]|\](?=[^<]))*")
_BARE_NAME = re.compile(r":?(?:call:)?(?P<name>[^\s<>\[\]{}()\"'=,;|｜`]{1,128})")
_NAME_SEPARATOR = re.compile(r"\s*(?:" + "|".join(re.escape(joint) for joint in _NAME_SEPARATORS) + r")")
_CALL_ID = re.compile(r"\s*\[CALL_ID\](?P<id>[^\[\]\s]{1,64})\s*\[ARGS\]")
_FENCE = re.compile(r"\s*```[\w]*\s*")
_NAME_COUNTER = re.compile(r"\A(?P<name>.+):\d+\Z")
_CLOSER_STRINGS = tuple(CLOSERS)


class UntypedCall(Protocol):
    """A call whose arguments have not been coerced to the tool's schema yet."""

    @property
    def name(self) -> str:
        """The tool's name as written."""

    def parse_arguments(self, schema: SchemaNode, truncated: bool) -> ParsedArguments:
        """Parse the arguments and coerce them to the tool's schema."""


@dataclass(frozen=True, slots=True)
class CallSpan:
    """A call found in the text and its position.

    `call` is None if the call could not be parsed. `id` is the model's id for it, or "".
    """

    call: UntypedCall | None
    start: int
    end: int
    parser: str
    id: str = ""


class CallSection:
    """A sequence of calls that begins at `start`, scanned incrementally.

    `spans` grows as calls are completed. The stream parser counts the calls it has emitted in `emitted_count`.
    """

    def __init__(
        self,
        tools: ToolIndex,
        start: int,
        parser: str = "",
        allows_bare_names: bool = False,
        markers_end_strings: bool = False,
    ) -> None:
        self.tools = tools
        self.start = self.at = start
        self.parser = parser
        self.allows_bare_names = allows_bare_names
        self.markers_end_strings = markers_end_strings
        self.spans: list[CallSpan] = []
        self.emitted_count = 0
        self.is_closed = False
        self.fallback_count = 0
        self._active_scan: BracketScan | TaggedScan | minimax_m3.MiniMaxM3Scan | None = None
        self._item_start = start
        self._pending_name = ""
        self._pending_id = ""
        self._is_fenced = False

    def scan(self, text: str, final: bool) -> int | None:
        """Return the position after the section, or None if more text is needed."""
        while True:
            step = (
                self._scan_item(text, final) if self._active_scan is not None else self._scan_between_calls(text, final)
            )
            if step == WAIT:
                return None
            if step != CONTINUE:
                return step

    def _scan_item(self, text: str, final: bool) -> int:
        scan = self._active_scan
        assert scan is not None
        end = scan.scan(text, final)
        if end is None:
            return WAIT
        self._active_scan = None
        self.at = end
        if isinstance(scan, BracketScan):
            self._finish_brackets(text, scan, end)
        else:
            default_parser = scan.tag_format.parser if isinstance(scan, TaggedScan) else "minimax_m3"
            is_default = self.parser in ("", "hermes", "function_calls") or default_parser == "text"
            parser = default_parser if is_default else self.parser
            self.spans.append(CallSpan(scan, self._item_start, end, parser))
            self.allows_bare_names = False
        return CONTINUE

    def _finish_brackets(self, text: str, scan: BracketScan, end: int) -> None:
        if scan.ended_at_fallback:
            self.fallback_count += 1
            self.markers_end_strings = self.markers_end_strings or self.fallback_count >= MAX_FALLBACKS
        value = text[scan.start : end]
        is_ended = text.startswith(_CLOSER_STRINGS, end)
        if self._pending_name:
            call: UntypedCall = RawCall(self._pending_name, _decode_braces(value, self.parser), self._pending_id)
            self.spans.append(CallSpan(call, self._item_start, end, self.parser, self._pending_id))
            self._pending_name = self._pending_id = ""
            return
        self._finish_value(value, self._item_start, end, is_ended)

    def _finish_value(self, value: str, start: int, end: int, is_ended: bool) -> None:
        may_be_python = value[:1] not in ("{", "[") or pythonic.LIST_PATTERN.match(value)
        if may_be_python and (calls := pythonic.parse_python_calls(value, self.tools)) is not None:
            self.spans.extend(CallSpan(call, start, end, self.parser or "pythonic") for call in calls)
            return
        repairs = Repairs()
        try:
            shape = classify_value(parse_lenient(value, repairs), self.tools, is_marked=True)
        except (UnreadableText, RecursionError):
            shape = None
        if shape is None or not shape.calls:
            self.spans.append(CallSpan(find_broken_call(value, self.tools), start, end, self.parser or "json"))
            return
        self.spans.extend(
            create_json_span(call, repairs, start, end, self.parser or "json", is_ended) for call in shape.calls
        )

    def _scan_between_calls(self, text: str, final: bool) -> int:
        """Scan the text between calls: a marker, the next call, or the end of the section."""
        if self._is_fenced and not self._skip_fence_end(text, final):
            return WAIT
        at = self._skip_separators(text)
        is_far = at - self.at > MAX_BARE_CALL_CHARACTERS
        if is_far or at >= len(text):
            return self.at if final or is_far else WAIT
        if match := _MARKER_PATTERN.match(text, at):
            return self._handle_marker(match[0], at)
        if not final and (
            text[at : at + 64] in _MARKER_PREFIXES or may_become_call(text, at) or may_become_named_tags(text, at)
        ):
            return WAIT
        if self._enter_tagged_call(text, at):
            return CONTINUE
        if self.is_closed:
            return self.at
        if text[at] in "{[":
            self._item_start = at
            self._active_scan = BracketScan(at, self.markers_end_strings)
            return CONTINUE
        if self.allows_bare_names:
            return self._enter_named_call(text, at, final)
        return self.at

    def _skip_fence_end(self, text: str, final: bool) -> bool:
        """Skip the end of a code fence around the arguments.

        Return False if it may still arrive.
        """
        self.at = skip_whitespace(text, self.at)
        if not final and text[self.at : self.at + 3] in ("", "`", "``"):
            return False
        self.at += 3 if text.startswith("```", self.at) else 0
        self._is_fenced = False
        return True

    def _skip_separators(self, text: str) -> int:
        at = skip_pattern(_WHITESPACE if self.is_closed or not self.spans else _CALL_SEPARATORS, text, self.at)
        if not self.is_closed:
            self.at = at
        return at

    def _handle_marker(self, marker: str, at: int) -> int:
        opener = OPENERS.get(marker)
        self.at = at + len(marker)
        if opener is not None:
            self.is_closed = False
            self.allows_bare_names = opener.allows_bare_names
            if self.parser in ("", "tool_calls", "function_calls") or opener.is_control_token:
                self.parser = opener.parser
        elif marker not in FILLER_MARKERS:
            self.is_closed = True
        return CONTINUE

    def _enter_tagged_call(self, text: str, at: int) -> bool:
        named_tags = match_opening_tag(text, at, NAMED_FORMATS)
        if not named_tags and not text.startswith(TAGGED_CALL_STARTS, at):
            return False
        self._item_start = at
        if m3_scan := minimax_m3.match_opening_tag(text, at):
            self._active_scan = m3_scan
        elif (opening_tag := named_tags or match_opening_tag(text, at)) and self._may_be_called(*opening_tag[:2]):
            self._active_scan = TaggedScan(
                opening_tag[0], opening_tag[1], opening_tag[2], markers_end_strings=self.markers_end_strings
            )
        self.is_closed = False
        return self._active_scan is not None

    def _may_be_called(self, tag_format: TagFormat, name: str) -> bool:
        """Return whether tags may be a call: those that no template has, only if they name an available tool."""
        return tag_format.parser != "text" or self.tools.find(name)[0] is not None

    def _enter_named_call(self, text: str, at: int, final: bool) -> int:
        """Enter a call that begins with a bare tool name."""
        match = _BARE_NAME.match(text, at)
        if match is not None and (final or match.end() < len(text)):
            self._item_start = at
            if self._enter_arguments(text, _strip_escaped_newlines(match["name"]), match.end(), final):
                return CONTINUE
        return self.at if final or len(text) - at >= MAX_BARE_CALL_CHARACTERS else WAIT

    def _enter_arguments(self, text: str, name: str, end: int, final: bool) -> bool:
        """Enter the arguments after a bare name; return False if the text is not a call."""
        at = skip_whitespace(text, end)
        if (separator := _NAME_SEPARATOR.match(text, end)) and "sep" in separator[0]:
            if name == "function":
                self.at = separator.end()
                return True
            at = skip_whitespace(text, separator.end())
        if text.startswith(("<arg_key>", "<longcat_arg_key>", *_CLOSER_STRINGS), at):
            tag_format = LONGCAT_FORMAT if text.startswith("<longcat_arg_key>", at) else KEY_VALUE_FORMAT
            self._active_scan = TaggedScan(tag_format, name, at, markers_end_strings=self.markers_end_strings)
            return True
        if call_id := _CALL_ID.match(text, end):
            self._pending_id, at = call_id["id"], skip_whitespace(text, call_id.end())
        elif separator:
            at = skip_whitespace(text, separator.end())
            if text.startswith(_CLOSER_STRINGS, at):  # empty arguments
                self.spans.append(CallSpan(RawCall(_strip_counter(name), ""), self._item_start, at, self.parser))
                self.at = at
                return True
        fence = _FENCE.match(text, at)
        at = fence.end() if fence else at
        if text.startswith("{", at):
            self._is_fenced = fence is not None
            return self._enter_json_arguments(name, at)
        if text.startswith("(", at):
            self._active_scan = BracketScan(at, self.markers_end_strings)
            self._active_scan.start = self._item_start  # the call begins with the tool's name
            return True
        if final and at >= len(text) and self.tools.find(_strip_counter(name))[0]:
            self._active_scan = TaggedScan(KEY_VALUE_FORMAT, name, at)
            return True
        return False

    def _enter_json_arguments(self, name: str, at: int) -> bool:
        if not self._pending_id and ":" in name:
            self._pending_id = name
        self._pending_name = _strip_counter(name)
        self._active_scan = BracketScan(at, self.markers_end_strings)
        return True


def create_json_span(
    call: RawCall, repairs: Repairs, start: int, end: int, parser: str, is_ended: bool = False
) -> CallSpan:
    """Return the span of a call in a JSON value that was parsed with `repairs`.

    `is_ended` means that a closing marker or the end of a fence follows the value.
    """
    has_closed_arguments = is_ended and repairs.missing_brackets == 1 and not call.is_flat
    repaired_call = replace(
        call,
        repairs=(*repairs, *call.repairs),
        is_unfinished=repairs.is_unfinished,
        has_closed_arguments=has_closed_arguments,
    )
    return CallSpan(repaired_call, start, end, parser, call.id)


def _strip_escaped_newlines(name: str) -> str:
    """Return the name without escaped line breaks at its end."""
    while name.endswith("\\n") and len(name) > 2:
        name = name[:-2]
    return name


def _strip_counter(name: str) -> str:
    """Return the tool's name without the counter that Kimi appends."""
    match = _NAME_COUNTER.match(name)
    return match["name"] if match else name


def _decode_braces(value: str, parser: str) -> object:
    """Decode arguments in braces; Gemma writes bare keys and its own quotation marks."""
    if parser not in ("gemma4", "function_gemma"):
        return value
    try:
        result, end = LenientJsonParser(value, repairs := Repairs(), allows_bare_words=True).parse_value(0)
    except (UnreadableText, RecursionError):
        return value
    return value if repairs.is_unfinished or value[end:].strip() else result
