"""Tool calls from the code of a reply."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from opposable.domain.tools import ToolCall, ToolDefinition, new_call_id
from opposable.models.python_protocol.grammar import NUMBER_PATTERN, PYTHON_LITERALS
from opposable.models.python_protocol.prompts import CODE_FENCE, list_parameters
from opposable.parsers import parse
from opposable.parsers.schema_coercion import SchemaNode

MAX_CALLS = 64
"""Calls read from one reply."""

_JSON_LITERALS = {written: literal for literal, written in PYTHON_LITERALS.items()}
_LITERAL_PATTERN = re.compile(r'"(?:[^"\\]|\\.)*"|\b(?:True|False|None)\b')
"""Texts, in which nothing is replaced, and the literals of Python."""

_MAX_EXACT_FLOAT = 2**53
"""Up to here, a whole number is the same as a float."""

_DECODER = json.JSONDecoder()


def read_calls(code: str, tools: Sequence[ToolDefinition], *, is_truncated: bool = False) -> tuple[ToolCall, ...]:
    """Return the calls of offered tools in `code`, in the form that the grammar enforces.

    Code in another form, from servers that ignore the grammar, is left to the parser of written calls.

    Args:
        code: The code that the model wrote.
        tools: The tools that may be called.
        is_truncated: Whether the token limit cut the code off. An unfinished call is left out.
    """
    calls: list[ToolCall] = []
    left = _LITERAL_PATTERN.sub(lambda found: _JSON_LITERALS.get(found[0], found[0]), code.strip())
    while left and len(calls) < MAX_CALLS and (found := _read_call(left, tools)):
        calls.append(found[0])
        left = left[found[1] :].lstrip()
    if not left or len(calls) == MAX_CALLS or (calls and is_truncated):
        return tuple(calls)
    fenced = f"{CODE_FENCE}tool_code\n{code.strip()}\n{'' if is_truncated else CODE_FENCE}"
    parsed = next(filter(None, (parse(t, tuple(tools), truncated=is_truncated).calls for t in (fenced, code))), ())
    return tuple(replace(call, id=new_call_id(), dialect="python") for call in parsed[:MAX_CALLS])


def _read_call(code: str, tools: Sequence[ToolDefinition]) -> tuple[ToolCall, int] | None:
    """Return the call `name(key=JSON, ...)` that the code begins with, and its length."""
    tool = next((tool for tool in tools if code.startswith(f"{tool.name}(")), None)
    if tool is None:
        return None
    names = sorted(list_parameters(tool.parameters), key=len, reverse=True)
    arguments: dict[str, Any] = {}
    at = len(tool.name) + 1
    while not code.startswith(")", at):
        name = next((name for name in names if code.startswith(f"{name}=", at)), None)
        if name is None:
            return None
        try:
            value, at = _read_value(code, at + len(name) + 1, SchemaNode(tool.parameters).get_property(name))
        except (ValueError, RecursionError):
            return None
        arguments.setdefault(name, value)
        if code.startswith(", ", at):
            at += 2
        elif not code.startswith(")", at):
            return None
    return ToolCall(new_call_id(), tool.name, arguments, dialect="python"), at + 1


def _read_value(code: str, start: int, schema: SchemaNode) -> tuple[Any, int]:
    """Return the value that begins at `start`, and its end.

    A number where a text is expected is read as it is written. Raises: ValueError, RecursionError.
    """
    number = NUMBER_PATTERN.match(code, start)
    if number and schema.allowed_types() - {"null"} == {"string"}:
        return number[0], number.end()
    value, end = _DECODER.raw_decode(code, start)
    return _read_items(value, schema), end


def _read_items(value: Any, schema: SchemaNode) -> Any:
    """Return a value whose lists of numbers hold floats, as their annotation `list[float]` says."""
    if not isinstance(value, list):
        return value
    schemas = [schema.get_alternative("array").get_item_schema(n) for n in range(len(value))]
    return [
        float(item)
        if type(item) is int and abs(item) <= _MAX_EXACT_FLOAT and about.allowed_types() - {"null"} == {"number"}
        else _read_items(item, about)
        for item, about in zip(value, schemas, strict=True)
    ]
