"""Reads the arguments of one call, native or written, as the tool's schema types them."""

import re
from dataclasses import dataclass
from typing import Any

from opposable.parsers.lenient_json import (
    LenientJsonParser,
    Repairs,
    UnreadableText,
    parse_lenient,
    parse_strict,
    skip_space,
)
from opposable.parsers.schema_coercion import SchemaNode, coerce_value

_FENCE = re.compile(r"\s*```[\w+-]*\s*\n?(?P<body>.*?)\n?\s*```\s*\Z", re.DOTALL)
_KEYWORD = re.compile(r"\s*([^\W\d]\w*)\s*[=:]\s*")
WRAPPER_KEYS = (
    "arguments",
    "parameters",
    "args",
    "input",
    "params",
    "kwargs",
    "tool_input",
    "action_input",
    "properties",
)
"""Names that models put around all of the arguments."""
MAX_UNWRAPPINGS = 3


@dataclass(frozen=True, slots=True)
class ParsedArguments:
    """Arguments that were read.

    `value` is None exactly where `problem` tells, in a sentence for the model, why they cannot be read faithfully.
    `repairs` says what was mended. `cut` is true where the text only ends too early.
    """

    value: dict[str, Any] | None
    problem: str | None = None
    repairs: tuple[str, ...] = ()
    is_cut_off: bool = False


def parse_arguments(
    raw_arguments: str | dict[str, Any] | None, schema: dict[str, Any], truncated: bool = False
) -> ParsedArguments:
    """Return the arguments in JSON text or in a decoded object, typed by `schema` (a JSON Schema of type object).

    `truncated` says that the model was stopped by its token limit: then nothing unfinished is mended. A value is
    never invented: what cannot be read faithfully is told as a problem. Never raises.
    """
    return coerce_arguments(raw_arguments, SchemaNode(schema), truncated)


def coerce_arguments(
    raw_arguments: Any, schema: SchemaNode, truncated: bool = False, earlier_repairs: tuple[str, ...] = ()
) -> ParsedArguments:
    """The arguments in `given`, which is JSON text or a value already decoded; `noted` are repairs made before."""
    repairs = Repairs(dict.fromkeys(earlier_repairs))
    try:
        value = _unwrap_object(raw_arguments, schema, repairs)
        if repairs.is_unfinished:
            _reject_unfinished(value, schema, truncated)
        result = coerce_value(value, schema, repairs)
    except UnreadableText as problem:
        return ParsedArguments(None, f"The arguments cannot be read: {problem}.", tuple(repairs), problem.is_cut_off)
    except RecursionError:
        return ParsedArguments(None, "The arguments cannot be read: nested too deeply.", tuple(repairs))
    return ParsedArguments(result, None, tuple(repairs))


def _reject_unfinished(value: dict[str, Any], schema: SchemaNode, truncated: bool) -> None:
    missing = [name for name in schema.required_names() if name not in value]
    if truncated or missing:
        raise UnreadableText("the JSON ends before its closing bracket", is_cut_off=True)


def _unwrap_object(raw_arguments: Any, schema: SchemaNode, repairs: Repairs) -> dict[str, Any]:
    for _ in range(MAX_UNWRAPPINGS):
        if raw_arguments is None:
            raw_arguments = ""
        if isinstance(raw_arguments, str):
            raw_arguments = _decode_text(raw_arguments, schema, repairs)
        if isinstance(raw_arguments, dict):
            inner = _get_wrapped_arguments(raw_arguments, schema)
            if inner is None:
                return raw_arguments
            repairs.add("wrapper around the arguments dropped")
            raw_arguments = inner
        elif isinstance(raw_arguments, list) and len(raw_arguments) == 1 and isinstance(raw_arguments[0], dict):
            repairs.add("list around the arguments dropped")
            raw_arguments = raw_arguments[0]
        elif isinstance(raw_arguments, str):
            repairs.add("arguments encoded twice")
        else:
            break
    if isinstance(raw_arguments, dict):
        return raw_arguments
    raise UnreadableText(f"they should be a JSON object, not {_describe_type(raw_arguments)}")


def _decode_text(text: str, schema: SchemaNode, repairs: Repairs) -> Any:
    """The value of arguments text, which may stand in a fence."""
    try:
        return parse_strict(text)
    except ValueError:
        pass
    if not text.strip():
        return _empty_arguments(schema)
    if fence := _FENCE.match(text):
        repairs.add("code fence dropped")
        text = fence["body"]
    start = skip_space(text, 0)
    if start < len(text) and text[start] not in "{[\"'“‘":
        return parse_keywords(text, schema, repairs)
    return parse_lenient(text, repairs)


def _empty_arguments(schema: SchemaNode) -> dict[str, Any]:
    if missing := schema.required_names():
        raise UnreadableText(f"they are empty, but {', '.join(missing)} must be given")
    return {}


def _get_wrapped_arguments(value: dict[str, Any], schema: SchemaNode) -> Any:
    """What stands inside a wrapper such as {"arguments": {…}}; None where `value` is no wrapper."""
    properties = schema.properties()
    keys = [key for key in value if key in WRAPPER_KEYS and key not in properties]
    others = [key for key in value if key not in keys]
    if len(keys) != 1 or not isinstance(value[keys[0]], dict | str):
        return None
    if all(key in ("name", "type", "id") and key not in properties for key in others):
        return value[keys[0]]
    return None


def parse_keywords(text: str, schema: SchemaNode, repairs: Repairs) -> dict[str, Any]:
    """Arguments written as `a=2, b="x"`; every name must be one the schema knows.

    Raises:
        Unreadable: it is not written so, or names something else.
    """
    properties = schema.properties()
    reader = LenientJsonParser(text, repairs)
    result: dict[str, Any] = {}
    at = 0
    while match := _KEYWORD.match(text, at):
        if match[1] not in properties or match[1] in result:
            break
        result[match[1]], at = reader.parse_value(match.end())
        at = skip_space(text, at)
        if at >= len(text):
            repairs.add("keyword arguments for JSON")
            repairs.is_unfinished = False
            return result
        if text[at] not in ",;":
            break
        at += 1
    raise UnreadableText("they should be a JSON object")


def _describe_type(value: Any) -> str:
    names = {list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null")
