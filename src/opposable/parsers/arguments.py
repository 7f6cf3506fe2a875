"""Parsing of the arguments of one call, with the types of the tool's schema."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from opposable.domain.errors import FieldProblem
from opposable.domain.json_text import parse_json
from opposable.domain.localized_text import LocalizedText
from opposable.parsers.lenient_json import (
    LenientJsonParser,
    Repairs,
    UnreadableText,
    parse_lenient,
    skip_space,
)
from opposable.parsers.schema_coercion import SchemaNode, coerce_value

_FENCE = re.compile(r"\s*```[\w+-]*+\s*+(?P<body>.*)```\s*\Z", re.DOTALL)
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
"""Keys that models put around all of the arguments."""
MAX_UNWRAPPINGS = 3


@dataclass(frozen=True, slots=True)
class ParsedArguments:
    """The arguments of a call.

    Attributes:
        value: The arguments, or None if they cannot be parsed without guessing.
        problem: Why `value` is None, such as "the text ends in the middle of a string".
        repairs: Short descriptions of the repairs.
        is_cut_off: Whether the text only ends too early.
    """

    value: dict[str, Any] | None
    problem: str | None = None
    repairs: tuple[str, ...] = ()
    is_cut_off: bool = False


def parse_arguments(
    raw_arguments: str | dict[str, Any] | None, schema: dict[str, Any], truncated: bool = False
) -> ParsedArguments:
    """Parse the arguments of a call. Never raises, and never invents a value.

    Args:
        raw_arguments: The arguments as the model wrote them, or already decoded.
        schema: A JSON Schema of type object.
        truncated: Whether the model stopped at its token limit. If so, unfinished text is not repaired.
    """
    return coerce_arguments(raw_arguments, SchemaNode(schema), truncated)


def repair_arguments(
    arguments: str | dict[str, Any] | None, schema: dict[str, Any], problems: Sequence[FieldProblem]
) -> ParsedArguments:
    """Parse arguments that are not valid. Those of them that have no problem stay as they are.

    Args:
        arguments: As in `parse_arguments`.
        schema: A JSON Schema of type object.
        problems: What the validation of decoded arguments found, with the path of each value.
    """
    invalid: dict[str, Any] = {}
    if isinstance(arguments, dict):
        invalid = {name: value for name, value in arguments.items() if any(_is_at(one.field, name) for one in problems)}
    parsed = parse_arguments(invalid, schema) if invalid else None
    if parsed is None or parsed.value is None or parsed.value.keys() != invalid.keys():
        return parse_arguments(arguments, schema)
    coerced = {**arguments, **parsed.value}  # type: ignore[dict-item]  # it is a dict here
    return replace(parsed, value=_restore_valid(arguments, coerced, [one.field for one in problems]))


def _restore_valid(value: Any, coerced: Any, paths: Sequence[str]) -> Any:
    """Return the coerced value with its parts that have no problem as they were; the paths of problems begin in it."""
    if not paths:
        return value
    keys: Sequence[Any] = ()
    if isinstance(value, dict) and isinstance(coerced, dict) and value.keys() == coerced.keys():
        keys = tuple(value)
    elif isinstance(value, list) and isinstance(coerced, list) and len(value) == len(coerced):
        keys = range(len(value))
    inner = {key: [path[len(f"{key}.") :] for path in paths if _is_at(path, str(key))] for key in keys}
    if sum(map(len, inner.values())) < len(paths):  # the value itself has a problem
        return coerced
    parts = {key: _restore_valid(value[key], coerced[key], inner[key]) for key in keys}
    return parts if isinstance(value, dict) else list(parts.values())


def _is_at(path: str, name: str) -> bool:
    """Return whether the path of a value begins with the name of an argument."""
    return path == name or path.startswith(f"{name}.")


def coerce_arguments(
    raw_arguments: Any, schema: SchemaNode, truncated: bool = False, earlier_repairs: tuple[str, ...] = ()
) -> ParsedArguments:
    """Parse JSON text, or an already decoded value, as arguments.

    Args:
        raw_arguments: The JSON text or the value.
        schema: The schema of the arguments.
        truncated: Whether the model stopped at its token limit.
        earlier_repairs: Repairs already made, to be reported with the new ones.
    """
    repairs = Repairs(dict.fromkeys(earlier_repairs))
    try:
        decoded = _unwrap_object(raw_arguments, schema, repairs)
        if repairs.is_unfinished:
            _reject_unfinished(decoded, schema, truncated)
        coerced = coerce_value(decoded, schema, repairs)
    except UnreadableText as error:
        return ParsedArguments(None, error.problem, tuple(repairs), error.is_cut_off)
    except RecursionError:
        return ParsedArguments(None, LocalizedText("nested too deeply", "嵌套过深"), tuple(repairs))
    return ParsedArguments(coerced, None, tuple(repairs))


def parse_written_arguments(
    raw_arguments: Any, schema: SchemaNode, truncated: bool = False, earlier_repairs: tuple[str, ...] = ()
) -> ParsedArguments:
    """Parse the arguments of a call in a text, as `coerce_arguments`. Valid values of a JSON object are not changed."""
    result = coerce_arguments(raw_arguments, schema, truncated, earlier_repairs)
    if result.value is not None and len(result.repairs) <= len(set(earlier_repairs)):
        return result
    try:
        parsed_json = parse_json(raw_arguments) if isinstance(raw_arguments, str) else raw_arguments
    except ValueError:
        return result
    paths = schema.find_invalid_paths(parsed_json) if isinstance(parsed_json, dict) else None
    if paths:
        return replace(result, value=_restore_valid(parsed_json, result.value, paths))
    return result if paths is None else ParsedArguments(parsed_json, None, tuple(dict.fromkeys(earlier_repairs)))


def _reject_unfinished(value: dict[str, Any], schema: SchemaNode, truncated: bool) -> None:
    if truncated or schema.lacks_property(value):
        raise UnreadableText("the JSON ends before its closing bracket", is_cut_off=True)


def _unwrap_object(raw_arguments: Any, schema: SchemaNode, repairs: Repairs) -> dict[str, Any]:
    for _ in range(MAX_UNWRAPPINGS):
        if raw_arguments is None:
            raw_arguments = ""
        if isinstance(raw_arguments, str):
            raw_arguments = _decode_text(raw_arguments, schema, repairs)
        if isinstance(raw_arguments, dict):
            wrapped_arguments = _get_wrapped_arguments(raw_arguments, schema)
            if wrapped_arguments is None:
                return raw_arguments
            repairs.add("wrapper around the arguments dropped")
            raw_arguments = wrapped_arguments
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
    """Decode the text of the arguments, which may be in a code fence."""
    try:
        value = parse_json(text) if text.strip() else None
    except ValueError:
        pass
    else:
        return _empty_arguments(schema) if value is None else value
    if fence := _FENCE.match(text):
        repairs.add("code fence dropped")
        text = fence["body"].rstrip()
    start = skip_space(text, 0)
    if start < len(text) and text[start] not in "{[\"'“‘":
        return parse_keywords(text, schema, repairs)
    return parse_lenient(text, repairs)


def _empty_arguments(schema: SchemaNode) -> dict[str, Any]:
    if missing := schema.required_names():
        english = f"they are empty, but {', '.join(missing)} must be given"
        raise UnreadableText(LocalizedText(english, f"内容为空，但必须提供 {'、'.join(missing)}"))
    return {}


def _get_wrapped_arguments(value: dict[str, Any], schema: SchemaNode) -> Any:
    """Return the content of a wrapper such as {"arguments": {…}}, which may have the tool's name, or None."""
    properties = schema.properties()
    keys = [key for key in value if key != "name" or key in properties]
    is_wrapper = len(keys) == 1 and keys[0] in WRAPPER_KEYS and keys[0] not in properties
    return value[keys[0]] if is_wrapper and isinstance(value[keys[0]], dict | str) else None


def parse_keywords(text: str, schema: SchemaNode, repairs: Repairs) -> dict[str, Any]:
    """Parse arguments written as `a=2, b="x"`.

    Raises:
        UnreadableText: The text has another form, or names a property that the schema lacks.
    """
    properties = schema.properties()
    parser = LenientJsonParser(text, repairs)
    result: dict[str, Any] = {}
    at = 0
    while match := _KEYWORD.match(text, at):
        if match[1] not in properties or match[1] in result:
            break
        result[match[1]], at = parser.parse_value(match.end())
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
