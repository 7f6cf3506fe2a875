"""Calls written as Python: `f(x=1)`, `[f(x=1), g(y="a")]`, `print(f(x=1))`."""

import re
from typing import Any

from opposable.parsers.json_calls import RawCall
from opposable.parsers.lenient_json import LenientJsonParser, Repairs, UnreadableText, skip_space
from opposable.parsers.schema_coercion import SchemaNode
from opposable.parsers.tool_names import ToolIndex

CALL_PATTERN = re.compile(r"\s*(?:print\s*\(\s*)?(?P<name>[^\W\d][\w.\-]*)\s*\(")
LIST_PATTERN = re.compile(r"\[\s*[^\W\d][\w.\-]*\s*\(")
_KEYWORD = re.compile(r"\s*(\w+)\s*=\s*")
_MAX_CALLS = 256


def parse_python_calls(text: str, tools: ToolIndex) -> list[RawCall] | None:
    """The calls that `text` is; None where it is anything else, or names a tool that is not offered."""
    at = skip_space(text, 0)
    listed = text.startswith("[", at)
    at = at + 1 if listed else at
    result: list[RawCall] = []
    while found := CALL_PATTERN.match(text, at):
        if len(result) >= _MAX_CALLS:
            return None
        call, at = _parse_call(text, found, tools)
        if call is None:
            return None
        result.append(call)
        at = skip_space(text, at)
        if at < len(text) and text[at] in ",;":
            at = skip_space(text, at + 1)
    if listed and at < len(text) and text[at] == "]":
        at = skip_space(text, at + 1)
    elif listed:
        result = [_add_repair(call, "missing closing bracket added") for call in result]
    return result if result and at >= len(text) else None


def _add_repair(call: RawCall, repair: str) -> RawCall:
    return RawCall(call.name, call.raw_arguments, call.id, (*call.repairs, repair))


def _parse_call(text: str, match: re.Match[str], tools: ToolIndex) -> tuple[RawCall | None, int]:
    name = match["name"]
    tool, _ = tools.find(name)
    if tool is None and name.endswith(".call"):  # Llama's built-in tools: brave_search.call(query="…")
        name = name.removesuffix(".call")
        tool, _ = tools.find(name)
    repairs = Repairs()
    try:
        written, at = _parse_arguments(text, match.end(), tool.schema if tool else SchemaNode({}), repairs)
    except (UnreadableText, RecursionError):
        return None, match.end()
    if match[0].lstrip().startswith("print") and text.startswith(")", skip_space(text, at)):
        at = skip_space(text, at) + 1
    return RawCall(name, written, repairs=_select_reported_repairs(repairs)), at


def _select_reported_repairs(repairs: Repairs) -> tuple[str, ...]:
    """Python's own ways of writing need no mending here."""
    usual = ("single quotes", "Python literal", "Python tuple", "triple quotes")
    return tuple(repair for repair in repairs if repair not in usual)


def _parse_arguments(text: str, at: int, schema: SchemaNode, repairs: Repairs) -> tuple[dict[str, Any], int]:
    """The arguments from after the opening bracket at `at`, and the position after the closing one."""
    reader = LenientJsonParser(text, repairs)
    result: dict[str, Any] = {}
    names = list(schema.properties())
    named = False
    while True:
        at = skip_space(text, at)
        if at >= len(text):
            raise UnreadableText("the call ends in the middle", is_cut_off=True)
        if text[at] == ")":
            return result, at + 1
        if keyword := _KEYWORD.match(text, at):
            key, at = keyword[1], keyword.end()
            named = True
        elif not result and text.startswith("{", at) and (whole := _parse_single_object(reader, at, names)):
            return whole
        elif not named and len(result) < len(names):
            key = names[len(result)]
            repairs.add("arguments named by their order")
        else:
            raise UnreadableText("an argument without a name")
        if key in result:
            raise UnreadableText(f"{key} is given twice")
        result[key], at = reader.parse_value(at)
        at = skip_space(text, at)
        if at < len(text) and text[at] == ",":
            at += 1
        elif at < len(text) and text[at] != ")":
            raise UnreadableText("a comma should stand between arguments")


def _parse_single_object(reader: LenientJsonParser, at: int, names: list[str]) -> tuple[dict[str, Any], int] | None:
    """All arguments given as one object: `f({"x": 1})`; None where the object is itself the first argument."""
    value, end = reader.parse_value(at)
    end = skip_space(reader.text, end)
    if reader.text.startswith(")", end) and isinstance(value, dict) and value and all(key in names for key in value):
        return value, end + 1
    return None
