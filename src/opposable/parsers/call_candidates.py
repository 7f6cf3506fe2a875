"""Classification of buffered text: which calls it is, if any."""

import re
from dataclasses import dataclass

from opposable.domain.json_text import parse_json
from opposable.parsers import pythonic
from opposable.parsers.call_section import CallSection, CallSpan, create_json_span
from opposable.parsers.json_calls import FIRST_KEYS, classify_value, find_broken_call
from opposable.parsers.lenient_json import LenientJsonParser, Repairs, UnreadableText, skip_pattern, skip_space
from opposable.parsers.markers import MISSING_END, OPENERS, TAGGED_CALL_STARTS, compile_alternatives
from opposable.parsers.tool_names import ToolIndex

CALL_INFO_STRINGS = frozenset(
    {
        "tool_code",
        "tool_call",
        "tool_calls",
        "tool-call",
        "toolcall",
        "tool",
        "tool_use",
        "function_call",
        "function_calls",
    }
)
"""Info strings of a code fence that is always a call."""

FENCE_INFO_STRINGS = CALL_INFO_STRINGS | {
    "", "json", "json5", "jsonc", "tools", "function", "xml", "python", "py", "text", "plaintext", "txt", "plain",
}  # fmt: skip
"""Info strings of a code fence that may be a call."""

_FIRST_KEY = re.compile(r"""(?P<quote>["'“‘]?)(?P<key>[^"'“”‘’:：=,{}\[\]\n]{0,64})(?P<end>["'”’]|\s*[:：=])?""")
MAX_BEFORE_KEY_CHARACTERS = 100
_IDENTIFIER = re.compile(r"[^\W\d][\w.\-]*")
_CALL_MARKER = compile_alternatives({*OPENERS, *TAGGED_CALL_STARTS} - {"functools["})
_VALUE_SEPARATOR = re.compile(r"[\s,;]*")


def may_be_call(text: str, at: int, tools: ToolIndex) -> bool | None:
    """Return whether the bracketed value at `at` may be a call.

    None if more text is needed.
    """
    for _ in range(4):
        at = skip_space(text, at)
        if at >= len(text):
            return None
        if text[at] != "[":
            break
        at += 1
    else:
        return False
    if text[at] == "{":
        return _key_may_begin_call(text, at, tools)
    name = _IDENTIFIER.match(text, at)
    if name is None:
        return False
    end = skip_space(text, name.end())
    return None if end >= len(text) else text[end] == "("


def _key_may_begin_call(text: str, at: int, tools: ToolIndex) -> bool | None:
    start = at
    while text.startswith("{", at):
        at = skip_space(text, at + 1)
    if at - start > MAX_BEFORE_KEY_CHARACTERS:
        return False
    if at >= len(text) or text.startswith("/*", at) or text[at:] == "/":
        return None
    match = _FIRST_KEY.match(text, at)
    if match is None:
        return False
    if match["end"] is None:
        return None if match.end() >= len(text) else False
    key = match["key"].strip()
    return key in FIRST_KEYS or tools.find(key)[0] is not None


@dataclass(slots=True)
class CallCandidate:
    """The content of buffered text: calls or a final answer, with reasoning.

    `is_uncertain` means that a call is repaired or reported only if no other call precedes it.
    """

    spans: list[CallSpan]
    answer: str = ""
    thinking: str = ""
    is_uncertain: bool = False


def classify_candidate(
    text: str, tools: ToolIndex, fence_info: str | None = None, is_ended: bool = False
) -> CallCandidate | None:
    """Classify buffered text; return None if it is not a call.

    `fence_info` is the info string of its code fence, and `is_ended` means that the fence was closed.
    """
    body = text.strip()
    if not body:
        return None
    if _CALL_MARKER.match(body):
        return _parse_marked_calls(body, tools)
    if body[0] in "{[" and not pythonic.LIST_PATTERN.match(body):
        return _parse_json_values(body, tools, is_ended)
    calls = pythonic.parse_python_calls(body, tools, is_code=fence_info in CALL_INFO_STRINGS)
    if not calls or (
        fence_info is None and not body.startswith("[") and not all(tools.find(call.name)[0] for call in calls)
    ):
        return None
    parser = "tool_code" if fence_info == "tool_code" else "pythonic"
    is_uncertain = isinstance(calls[-1], pythonic.UnfinishedCall)
    return CallCandidate([CallSpan(call, 0, 0, parser, call.id) for call in calls], is_uncertain=is_uncertain)


def _parse_marked_calls(body: str, tools: ToolIndex) -> CallCandidate | None:
    section = CallSection(tools, 0)
    end = section.scan(body, final=True)
    if end is None or body[end:].strip() or not section.spans:
        return None
    return CallCandidate(section.spans)


def _parse_json_values(body: str, tools: ToolIndex, is_ended: bool) -> CallCandidate | None:
    """Parse one or several JSON values."""
    candidate = CallCandidate([])
    at = 0
    while at < len(body):
        repairs = Repairs()
        start = at
        try:
            value, at = _parse_json_value(body, at, repairs)
            shape, is_unreadable = classify_value(value, tools, is_marked=False), False
        except (UnreadableText, RecursionError):
            shape, is_unreadable = None, True
        is_broken = shape is None and (is_unreadable or "unescaped quotation mark" in repairs.entries)
        if is_broken and (broken_call := find_broken_call(body[start:], tools)):
            is_uncertain = not is_unreadable or MISSING_END in broken_call.repairs
            return CallCandidate([*candidate.spans, CallSpan(broken_call, 0, 0, "json")], is_uncertain=is_uncertain)
        if shape is None or (candidate.spans and not shape.calls):
            return None
        candidate.spans.extend(create_json_span(call, repairs, 0, 0, shape.parser, is_ended) for call in shape.calls)
        candidate.answer = candidate.answer or shape.answer or ""
        candidate.thinking = candidate.thinking or shape.thinking
    return candidate


def _parse_json_value(body: str, at: int, repairs: Repairs) -> tuple[object, int]:
    if at == 0:
        try:
            return parse_json(body), len(body)
        except ValueError:
            pass
    value, at = LenientJsonParser(body, repairs).parse_value(at)
    at = skip_pattern(_VALUE_SEPARATOR, body, at)
    while at < len(body) and body[at] in "}])":
        repairs.add("extra closing bracket dropped")
        at = skip_pattern(_VALUE_SEPARATOR, body, at + 1)
    if at < len(body) and body[at] not in "{[":
        raise UnreadableText("there is text after the JSON value")
    return value, at
