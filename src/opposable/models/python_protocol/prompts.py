"""The texts of the Python protocol: functions as signatures, instructions, calls and results.

Measured on the embedded model: Python takes fewer tokens than JSON and gets more calls right.
"""

from collections.abc import Sequence
from typing import Any

from opposable.domain.json_text import dump_json
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.parsers.schema_coercion import SchemaNode

CODE_FENCE = "```"
REPLY_PREFIX = "```python\n"
"""The beginning of every reply, which the model continues."""

NO_CALL = "pass"
"""What the model writes if no function fits."""

INSTRUCTIONS = (
    "You turn the user's request into calls of Python functions. Answer with one Python code block that holds nothing "
    "but the calls, one per line, with keyword arguments and literal values. Write one call for each thing asked for. "
    "Take the values from the request; leave out optional parameters that the request says nothing about."
)

NO_CALL_OPTION = f"\n\n(If none of the functions does this, write only `{NO_CALL}`.)"
"""The note after the request that offers the no-call option."""

NO_TOOL_INSTRUCTIONS = (
    "You have no tool for this request. If it asks for current information or for something to be done, say that you "
    "cannot; otherwise answer it."
)
"""The system message of a request that no function fits."""

_PYTHON_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "object": "dict",
    "array": "list",
}
_MAX_CHOICES = 40


def render_functions(tools: Sequence[ToolDefinition]) -> str:
    """Render the offered tools as signatures."""
    return (
        f"# Functions\n{CODE_FENCE}python\n" + "\n\n".join(render_signature(tool) for tool in tools) + f"\n{CODE_FENCE}"
    )


def list_parameters(schema: dict[str, Any]) -> list[str]:
    """Return the parameters of a tool in the order of its signature, required ones first."""
    required = schema.get("required") or ()
    return sorted(schema.get("properties") or {}, key=lambda name: name not in required)


def get_schema(call: ToolCall, tools: Sequence[ToolDefinition]) -> SchemaNode:
    """Return the schema of the arguments of a call; an empty one for an unknown tool."""
    return SchemaNode(next((tool.parameters for tool in tools if tool.name == call.name), {}))


def render_signature(tool: ToolDefinition) -> str:
    """Render a tool as a Python signature with a docstring.

    All parameters are keyword-only, so that the model names them and omits those without a value.
    """
    required = tool.parameters.get("required") or ()
    properties = _get_properties(tool.parameters)
    parameters_text = ("*, " if properties else "") + ", ".join(
        f"{name}: {render_annotation(properties[name])}"
        + ("" if name in required else f" = {properties[name].get('default')!r}")
        for name in list_parameters(tool.parameters)
    )
    lines = [f"def {tool.name}({parameters_text}):", f'    """{tool.description.strip()}']
    if properties:
        lines.append("")
    for name, about in properties.items():
        lines.append(f"    {name}: {(about.get('description') or '').strip()}")
        lines += _render_nested(about, "      ")
    if not properties:
        return "\n".join(lines) + '"""'
    return "\n".join([*lines, '    """'])


def render_annotation(schema: dict[str, Any]) -> str:
    """Render the type of a parameter as a Python annotation."""
    choices = schema.get("enum")
    if choices and len(choices) <= _MAX_CHOICES:
        return f"Literal[{', '.join(dump_json(value).decode() for value in choices)}]"
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(
            dict.fromkeys(render_annotation(option) for option in options if option.get("type") != "null")
        )
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "string")
    if kind == "array" and isinstance(schema.get("items"), dict) and schema["items"]:
        return f"list[{render_annotation(schema['items'])}]"
    return _PYTHON_TYPES.get(kind, "str")


def render_calls(calls: Sequence[ToolCall]) -> str:
    """Render the calls of an earlier reply as a code block."""
    written = [
        f"{call.name}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})" for call in calls
    ]
    return "\n".join([f"{CODE_FENCE}python", *written, CODE_FENCE])


def _get_properties(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the properties of a schema; {} for one that allows anything."""
    properties = schema.get("properties") or {}
    return {name: about if isinstance(about, dict) else {} for name, about in properties.items()}


def _render_nested(schema: dict[str, Any], indent: str) -> list[str]:
    """Render the properties of an object, or of a list of objects, one line each."""
    inner = schema.get("items") if schema.get("type") == "array" else schema
    lines: list[str] = []
    if not isinstance(inner, dict):
        return lines
    for name, about in _get_properties(inner).items():
        optional = "" if name in (inner.get("required") or ()) else ", optional"
        lines.append(f"{indent}- {name} ({render_annotation(about)}{optional}): {about.get('description') or ''}")
        lines += _render_nested(about, indent + "  ")
    return lines
