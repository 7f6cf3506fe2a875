"""Tools told as Python signatures, calls written as Python calls: short to read and to write, in English and Chinese."""

from collections.abc import Sequence
from typing import Any

import orjson

from opposable.domain.language import Language
from opposable.domain.messages import Message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.base import Named, ToolChoice

_ENGLISH = """# Functions

```python
{tools}
```

To use functions, reply with one Python code block that holds nothing but the calls, one per line, with keyword arguments and literal values, and nothing else. Write one call for each thing asked for. Take the values from the request and the results; leave out optional parameters that nothing is said about. The results are told to you afterwards: never make one up.
When no function fits or all results are there, answer the user in plain words, without code.{must}"""

_CHINESE = """# 函数

```python
{tools}
```

需要使用函数时，只回复一个 Python 代码块，其中只有函数调用，每行一个，使用关键字参数和字面值，不要有其他内容。每件要做的事写一个调用。参数值取自用户的请求和已有结果；没有提到的可选参数不要写。函数的结果随后会告诉你，不要编造结果。
没有合适的函数，或者结果已经齐全时，直接用文字回答用户，不要写代码。{must}"""

_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "object": "dict",
    "array": "list",
    "null": "None",
}


def instructions(tools: Sequence[ToolDefinition], choice: ToolChoice, language: Language) -> str:
    """The functions and how to call them."""
    template = _CHINESE if language == "zh" else _ENGLISH
    return template.format(tools="\n\n".join(signature(tool) for tool in tools), must=_must(choice, language))


def signature(tool: ToolDefinition) -> str:
    """A tool as a Python signature with a docstring that describes what needs describing."""
    required = tool.parameters.get("required", ())
    properties: dict[str, Any] = tool.parameters.get("properties", {})
    ordered = sorted(properties.items(), key=lambda item: item[0] not in required)
    told = ", ".join(
        f"{name}: {type_of(about)}" + ("" if name in required else f" = {_literal(about.get('default'))}")
        for name, about in ordered
    )
    notes = [f"    {name}: {about['description']}" for name, about in ordered if about.get("description")]
    if not notes:
        return f'def {tool.name}({told}):\n    """{tool.description}"""'
    return "\n".join([f"def {tool.name}({told}):", f'    """{tool.description}', "", *notes, '    """'])


def type_of(schema: dict[str, Any]) -> str:
    """The type of a parameter as a Python annotation."""
    if "enum" in schema:
        return f"Literal[{', '.join(_literal(value) for value in schema['enum'])}]"
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(type_of(option) for option in options)
    kind = schema.get("type", "Any")
    if isinstance(kind, list):
        return " | ".join(_TYPES.get(one, "Any") for one in kind)
    if kind == "array" and isinstance(schema.get("items"), dict):
        return f"list[{type_of(schema['items'])}]"
    if kind == "object" and schema.get("properties"):
        inner = ", ".join(f'"{name}": {type_of(about)}' for name, about in schema["properties"].items())
        return f"{{{inner}}}"
    return _TYPES.get(kind, "Any")


def calls_as_text(calls: Sequence[ToolCall]) -> str:
    """Calls of an earlier reply, as a code block."""
    written = []
    for call in calls:
        arguments: dict[str, Any] = orjson.loads(call.arguments)
        written.append(f"{call.name}({', '.join(f'{name}={_literal(value)}' for name, value in arguments.items())})")
    return "\n".join(["```python", *written, "```"])


def results_as_text(results: Sequence[Message], language: Language) -> str:
    """Results of the calls of one reply, as one text."""
    head = "{} 的结果：" if language == "zh" else "Result of {}:"
    return "\n\n".join(f"{head.format(result.name)}\n{result.content}" for result in results)


def _literal(value: Any) -> str:
    return repr(value)


def _must(choice: ToolChoice, language: Language) -> str:
    if isinstance(choice, Named):
        return f"\n现在必须调用 {choice.name}。" if language == "zh" else f"\nYou must call {choice.name} now."
    if choice == "required":
        return "\n现在必须调用一个函数。" if language == "zh" else "\nYou must call a function now."
    return ""
