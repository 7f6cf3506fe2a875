"""Text that is held back because it may turn out to be a call: what it may be, and what it is."""

import re
from dataclasses import dataclass

from opposable.parsers import pythonic
from opposable.parsers.call_section import Found, Section, Whole
from opposable.parsers.json_calls import FIRST_KEYS, RawCall, broken_call, shape_of
from opposable.parsers.lenient_json import LenientReader, Repairs, Unreadable, skip_space, strict
from opposable.parsers.markers import OPENERS, TAGGED_STEMS, one_of
from opposable.parsers.tool_names import Tools

FENCE_INFO = frozenset({
    "", "json", "json5", "jsonc", "tool_call", "tool_calls", "tool-call", "toolcall", "tool_code", "tool", "tool_use", "tools",
    "function_call", "function_calls", "function", "xml", "python", "py", "text", "plaintext", "txt", "plain",
})  # fmt: skip
"""What may stand behind the backticks of a fence that is an act."""

ACT_INFO = frozenset(
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
"""What stands there only if it is one."""

_FIRST_KEY = re.compile(
    r"""\{[\s{]*(?P<quote>["'“‘]?)(?P<key>[^"'“”‘’:：=,{}\[\]\n]{0,64})(?P<end>["'”’]|\s*[:：=])?"""
)
_IDENTIFIER = re.compile(r"[^\W\d][\w.\-]*")
_MARKUP = one_of({*OPENERS, *TAGGED_STEMS} - {"functools["})
_VALUE_JOINT = re.compile(r"[\s,;]*")


def may_be_call(text: str, at: int, tools: Tools) -> bool | None:
    """Whether what begins with a bracket at `at` may be a call; None while too little of it is there."""
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


def _key_may_begin_call(text: str, at: int, tools: Tools) -> bool | None:
    found = _FIRST_KEY.match(text, at)
    if found is None:
        return False
    if found["end"] is None:
        return None if found.end() >= len(text) else False
    key = found["key"].strip()
    return key in FIRST_KEYS or tools.find(key)[0] is not None


@dataclass(slots=True)
class Held:
    """What a held text is: calls, or the seed protocol's final answer, with the reasoning beside them."""

    found: list[Found]
    answer: str = ""
    thinking: str = ""


def held_in(text: str, tools: Tools, fence: str | None = None) -> Held | None:
    """What a held text is from beginning to end; None where it is no call. `fence` is the word behind its backticks."""
    body = text.strip()
    if not body:
        return None
    if _MARKUP.match(body):
        return _marked(body, tools)
    if body[0] in "{[" and not pythonic.LIST.match(body):
        return _values(body, tools)
    calls = pythonic.calls_in(body, tools)
    if not calls or (
        fence is None and not body.startswith("[") and not all(tools.find(call.name)[0] for call in calls)
    ):
        return None
    dialect = "tool_code" if fence == "tool_code" else "pythonic"
    return Held([Found(call, 0, 0, dialect, call.id) for call in calls])


def _marked(body: str, tools: Tools) -> Held | None:
    section = Section(tools, 0)
    end = section.scan(body, final=True)
    if end is None or body[end:].strip() or not section.found:
        return None
    return Held(section.found)


def _values(body: str, tools: Tools) -> Held | None:
    """One JSON value or several, one after another."""
    result = Held([])
    at = 0
    while at < len(body):
        repairs = Repairs()
        try:
            value, at = _value(body, at, repairs)
        except (Unreadable, RecursionError):
            broken = broken_call(body, tools)
            return Held([*result.found, Found(broken, 0, 0, "json")]) if broken else None
        shape = shape_of(value, tools, marked=False)
        if shape is None or (result.found and not shape.calls):
            return None
        result.found.extend(_found(call, repairs, shape.dialect) for call in shape.calls)
        result.answer = result.answer or shape.answer or ""
        result.thinking = result.thinking or shape.thinking
    return result


def _found(call: RawCall, repairs: Repairs, dialect: str) -> Found:
    mended = RawCall(call.name, call.written, call.id, (*repairs, *call.repairs))
    return Found(Whole(mended, repairs.unfinished), 0, 0, dialect, call.id)


def _value(body: str, at: int, repairs: Repairs) -> tuple[object, int]:
    if at == 0:
        try:
            return strict(body), len(body)
        except ValueError:
            pass
    value, at = LenientReader(body, repairs).value(at)
    at = _joint(body, at)
    while at < len(body) and body[at] in "}])":
        repairs.add("extra closing bracket dropped")
        at = _joint(body, at + 1)
    if at < len(body) and body[at] not in "{[":
        raise Unreadable("there is text after the JSON value")
    return value, at


def _joint(body: str, at: int) -> int:
    found = _VALUE_JOINT.match(body, at)
    return found.end() if found else at
