"""Reads the arguments of one call, native or written, as the tool's schema types them."""

import re
from dataclasses import dataclass
from typing import Any

from opposable.parsers.lenient_json import LenientReader, Repairs, Unreadable, lenient, skip_space, strict
from opposable.parsers.schema_coercion import Schema, typed

_FENCE = re.compile(r"\s*```[\w+-]*\s*\n?(?P<body>.*?)\n?\s*```\s*\Z", re.DOTALL)
_KEYWORD = re.compile(r"\s*([^\W\d]\w*)\s*[=:]\s*")
WRAPPERS = ("arguments", "parameters", "args", "input", "params", "kwargs", "tool_input", "action_input", "properties")
"""Names that models put around all of the arguments."""
MAX_UNWRAPPINGS = 3


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments that were read.

    `value` is None exactly where `problem` tells, in a sentence for the model, why they cannot be read faithfully.
    `repairs` says what was mended. `cut` is true where the text only ends too early.
    """

    value: dict[str, Any] | None
    problem: str | None = None
    repairs: tuple[str, ...] = ()
    cut: bool = False


def read_arguments(text: str, schema: dict[str, Any], truncated: bool = False) -> Arguments:
    """The arguments that `text` holds, typed by `schema` (a JSON Schema of type object).

    `truncated` says that the model was stopped by its token limit: then nothing unfinished is mended. A value is
    never invented: what cannot be read faithfully is told as a problem. Never raises.
    """
    return arguments_of(text, Schema(schema), truncated)


def arguments_of(given: Any, schema: Schema, truncated: bool = False, noted: tuple[str, ...] = ()) -> Arguments:
    """The arguments in `given`, which is JSON text or a value already decoded; `noted` are repairs made before."""
    repairs = Repairs(dict.fromkeys(noted))
    try:
        value = _object(given, schema, repairs)
        if repairs.unfinished:
            _refuse_unfinished(value, schema, truncated)
        result = typed(value, schema, repairs)
    except Unreadable as problem:
        return Arguments(None, f"The arguments cannot be read: {problem}.", tuple(repairs), problem.cut)
    except RecursionError:
        return Arguments(None, "The arguments cannot be read: nested too deeply.", tuple(repairs))
    return Arguments(result, None, tuple(repairs))


def _refuse_unfinished(value: dict[str, Any], schema: Schema, truncated: bool) -> None:
    missing = [name for name in schema.required() if name not in value]
    if truncated or missing:
        raise Unreadable("the JSON ends before its closing bracket", cut=True)


def _object(given: Any, schema: Schema, repairs: Repairs) -> dict[str, Any]:
    for _ in range(MAX_UNWRAPPINGS):
        if given is None:
            given = ""
        if isinstance(given, str):
            given = _decoded(given, schema, repairs)
        if isinstance(given, dict):
            inner = _wrapped(given, schema)
            if inner is None:
                return given
            repairs.add("wrapper around the arguments dropped")
            given = inner
        elif isinstance(given, list) and len(given) == 1 and isinstance(given[0], dict):
            repairs.add("list around the arguments dropped")
            given = given[0]
        elif isinstance(given, str):
            repairs.add("arguments encoded twice")
        else:
            break
    if isinstance(given, dict):
        return given
    raise Unreadable(f"they should be a JSON object, not {_name_of(given)}")


def _decoded(text: str, schema: Schema, repairs: Repairs) -> Any:
    """The value of arguments text, which may stand in a fence."""
    try:
        return strict(text)
    except ValueError:
        pass
    if not text.strip():
        return _no_arguments(schema)
    if fence := _FENCE.match(text):
        repairs.add("code fence dropped")
        text = fence["body"]
    start = skip_space(text, 0)
    if start < len(text) and text[start] not in "{[\"'“‘":
        return keywords(text, schema, repairs)
    return lenient(text, repairs)


def _no_arguments(schema: Schema) -> dict[str, Any]:
    if missing := schema.required():
        raise Unreadable(f"they are empty, but {', '.join(missing)} must be given")
    return {}


def _wrapped(value: dict[str, Any], schema: Schema) -> Any:
    """What stands inside a wrapper such as {"arguments": {…}}; None where `value` is no wrapper."""
    properties = schema.properties()
    keys = [key for key in value if key in WRAPPERS and key not in properties]
    others = [key for key in value if key not in keys]
    if len(keys) != 1 or not isinstance(value[keys[0]], dict | str):
        return None
    if all(key in ("name", "type", "id") and key not in properties for key in others):
        return value[keys[0]]
    return None


def keywords(text: str, schema: Schema, repairs: Repairs) -> dict[str, Any]:
    """Arguments written as `a=2, b="x"`; every name must be one the schema knows.

    Raises:
        Unreadable: it is not written so, or names something else.
    """
    properties = schema.properties()
    reader = LenientReader(text, repairs)
    result: dict[str, Any] = {}
    at = 0
    while match := _KEYWORD.match(text, at):
        if match[1] not in properties or match[1] in result:
            break
        result[match[1]], at = reader.value(match.end())
        at = skip_space(text, at)
        if at >= len(text):
            repairs.add("keyword arguments for JSON")
            repairs.unfinished = False
            return result
        if text[at] not in ",;":
            break
        at += 1
    raise Unreadable("they should be a JSON object")


def _name_of(value: Any) -> str:
    names = {list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null")
