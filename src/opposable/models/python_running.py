"""Tools that run what they are given, as a command line or SQL: they fit whatever the request says is to be run."""

import re
from collections.abc import Sequence

import orjson

from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.python_said import words

_NAME = re.compile(r"(?:command|cmd|code|script|sql|query|program|statement|expression)(?:_?(?:line|text|string))?")
_ABOUT = re.compile(
    r"\b(?:commands?|code|scripts?|sql|programs?|statements?|shell)\b|命令|代码|脚本|语句", re.IGNORECASE
)


def runner(tools: Sequence[ToolDefinition]) -> tuple[str, str] | None:
    """The tool that runs what it is given, and its parameter for that; None where there is none, or more than one."""
    found = [(tool.name, name) for tool in tools if (name := _run_by(tool))]
    return found[0] if len(found) == 1 else None


def is_said(call: ToolCall, parameter: str, asked: Sequence[str]) -> bool:
    """Whether `asked`, the words of the request, say what the call is to run: all of it, in more than one word.

    A request that says nothing else is no request to run it: "shut up" is no command line.
    """
    value = orjson.loads(call.arguments).get(parameter)
    held = words(value) if isinstance(value, str) else []
    return 1 < len(held) < len(asked) and set(held) <= set(asked)


def _run_by(tool: ToolDefinition) -> str:
    properties = tool.parameters.get("properties") or {}
    for name in tool.parameters.get("required") or ():
        about = properties.get(name) or {}
        if about.get("type") == "string" and "enum" not in about and _NAME.fullmatch(name.lower()):
            return name if _ABOUT.search(f"{tool.description} {about.get('description') or ''}") else ""
    return ""
