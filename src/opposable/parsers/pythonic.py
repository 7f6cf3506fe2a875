"""The Pythonic format: `f(x=1)`, `[f(x=1), g(y="a")]`, `print(f(x=1))`."""

import re
from dataclasses import dataclass, replace
from typing import Any

from opposable.parsers.arguments import ParsedArguments
from opposable.parsers.json_calls import RawCall
from opposable.parsers.lenient_json import LenientJsonParser, Repairs, UnreadableText, skip_space
from opposable.parsers.schema_coercion import SchemaNode
from opposable.parsers.tool_names import ToolIndex

CALL_PATTERN = re.compile(r"\s*(?P<print>print\s*\(\s*)?(?P<name>[^\W\d][\w.\-]*)\s*\(")
_STATEMENT_PATTERN = re.compile(
    r"\s*(?:[^\W\d]\w*\s*=\s*)?(?P<print>print\s*\(\s*)?(?:await\s+)?(?P<name>[^\W\d][\w.\-]*)\s*\("
)
"""A call in code, where its result may be awaited, assigned and printed."""
_PRINT_RESULT = re.compile(r"\s*print\s*\(\s*[^\W\d]\w*\s*\)\s*;?")
LIST_PATTERN = re.compile(r"\[\s*[^\W\d][\w.\-]*\s*\(")
_KEYWORD = re.compile(r"\s*(\w+)\s*=\s*")
_MAX_CALLS = 256


@dataclass(frozen=True, slots=True)
class UnfinishedCall(RawCall):
    """A call that ends within its arguments, which is reported but not made."""

    def parse_arguments(self, schema: SchemaNode, truncated: bool) -> ParsedArguments:
        """Report that the call is cut off."""
        return ParsedArguments(None, "the call ends in the middle", is_cut_off=True)


def parse_python_calls(text: str, tools: ToolIndex, is_code: bool = False) -> list[RawCall] | None:
    """Parse text that consists of Python calls.

    Return None if it contains anything else. In code, the results may be assigned and printed.
    """
    pattern = _STATEMENT_PATTERN if is_code else CALL_PATTERN
    at = skip_space(text, 0)
    is_list = text.startswith("[", at)
    at = at + 1 if is_list else at
    calls: list[RawCall] = []
    while match := pattern.match(text, at):
        if is_code and calls and (printed := _PRINT_RESULT.match(text, at)):
            at = skip_space(text, printed.end())
            continue
        if len(calls) >= _MAX_CALLS:
            return None
        call, at = _parse_call(text, match, tools)
        if call is None:
            return None
        calls.append(call)
        at = skip_space(text, at)
        if at < len(text) and text[at] in ",;":
            at = skip_space(text, at + 1)
    if is_list and at < len(text) and text[at] == "]":
        at = skip_space(text, at + 1)
    elif is_list:
        calls = [replace(call, repairs=(*call.repairs, "missing closing bracket added")) for call in calls]
    return calls if calls and at >= len(text) else None


def _parse_call(text: str, match: re.Match[str], tools: ToolIndex) -> tuple[RawCall | None, int]:
    """Parse one call; return the call and the position after it."""
    name = match["name"]
    tool, _ = tools.find(name)
    if tool is None and name.endswith(".call"):  # Llama's built-in tools: brave_search.call(query="…")
        name = name.removesuffix(".call")
        tool, _ = tools.find(name)
    repairs = Repairs()
    try:
        arguments, at = _parse_arguments(text, match.end(), tool.schema if tool else SchemaNode({}), repairs)
    except UnreadableText as error:
        if not error.is_cut_off or tool is None:
            return None, match.end()
        return UnfinishedCall(name, text[match.end() :]), len(text)
    except RecursionError:
        return None, match.end()
    if match["print"] and text.startswith(")", skip_space(text, at)):
        at = skip_space(text, at) + 1
    return RawCall(name, arguments, repairs=_select_reported_repairs(repairs)), at


def _select_reported_repairs(repairs: Repairs) -> tuple[str, ...]:
    """Return the repairs without those that are plain Python notation."""
    python_notation = ("single quotes", "Python literal", "Python tuple", "triple quotes")
    return tuple(repair for repair in repairs if repair not in python_notation)


def _parse_arguments(text: str, at: int, schema: SchemaNode, repairs: Repairs) -> tuple[dict[str, Any], int]:
    """Parse the arguments after the opening bracket.

    Return them and the position after the closing bracket.
    """
    parser = LenientJsonParser(text, repairs)
    result: dict[str, Any] = {}
    names = list(schema.properties())
    has_keyword = False
    while True:
        at = skip_space(text, at)
        if at >= len(text):
            raise UnreadableText("the call ends in the middle", is_cut_off=True)
        if text[at] == ")":
            return result, at + 1
        if keyword := _KEYWORD.match(text, at):
            key, at = keyword[1], keyword.end()
            has_keyword = True
        elif not result and text.startswith("{", at) and (single_object := _parse_single_object(parser, at, names)):
            return single_object
        elif not has_keyword and len(result) < len(names):
            key = names[len(result)]
            repairs.add("arguments named by their order")
        else:
            raise UnreadableText("an argument without a name")
        if key in result:
            raise UnreadableText(f"{key} is given twice")
        result[key], at = parser.parse_value(at)
        at = skip_space(text, at)
        if at < len(text) and text[at] == ",":
            at += 1
        elif at < len(text) and text[at] != ")":
            raise UnreadableText("a comma should stand between arguments")


def _parse_single_object(reader: LenientJsonParser, at: int, names: list[str]) -> tuple[dict[str, Any], int] | None:
    """Parse arguments given as one object, `f({"x": 1})`.

    Return None if the object is itself the first argument.
    """
    value, end = reader.parse_value(at)
    end = skip_space(reader.text, end)
    if reader.text.startswith(")", end) and isinstance(value, dict) and value and all(key in names for key in value):
        return value, end + 1
    return None
