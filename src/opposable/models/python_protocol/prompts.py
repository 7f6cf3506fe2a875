"""The texts of the Python protocol: functions told as signatures, what is asked for, calls and results as text.

Measured on the embedded model: as Python it reads fewer tokens and writes half of those that JSON takes, gets more
calls right, and writes several calls where several things are asked for.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from opposable.domain.messages import Message
from opposable.domain.tools import ToolCall, ToolDefinition, new_call_id
from opposable.models.base import Named, ToolChoice
from opposable.models.http_client import to_json
from opposable.parsers.lenient_json import strict
from opposable.parsers.schema_coercion import Schema

FENCE = "```"
BEGINNING = "```python\n"
"""What every reply begins with: written for the model, which goes on from there."""

NOTHING = "pass"
"""What the model writes where no function does what is asked."""

INSTRUCTIONS = (
    "You turn the user's request into calls of Python functions. Answer with one Python code block that holds nothing "
    "but the calls, one per line, with keyword arguments and literal values. Write one call for each thing asked for. "
    "Take the values from the request; leave out optional parameters that the request says nothing about."
)

WAY_OUT = f"\n\n(If none of the functions does this, write only `{NOTHING}`.)"
"""Put behind the request: so near to the reply, the model heeds it."""

NO_TOOL = (
    "You have no tool for this request. If it asks for current information or for something to be done, say that you "
    "cannot; otherwise answer it."
)
"""Put before a request that no function fits, when it is answered."""

_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict", "array": "list"}
_MOST_CHOICES = 40


def functions(tools: Sequence[ToolDefinition]) -> str:
    """The tools offered, as signatures."""
    return f"# Functions\n{FENCE}python\n" + "\n\n".join(signature(tool) for tool in tools) + f"\n{FENCE}"


def parameters_of(tool: ToolDefinition) -> list[str]:
    """A tool's parameters in the order of its signature: required ones stand first."""
    required = tool.parameters.get("required") or ()
    return sorted(tool.parameters.get("properties") or {}, key=lambda name: name not in required)


def schema_of(call: ToolCall, tools: Sequence[ToolDefinition]) -> Schema:
    """The schema of a call's arguments; an empty one where its tool is not among the tools."""
    return Schema(next((tool.parameters for tool in tools if tool.name == call.name), {}))


def signature(tool: ToolDefinition) -> str:
    """A tool as a Python signature whose docstring describes it and its parameters.

    All parameters are keyword-only: then the model names them, and leaves out those it has no value for.
    """
    required = tool.parameters.get("required") or ()
    properties = _described(tool.parameters)
    told = ("*, " if properties else "") + ", ".join(
        f"{name}: {type_of(properties[name])}"
        + ("" if name in required else f" = {_literal(properties[name].get('default'))}")
        for name in parameters_of(tool)
    )
    lines = [f"def {tool.name}({told}):", f'    """{tool.description.strip()}']
    if properties:
        lines.append("")
    for name, about in properties.items():
        lines.append(f"    {name}: {(about.get('description') or '').strip()}")
        lines += _inner(about, "      ")
    if not properties:
        return "\n".join(lines) + '"""'
    return "\n".join([*lines, '    """'])


def type_of(schema: dict[str, Any]) -> str:
    """The type of a parameter as a Python annotation."""
    choices = schema.get("enum")
    if choices and len(choices) <= _MOST_CHOICES:
        return f"Literal[{', '.join(orjson.dumps(value).decode() for value in choices)}]"
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(dict.fromkeys(type_of(option) for option in options if option.get("type") != "null"))
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "string")
    if kind == "array" and isinstance(schema.get("items"), dict) and schema["items"]:
        return f"list[{type_of(schema['items'])}]"
    return _TYPES.get(kind, "str")


def begun(choice: Named, tools: Sequence[ToolDefinition] = ()) -> str:
    """The beginning of a call that must be made: what is known, and the name of what is to come next.

    That is the argument whose value is to be avoided, or the first one that the function requires; a text's quotes are
    open already, or the model may write an expression.
    """
    schema = next((tool.parameters for tool in tools if tool.name == choice.name), {})
    known = "".join(f"{name}={_literal(value)}, " for name, value in choice.arguments.items())
    missing = (name for name in (*choice.avoid, *(schema.get("required") or ())) if name not in choice.arguments)
    name = next(missing, "")
    if not name:
        return f"{choice.name}({known}"
    about = _described(schema).get(name) or {}
    quote = '"' if isinstance(choice.avoid.get(name), str) or about.get("type") == "string" else ""
    return f"{choice.name}({known}{name}={quote}"


def whole(choice: ToolChoice, tools: Sequence[ToolDefinition]) -> tuple[ToolCall, ...]:
    """The call that must be made, where all is known that its tool requires, or it takes nothing."""
    tool = next((tool for tool in tools if isinstance(choice, Named) and tool.name == choice.name), None)
    if tool is None or not isinstance(choice, Named) or choice.avoid:
        return ()
    if not choice.arguments and tool.parameters.get("properties"):
        return ()
    if not all(name in choice.arguments for name in tool.parameters.get("required") or ()):
        return ()
    return (ToolCall(new_call_id(), tool.name, to_json(dict(choice.arguments)).decode(), "python"),)


def calls_as_text(calls: Sequence[ToolCall]) -> str:
    """Calls of an earlier reply, as a code block."""
    written = []
    for call in calls:
        arguments: dict[str, Any] = strict(call.arguments)
        written.append(f"{call.name}({', '.join(f'{name}={_literal(value)}' for name, value in arguments.items())})")
    return "\n".join([f"{FENCE}python", *written, FENCE])


def results_as_text(results: Sequence[Message]) -> str:
    """Results of the calls of one reply, as one text."""
    return "\n\n".join(f"Result of {result.name}:\n{result.content}" for result in results)


def _described(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The properties that a schema names; of one that may be anything (`true`), nothing is said."""
    properties = schema.get("properties") or {}
    return {name: about if isinstance(about, dict) else {} for name, about in properties.items()}


def _inner(schema: dict[str, Any], indent: str) -> list[str]:
    """The properties of an object, or of a list of objects, a line each."""
    inner = schema.get("items") if schema.get("type") == "array" else schema
    lines: list[str] = []
    if not isinstance(inner, dict):
        return lines
    for name, about in _described(inner).items():
        optional = "" if name in (inner.get("required") or ()) else ", optional"
        lines.append(f"{indent}- {name} ({type_of(about)}{optional}): {about.get('description') or ''}")
        lines += _inner(about, indent + "  ")
    return lines


def _literal(value: Any) -> str:
    return repr(value)
