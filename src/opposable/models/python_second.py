"""A second look where the model saw no fitting function: a call that the request says whole is made all the same.

A small model does not think that a function that runs commands is one that lists files, and takes the way out.
"""

import re
from collections.abc import Sequence
from typing import Any

import orjson

from opposable.dialects.by_schema import Schema
from opposable.domain.language import words
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.python_said import choices_said, explains_numbers, stands_for

_NAME = re.compile(r"(?:command|cmd|code|script|sql|query|program|statement|expression)(?:_?(?:line|text|string))?")
_ABOUT = re.compile(
    r"\b(?:commands?|code|scripts?|sql|programs?|statements?|shell)\b|命令|代码|脚本|语句", re.IGNORECASE
)


def may_be_said_whole(tools: Sequence[ToolDefinition]) -> bool:
    """Whether a request may say whole what one of the tools requires: what it is to run, choices, explained numbers."""
    return any(_run_by(tool.description, tool.parameters) or _is_sayable(Schema(tool.parameters)) for tool in tools)


def runner(tools: Sequence[ToolDefinition]) -> str:
    """The tool that runs what it is given, as a command line or SQL; "" where there is none, or more than one."""
    found = [tool.name for tool in tools if _run_by(tool.description, tool.parameters)]
    return found[0] if len(found) == 1 else ""


def is_said_whole(calls: Sequence[ToolCall], tools: Sequence[ToolDefinition], asked: Sequence[str]) -> bool:
    """Whether there is one call, and `asked`, the words of the request, say all that its function requires.

    What is to be run is said in more than one word, a choice as it is, a number as its description explains it. A request
    that holds nothing but a text is no request to run it: "shut up" is no command line.
    """
    if len(calls) != 1:
        return False
    tool = next((tool for tool in tools if tool.name == calls[0].name), None)
    schema = Schema(tool.parameters if tool else {})
    run = _run_by(tool.description, tool.parameters) if tool else ""
    given = orjson.loads(calls[0].arguments)
    return bool(schema.required()) and all(
        _is_said_to_run(given.get(name), asked)
        if name == run
        else _is_said(given.get(name), schema.property(name), asked)
        for name in schema.required()
    )


def _is_said_to_run(value: Any, asked: Sequence[str]) -> bool:
    held = words(value) if isinstance(value, str) else []
    return 1 < len(held) < len(asked) and set(held) <= set(asked)


def _is_said(value: Any, about: Schema, asked: Sequence[str]) -> bool:
    if type(value) is int:
        return stands_for(value, about.description(), asked)
    return isinstance(value, str) and value in about.choices() and value in choices_said([value], asked)


def _is_sayable(schema: Schema) -> bool:
    required = [schema.property(name) for name in schema.required()]
    return bool(required) and all(
        each.choices() or (each.kinds() == {"integer"} and explains_numbers(each.description())) for each in required
    )


def _run_by(description: str, parameters: dict[str, Any]) -> str:
    """The required parameter that takes what a tool is to run; "" where it has none."""
    properties = parameters.get("properties") or {}
    for name in parameters.get("required") or ():
        about = properties.get(name) or {}
        if about.get("type") == "string" and "enum" not in about and _NAME.fullmatch(name.lower()):
            return name if _ABOUT.search(f"{description} {about.get('description') or ''}") else ""
    return ""
